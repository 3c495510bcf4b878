/* average.c -- see average.h. */
#include "train/average.h"

lam_status lam_average_create(lam_optimizer *o)
{
    lam_dev *dev = o->model->dev;
    const size_t size = lam_class_size(dev, LAM_WIDE);
    LAM_TRY(dev->ops->alloc(dev, &o->zero, size));
    return dev->ops->alloc(dev, &o->average, o->model->params.total * size);
}

void lam_average_free(lam_optimizer *o)
{
    lam_dev *dev = o->model->dev;
    dev->ops->release(dev, o->average);
    dev->ops->release(dev, o->zero);
}

/* mean += (weights - mean) / n. */
void lam_average_add(const lam_optimizer *o, int64_t n)
{
    const lam_params *p = &o->model->params;
    lam_sgd_plain(o->model->dev, &(lam_plain_sgd){.n = p->total,
                                                  .p = o->average,
                                                  .x = p->master,
                                                  .lr = -1.0 / (double)n,
                                                  .decay = -1.0,
                                                  .zero = o->zero});
}

static void copy(const lam_optimizer *o, void *out, void *in)
{
    lam_dev *dev = o->model->dev;
    dev->ops->copy(dev, &(lam_copy){.blocks = 1,
                                    .count = o->model->params.total,
                                    .type = LAM_WIDE,
                                    .in = {in, 0},
                                    .out = {out, 0}});
}

static void become(const lam_optimizer *o, void *weights)
{
    const lam_params *p = &o->model->params;
    copy(o, p->master, weights);
    if (p->weight != p->master) /* a step of length 0 makes the copy anew */
        lam_sgd_plain(
            o->model->dev,
            &(lam_plain_sgd){
                .n = p->total, .p = p->master, .x = weights, .zero = o->zero, .weight = p->weight});
}

void lam_average_show(const lam_optimizer *o, int64_t n)
{
    if (n == 0)
        return;
    copy(o, o->model->params.grad, o->model->params.master);
    become(o, o->average);
}

void lam_average_hide(const lam_optimizer *o, int64_t n)
{
    if (n > 0)
        become(o, o->model->params.grad);
}
