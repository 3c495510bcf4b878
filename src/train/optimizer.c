/* optimizer.c -- see optimizer.h. */
#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>

lam_optimizer_options lam_optimizer_defaults(void)
{
    return (lam_optimizer_options){.kind = LAM_ADAM,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .eps = 1e-8,
                                   .clip = 0.25,
                                   .matrix_lr = 1.0,
                                   .table_lr = 1.0,
                                   .vector_lr = 1.0,
                                   .muon_momentum = 0.95};
}

/* Bytes of the moments; Muon's momentum is the mean. */
static size_t mean_bytes(const lam_model *model, const lam_optimizer_options *o)
{
    return o->kind != LAM_ADAGRAD ? model->params.total * lam_class_size(model->dev, LAM_WIDE) : 0;
}

static size_t square_bytes(const lam_model *model, const lam_optimizer_options *o)
{
    const size_t n = o->muon ? model->params.rest : model->params.total;
    return o->kind != LAM_SGD ? n * lam_class_size(model->dev, LAM_WIDE) : 0;
}

lam_status lam_optimizer_measure(size_t *bytes, lam_model *model,
                                 const lam_optimizer_options *options)
{
    *bytes = 0;
    if (options->muon)
        LAM_TRY(lam_muon_measure(bytes, model));
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
    if (status == LAM_OK && options->muon)
        status = lam_muon_create(&o->muon, model);
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
    lam_muon_free(o->muon);
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

/* Does Muon update it? */
static int is_muons(const lam_optimizer *o, const lam_param *q)
{
    return o->muon && lam_param_is_hidden(q);
}

static lam_part part_of(const lam_optimizer *o, const lam_param *q, double lr)
{
    const double factor = q->role == LAM_ROLE_MATRIX  ? o->opt.matrix_lr
                          : q->role == LAM_ROLE_TABLE ? o->opt.table_lr
                                                      : o->opt.vector_lr;
    return (lam_part){.offset = q->offset,
                      .count = q->stored,
                      .lr = lr * factor,
                      .decay = q->role != LAM_ROLE_VECTOR ? o->opt.decay : 0.0,
                      .fix1 = 1.0 - pow(o->opt.beta1, (double)q->steps),
                      .fix2 = 1.0 - pow(o->opt.beta2, (double)q->steps)};
}

/* The parameters of a group that received a gradient, with their own step counts; Muon's stand behind
 * the others, whose number is *rest. */
static int gather_parts(lam_optimizer *o, double lr, int apart, int *rest)
{
    lam_params *p = &o->model->params;
    int n = 0;
    for (int muons = 0; muons < 2; muons++) {
        for (int i = 0; i < p->n; i++) {
            lam_param *q = &p->list[i];
            if (!q->used || apart != is_apart(o, q) || muons != is_muons(o, q))
                continue;
            q->steps++;
            o->counted[i]++;
            o->parts[n++] = part_of(o, q, lr);
        }
        if (!muons)
            *rest = n;
    }
    return n;
}

static void update_parts(lam_optimizer *o, int n, const void *norm)
{
    const lam_params *p = &o->model->params;
    p->dev->ops->update(p->dev, &(lam_update){.kind = o->opt.kind,
                                              .parts = o->parts,
                                              .n_parts = n,
                                              .beta1 = o->opt.beta1,
                                              .beta2 = o->opt.beta2,
                                              .eps = o->opt.eps,
                                              .clip = o->opt.clip,
                                              .norm = norm,
                                              .grad = p->grad,
                                              .master = p->master,
                                              .m = o->m,
                                              .v = o->v,
                                              .weight = p->weight != p->master ? p->weight : NULL});
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
        update_parts(o, rest, norm);
    if (n > rest)
        lam_muon_update(o->muon, &(lam_muon_step){.lr = lr * o->opt.matrix_lr,
                                                  .decay = o->opt.decay,
                                                  .momentum = o->opt.muon_momentum,
                                                  .rows = o->opt.muon_rows,
                                                  .clip = o->opt.clip,
                                                  .norm = norm,
                                                  .m = o->m});
}

void lam_optimizer_step(lam_optimizer *o, double lr)
{
    update_group(o, lr, 0);
    update_group(o, lr, 1);
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

void lam_optimizer_settle(lam_optimizer *o, const int64_t skipped[2])
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
