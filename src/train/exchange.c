/* exchange.c -- see exchange.h.
 *
 * A device with memory of its own is staged through the host. */
#include "train/exchange.h"

#include "core/clock.h"

#include <stdlib.h>
#include <string.h>

lam_status lam_exchange_create(lam_exchange *x, lam_model *model, lam_share share)
{
    const lam_params *p = &model->params;
    const size_t size = lam_class_size(p->dev, LAM_WIDE);
    *x = (lam_exchange){.share = share, .model = model};
    if (lam_comm_size(share.comm) == 1)
        return LAM_OK;
    x->stage = p->dev->own_memory ? malloc(p->total * size) : NULL;
    x->scratch = malloc((p->total / 2 + 1) * size);
    x->used = calloc((size_t)p->n + 1, 1);
    if (x->scratch && x->used && (x->stage || !p->dev->own_memory))
        return LAM_OK;
    lam_exchange_free(x);
    return lam_fail(LAM_ERR_MEMORY, "exchange of %zu gradients: no memory", p->total);
}

void lam_exchange_free(lam_exchange *x)
{
    free(x->stage);
    free(x->scratch);
    free(x->used);
    *x = (lam_exchange){0};
}

static lam_status join_marks(lam_exchange *x)
{
    const lam_params *p = &x->model->params;
    for (int i = 0; i < p->n; i++)
        x->used[i] = p->list[i].used != 0;
    LAM_TRY(lam_comm_any(x->share.comm, x->used, (size_t)p->n));
    for (int i = 0; i < p->n; i++)
        p->list[i].used = x->used[i];
    return LAM_OK;
}

static lam_status sum_gradients(lam_exchange *x)
{
    const lam_params *p = &x->model->params;
    lam_dev *dev = p->dev;
    const size_t bytes = p->total * lam_class_size(dev, LAM_WIDE);
    void *const at = x->stage ? x->stage : p->grad;
    if (x->stage)
        LAM_TRY(dev->ops->download(dev, x->stage, p->grad, bytes));
    else
        LAM_TRY(dev->ops->sync(dev));
    LAM_TRY(lam_comm_sum(x->share.comm, at, x->scratch, p->total, dev->wide, x->share.reduce));
    if (x->stage)
        dev->ops->upload(dev, p->grad, x->stage, bytes);
    return LAM_OK;
}

lam_status lam_exchange_gradients(lam_exchange *x)
{
    if (lam_comm_size(x->share.comm) == 1)
        return LAM_OK;
    const double began = lam_clock();
    LAM_TRY(join_marks(x));
    const double met = lam_clock();
    LAM_TRY(sum_gradients(x));
    x->waited += met - began;
    x->took += lam_clock() - met;
    return LAM_OK;
}
