/* adagrad.c -- Adagrad: every number's learning rate falls with the squares of its gradients so far. */
#include "train/optimizer.h"

static const double EPS = 1e-10; /* torch.optim.Adagrad's */

static lam_status check(const lam_optimizer_options *o)
{
    (void)o;
    return LAM_OK;
}

static void step(lam_optimizer *o, const lam_rule_step *s)
{
    lam_rule_update(o, s, (lam_update){.kind = LAM_ADAGRAD, .eps = EPS});
}

const lam_rule lam_rule_adagrad = {.name = "adagrad", .square = true, .check = check, .step = step};
