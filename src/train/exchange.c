/* exchange.c -- see exchange.h.
 *
 * A device with memory of its own is staged through the host. */
#include "train/exchange.h"

#include "core/arena.h"
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

/* ---- gradients ---- */

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

/* ---- stretches ---- */

/* Joins neighbours of one owner; returns how many are left. */
static int join(lam_stretch *to, const lam_stretch *list, int n)
{
    const size_t gap = LAM_ALIGN / sizeof(float); /* as lam_params_arrange leaves them, at most */
    int count = 0;
    for (int i = 0; i < n; i++) {
        lam_stretch *const last = count > 0 ? &to[count - 1] : NULL;
        if (last && last->owner == list[i].owner && list[i].from >= last->from + last->count &&
            list[i].from - (last->from + last->count) < gap)
            last->count = list[i].from + list[i].count - last->from;
        else
            to[count++] = list[i];
    }
    return count;
}

static char *place(const lam_exchange *x, const void *base, size_t at)
{
    return lam_at(x->model->dev, LAM_WIDE, base, at);
}

/* Stretches of this rank go to the stage, or those of others come from it. */
static lam_status move(lam_exchange *x, void *flat, const lam_stretch *list, int n, int mine)
{
    lam_dev *dev = x->model->dev;
    const size_t size = lam_class_size(dev, LAM_WIDE);
    for (int i = 0; i < n; i++) {
        if (mine != (list[i].owner == lam_comm_rank(x->share.comm)))
            continue;
        char *const host = place(x, x->stage, list[i].from);
        char *const there = place(x, flat, list[i].from);
        if (mine)
            LAM_TRY(dev->ops->download(dev, host, there, list[i].count * size));
        else
            dev->ops->upload(dev, there, host, list[i].count * size);
    }
    return LAM_OK;
}

static lam_status send_all(lam_exchange *x, void *flat, const lam_stretch *list, int n,
                           lam_piece *pieces)
{
    lam_dev *dev = x->model->dev;
    for (int i = 0; i < n; i++)
        pieces[i] = (lam_piece){.at = place(x, x->stage ? x->stage : flat, list[i].from),
                                .bytes = list[i].count * lam_class_size(dev, LAM_WIDE),
                                .owner = list[i].owner};
    LAM_TRY(x->stage ? move(x, flat, list, n, 1) : dev->ops->sync(dev));
    unsigned char nothing = 0;
    const double began = lam_clock();
    LAM_TRY(lam_comm_any(x->share.comm, &nothing, 1)); /* waiting is not counted as sending */
    const double met = lam_clock();
    LAM_TRY(lam_comm_spread(x->share.comm, pieces, n));
    if (x->stage)
        LAM_TRY(move(x, flat, list, n, 0));
    x->waited += met - began;
    x->took += lam_clock() - met;
    return LAM_OK;
}

lam_status lam_exchange_spread(lam_exchange *x, void *flat, const lam_stretch *list, int n)
{
    if (lam_comm_size(x->share.comm) == 1 || n == 0)
        return LAM_OK;
    lam_stretch *const joined = malloc((size_t)n * sizeof *joined);
    lam_piece *const pieces = malloc((size_t)n * sizeof *pieces);
    const lam_status status =
        joined && pieces ? send_all(x, flat, joined, join(joined, list, n), pieces)
                         : lam_fail(LAM_ERR_MEMORY, "exchange of %d stretches: no memory", n);
    free(joined);
    free(pieces);
    return status;
}
