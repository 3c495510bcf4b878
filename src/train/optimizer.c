/* optimizer.c -- see optimizer.h. */
#include "train/optimizer.h"

#include "train/average.h"
#include "train/holdings.h"

#include <math.h>
#include <stdlib.h>

#define DECLARE(NAME, name) extern const lam_rule lam_rule_##name;
#define ADDRESS(NAME, name) &lam_rule_##name,
#define WORD(NAME, name)    #name,
LAM_RULES(DECLARE)
const lam_rule *const lam_rules[] = {LAM_RULES(ADDRESS)};
const char *const lam_optim_names[] = {LAM_RULES(WORD) NULL};

const lam_rule *lam_rule_of(const lam_optimizer_options *o, const lam_param *q)
{
    return o->rule->takes && !o->rule->takes(q) ? &lam_rule_adam : o->rule;
}

/* Elements of the moments. */
typedef struct sizes {
    size_t mean, square;
} sizes;

/* Adam's of what a rule leaves to it: its mean lies beside the rule's, its square alone. */
static sizes sizes_of(const lam_model *model, const lam_optimizer_options *o,
                      const lam_holdings *holdings)
{
    const lam_params *p = &model->params;
    if (holdings)
        return (sizes){holdings->mean, holdings->square};
    return (sizes){o->rule->mean ? p->total : 0, o->rule->square  ? p->total
                                                 : o->rule->takes ? p->rest
                                                                  : 0};
}

/* NULL where nothing is divided. */
static lam_status create_holdings(lam_holdings **out, const lam_model *model,
                                  const lam_optimizer_options *o)
{
    *out = NULL;
    return o->zero && o->ranks > 1 ? lam_holdings_create(out, model, o) : LAM_OK;
}

lam_status lam_optimizer_measure(size_t *bytes, lam_model *model,
                                 const lam_optimizer_options *options)
{
    lam_holdings *holdings;
    *bytes = 0;
    if (options->rule->measure)
        LAM_TRY(options->rule->measure(bytes, model, options));
    LAM_TRY(create_holdings(&holdings, model, options));
    const sizes n = sizes_of(model, options, holdings);
    *bytes += (n.mean + n.square + (options->averages ? model->params.total + 1 : 0)) *
              lam_class_size(model->dev, LAM_WIDE);
    lam_holdings_free(holdings);
    return LAM_OK;
}

static lam_status allocate(lam_optimizer *o)
{
    lam_model *model = o->model;
    lam_dev *dev = model->dev;
    const size_t size = lam_class_size(dev, LAM_WIDE);
    o->parts = calloc((size_t)model->params.n + 1, sizeof *o->parts);
    o->counted = calloc((size_t)model->params.n + 1, sizeof *o->counted);
    if (!o->parts || !o->counted)
        return lam_fail(LAM_ERR_MEMORY, "optimiser: no memory");
    LAM_TRY(create_holdings(&o->holdings, model, &o->opt));
    const sizes n = sizes_of(model, &o->opt, o->holdings);
    LAM_TRY(lam_params_place_grad(&model->params));
    LAM_TRY(dev->ops->alloc(dev, &o->norm, 2 * size));
    if (n.mean > 0)
        LAM_TRY(dev->ops->alloc(dev, &o->m, n.mean * size));
    if (n.square > 0)
        LAM_TRY(dev->ops->alloc(dev, &o->v, n.square * size));
    if (o->opt.averages)
        LAM_TRY(lam_average_create(o));
    return o->opt.rule->create ? o->opt.rule->create(&o->own, model, &o->opt) : LAM_OK;
}

lam_status lam_optimizer_create(lam_optimizer **out, lam_model *model,
                                const lam_optimizer_options *options)
{
    *out = NULL;
    lam_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return lam_fail(LAM_ERR_MEMORY, "optimiser: no memory");
    o->opt = *options;
    o->model = model;
    const lam_status status = allocate(o);
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
    lam_average_free(o);
    if (o->opt.rule->free)
        o->opt.rule->free(o->own);
    lam_holdings_free(o->holdings);
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
            if (!q->used || apart != is_apart(o, q) ||
                mine != (lam_rule_of(&o->opt, q) == o->opt.rule))
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
    if (o->holdings && o->failed == LAM_OK)
        o->failed = lam_holdings_send(o);
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

/* The units of this rank, one after the other: their moments lie elsewhere than their weights. */
static void update_holdings(const lam_optimizer *o, const lam_rule_step *s, lam_update u)
{
    const lam_update all = u;
    for (int i = 0; i < s->n_parts; i++) {
        const lam_holding *q = lam_holdings_at(o->holdings, s->parts[i].offset);
        lam_dev *dev = o->model->dev;
        lam_part part = s->parts[i];
        if (q->owner != o->opt.rank)
            continue;
        part.offset = 0;
        u.parts = &part;
        u.n_parts = 1;
        u.grad = lam_at(dev, LAM_WIDE, all.grad, q->offset);
        u.master = lam_at(dev, LAM_WIDE, all.master, q->offset);
        u.m = all.m ? lam_at(dev, LAM_WIDE, all.m, q->m) : NULL;
        u.v = all.v ? lam_at(dev, LAM_WIDE, all.v, q->v) : NULL;
        u.weight = all.weight ? lam_at(dev, LAM_ACT, all.weight, q->offset) : NULL;
        dev->ops->update(dev, &u);
    }
}

void lam_rule_update(const lam_optimizer *o, const lam_rule_step *s, lam_update u)
{
    const lam_params *p = &o->model->params;
    u.clip = o->opt.clip;
    u.norm = s->norm;
    u.grad = p->grad;
    u.master = p->master;
    u.m = o->m;
    u.v = o->v;
    u.weight = p->weight != p->master ? p->weight : NULL;
    if (o->holdings) {
        update_holdings(o, s, u);
        return;
    }
    u.parts = s->parts;
    u.n_parts = s->n_parts;
    p->dev->ops->update(p->dev, &u);
}
