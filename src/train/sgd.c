/* sgd.c -- stochastic gradient descent with momentum. */
#include "train/optimizer.h"

static lam_status check(const lam_optimizer_options *o)
{
    return lam_rule_below_one("mom", o->mom);
}

static void step(lam_optimizer *o, const lam_rule_step *s)
{
    lam_rule_update(o, s, (lam_update){.kind = LAM_SGD, .beta1 = o->opt.mom});
}

const lam_rule lam_rule_sgd = {.name = "sgd", .mean = true, .check = check, .step = step};
