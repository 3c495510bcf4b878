/* optimizer.c -- see optimizer.h. */
#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>

lam_optimizer_options lam_optimizer_defaults(void)
{
    return (lam_optimizer_options){LAM_ADAM, 0.9, 0.999, 1e-8, 0.25, 0.0, 0};
}

lam_status lam_optimizer_create(lam_optimizer **out, lam_model *model,
                                const lam_optimizer_options *options)
{
    lam_dev *dev = model->dev;
    const size_t bytes = model->params.total * lam_class_size(dev, LAM_WIDE);
    *out = NULL;
    lam_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return lam_fail(LAM_ERR_MEMORY, "optimiser: no memory");
    o->opt = *options;
    o->model = model;
    o->parts = calloc((size_t)model->params.n + 1, sizeof *o->parts);
    lam_status status = o->parts ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "optimiser: no memory");
    if (status == LAM_OK)
        status = lam_params_place_grad(&model->params);
    if (status == LAM_OK)
        status = dev->ops->alloc(dev, &o->norm, 2 * lam_class_size(dev, LAM_WIDE));
    if (status == LAM_OK && options->kind != LAM_ADAGRAD)
        status = dev->ops->alloc(dev, &o->m, bytes);
    if (status == LAM_OK && options->kind != LAM_SGD)
        status = dev->ops->alloc(dev, &o->v, bytes);
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
    free(o->parts);
    free(o);
}

void lam_optimizer_zero(lam_optimizer *o)
{
    lam_params *p = &o->model->params;
    p->dev->ops->zero(p->dev, p->grad, p->total * lam_class_size(p->dev, LAM_WIDE));
    for (int i = 0; i < p->n; i++)
        p->list[i].used = 0;
}

/* The parameters of a group that received a gradient, with their own step counts. */
static int gather_parts(lam_optimizer *o, double lr, int apart)
{
    lam_params *p = &o->model->params;
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        lam_param *q = &p->list[i];
        if (!q->used || apart != (q->apart && !o->opt.clip_together))
            continue;
        q->steps++;
        o->parts[n++] = (lam_part){.offset = q->offset,
                                   .count = q->stored,
                                   .lr = lr,
                                   .decay = q->rank > 1 ? o->opt.decay : 0.0,
                                   .fix1 = 1.0 - pow(o->opt.beta1, (double)q->steps),
                                   .fix2 = 1.0 - pow(o->opt.beta2, (double)q->steps)};
    }
    return n;
}

static void update_group(lam_optimizer *o, double lr, int apart)
{
    lam_params *p = &o->model->params;
    const int n = gather_parts(o, lr, apart);
    void *norm = lam_at(p->dev, LAM_WIDE, o->norm, (size_t)apart);
    if (n == 0) {
        p->dev->ops->zero(p->dev, norm, lam_class_size(p->dev, LAM_WIDE));
        return;
    }
    p->dev->ops->gnorm(p->dev, &(lam_gnorm){o->parts, n, p->grad, norm});
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

void lam_optimizer_step(lam_optimizer *o, double lr)
{
    update_group(o, lr, 0);
    update_group(o, lr, 1);
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
