/* adam.c -- Adam with decoupled weight decay, the paper's rule; and whatever other rules leave. */
#include "train/optimizer.h"

static lam_status check(const lam_optimizer_options *o)
{
    LAM_TRY(lam_rule_below_one("beta1", o->beta1));
    return lam_rule_below_one("beta2", o->beta2);
}

static void step(lam_optimizer *o, const lam_rule_step *s)
{
    lam_rule_update(o, s,
                    (lam_update){.kind = LAM_ADAM,
                                 .beta1 = o->opt.beta1,
                                 .beta2 = o->opt.beta2,
                                 .eps = o->opt.adam_eps});
}

const lam_rule lam_rule_adam = {
    .name = "adam", .mean = true, .square = true, .check = check, .step = step};
