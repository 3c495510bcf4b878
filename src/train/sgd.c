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

void lam_sgd_plain(lam_dev *dev, const lam_plain_sgd *s)
{
    const lam_part all = {.count = s->n, .lr = s->lr, .decay = s->decay, .fix1 = 1.0, .fix2 = 1.0};
    dev->ops->update(dev, &(lam_update){.kind = LAM_SGD,
                                        .parts = &all,
                                        .n_parts = 1,
                                        .norm = s->zero,
                                        .grad = s->x,
                                        .master = s->p,
                                        .m = s->x,
                                        .weight = s->weight});
}

const lam_rule lam_rule_sgd = {.name = "sgd", .mean = true, .check = check, .step = step};
