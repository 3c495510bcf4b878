/* optimizer.c -- see optimizer.h. */
#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>

#define DECLARE(NAME, name) extern const lam_rule lam_rule_##name;
#define ADDRESS(NAME, name) &lam_rule_##name,
#define WORD(NAME, name)    #name,
LAM_RULES(DECLARE)
const lam_rule *const lam_rules[] = {LAM_RULES(ADDRESS)};
const char *const lam_optim_names[] = {LAM_RULES(WORD) NULL};

/* Whose is the parameter? */
static const lam_rule *rule_of(const lam_optimizer_options *o, const lam_param *q)
{
    return o->rule->takes && !o->rule->takes(q) ? &lam_rule_adam : o->rule;
}

/* Bytes of the moments.  Adam's of what a rule leaves to it: its mean lies beside the rule's, its square alone. */
static size_t mean_bytes(const lam_model *model, const lam_optimizer_options *o)
{
    return o->rule->mean ? model->params.total * lam_class_size(model->dev, LAM_WIDE) : 0;
}

static size_t square_bytes(const lam_model *model, const lam_optimizer_options *o)
{
    const size_t n = o->rule->square  ? model->params.total
                     : o->rule->takes ? model->params.rest
                                      : 0;
    return n * lam_class_size(model->dev, LAM_WIDE);
}

lam_status lam_optimizer_measure(size_t *bytes, lam_model *model,
                                 const lam_optimizer_options *options)
{
    *bytes = 0;
    if (options->rule->measure)
        LAM_TRY(options->rule->measure(bytes, model, options));
    *bytes += mean_bytes(model, options) + square_bytes(model, options);
    return LAM_OK;
}

lam_status lam_optimizer_create(lam_optimizer **out, lam_model *model,
                                const lam_optimizer_options *options)
{
    lam_dev *dev = model->dev;
    const size_t mean = mean_bytes(model, options), square = square_bytes(model, options);
    *out = NULL;
    lam_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return lam_fail(LAM_ERR_MEMORY, "optimiser: no memory");
    o->opt = *options;
    o->model = model;
    o->parts = calloc((size_t)model->params.n + 1, sizeof *o->parts);
    o->counted = calloc((size_t)model->params.n + 1, sizeof *o->counted);
    lam_status status =
        o->parts && o->counted ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "optimiser: no memory");
    if (status == LAM_OK)
        status = lam_params_place_grad(&model->params);
    if (status == LAM_OK)
        status = dev->ops->alloc(dev, &o->norm, 2 * lam_class_size(dev, LAM_WIDE));
    if (status == LAM_OK && mean > 0)
        status = dev->ops->alloc(dev, &o->m, mean);
    if (status == LAM_OK && square > 0)
        status = dev->ops->alloc(dev, &o->v, square);
    if (status == LAM_OK && options->rule->create)
        status = options->rule->create(&o->own, model, options);
    if (status != LAM_OK) {
        lam_optimizer_free(o);
        return status;
    }
    *out = o;
    return LAM_OK;
}

void lam_optimizer_free(lam_optimizer *o)
{
    if (!o)
        return;
    lam_dev *dev = o->model->dev;
    dev->ops->release(dev, o->m);
    dev->ops->release(dev, o->v);
    dev->ops->release(dev, o->norm);
    if (o->opt.rule->free)
        o->opt.rule->free(o->own);
    free(o->parts);
    free(o->counted);
    free(o);
}

void lam_optimizer_zero(lam_optimizer *o)
{
    lam_params *p = &o->model->params;
    p->dev->ops->zero(p->dev, p->grad, p->total * lam_class_size(p->dev, LAM_WIDE));
    for (int i = 0; i < p->n; i++)
        p->list[i].used = 0;
}

/* Is it clipped, and skipped, by the second norm? */
static int is_apart(const lam_optimizer *o, const lam_param *q)
{
    return q->apart && !o->opt.clip_together;
}

static lam_part part_of(const lam_optimizer *o, const lam_param *q, double lr)
{
    const double factor = q->role == LAM_ROLE_MATRIX  ? o->opt.matrix_lr
                          : q->role == LAM_ROLE_TABLE ? o->opt.embed_lr
                                                      : o->opt.vector_lr;
    return (lam_part){.offset = q->offset,
                      .count = q->stored,
                      .lr = lr * factor,
                      .decay = q->role != LAM_ROLE_VECTOR ? o->opt.weight_decay : 0.0,
                      .fix1 = 1.0 - pow(o->opt.beta1, (double)q->steps),
                      .fix2 = 1.0 - pow(o->opt.beta2, (double)q->steps)};
}

/* The parameters of a group that received a gradient, with their own step counts; those that the rule leaves to
 * Adam stand in front, and *rest is their number. */
static int gather_parts(lam_optimizer *o, double lr, int apart, int *rest)
{
    lam_params *p = &o->model->params;
    int n = 0;
    for (int mine = 0; mine < 2; mine++) {
        for (int i = 0; i < p->n; i++) {
            lam_param *q = &p->list[i];
            if (!q->used || apart != is_apart(o, q) || mine != (rule_of(&o->opt, q) == o->opt.rule))
                continue;
            q->steps++;
            o->counted[i]++;
            o->parts[n++] = part_of(o, q, lr);
        }
        if (!mine)
            *rest = n;
    }
    return n;
}

static void update_group(lam_optimizer *o, double lr, int apart)
{
    lam_params *p = &o->model->params;
    int rest = 0;
    const int n = gather_parts(o, lr, apart, &rest);
    void *norm = lam_at(p->dev, LAM_WIDE, o->norm, (size_t)apart);
    if (n == 0) {
        p->dev->ops->zero(p->dev, norm, lam_class_size(p->dev, LAM_WIDE));
        return;
    }
    p->dev->ops->gnorm(p->dev, &(lam_gnorm){o->parts, n, p->grad, norm});
    if (rest > 0)
        lam_rule_adam.step(o, &(lam_rule_step){lr, o->parts, rest, norm});
    if (n > rest)
        o->opt.rule->step(o, &(lam_rule_step){lr, o->parts + rest, n - rest, norm});
}

lam_status lam_optimizer_step(lam_optimizer *o, double lr)
{
    update_group(o, lr, 0);
    update_group(o, lr, 1);
    return o->failed;
}

void lam_optimizer_tally(const lam_optimizer *o, void *totals)
{
    lam_dev *dev = o->model->dev;
    const lam_params *p = &o->model->params;
    int groups = 1;
    for (int i = 0; i < p->n; i++)
        groups |= is_apart(o, &p->list[i]) << 1;
    for (size_t g = 0; g < 2; g++)
        if (groups >> g & 1)
            dev->ops->tally(dev, &(lam_tally){.n_norms = 1,
                                              .norms = lam_at(dev, LAM_WIDE, o->norm, g),
                                              .totals = lam_at(dev, LAM_WIDE, totals, 4 * g)});
}

void lam_optimizer_resolve(lam_optimizer *o, const int64_t skipped[2])
{
    const lam_params *p = &o->model->params;
    for (int i = 0; i < p->n; i++) {
        const long most = o->counted[i], n = (long)skipped[is_apart(o, &p->list[i])];
        p->list[i].steps -= n < most ? n : most;
        o->counted[i] = 0;
    }
}

lam_status lam_optimizer_norm(const lam_optimizer *o, double *norm)
{
    lam_dev *dev = o->model->dev;
    double raw[2] = {0}, norms[2];
    const lam_status status =
        dev->ops->download(dev, raw, o->norm, 2 * lam_class_size(dev, LAM_WIDE));
    lam_convert(norms, LAM_F64, raw, dev->wide, 2);
    *norm = isfinite(norms[1]) ? norms[0] : norms[1];
    return status;
}

lam_status lam_rule_below_one(const char *name, double x)
{
    return x < 1.0 ? LAM_OK : lam_fail(LAM_ERR_ARG, "%s is %g, must be below 1", name, x);
}

void lam_rule_update(const lam_optimizer *o, const lam_rule_step *s, lam_update u)
{
    const lam_params *p = &o->model->params;
    u.parts = s->parts;
    u.n_parts = s->n_parts;
    u.clip = o->opt.clip;
    u.norm = s->norm;
    u.grad = p->grad;
    u.master = p->master;
    u.m = o->m;
    u.v = o->v;
    u.weight = p->weight != p->master ? p->weight : NULL;
    p->dev->ops->update(p->dev, &u);
}
