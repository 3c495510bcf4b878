/* exchange.c -- see exchange.h.
 *
 * The gradients of a layer are summed while the layers below are still in backward, by a thread of its own, since MPI
 * makes no progress by itself.  Each number is summed in the same tree whenever that happens.  A device with memory of
 * its own does it after backward: by NCCL where there is one, else staged through the host. */
#include "train/exchange.h"

#include "core/arena.h"
#include "core/clock.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

/* Sums a stretch of the gradients, which are in host memory. */
static lam_status sum_stretch(void *user, size_t from, size_t count)
{
    lam_exchange *x = user;
    const lam_params *p = &x->model->params;
    return lam_comm_sum(x->share.comm, lam_at(p->dev, LAM_WIDE, p->grad, from), x->scratch, count,
                        p->dev->wide, x->share.reduce);
}

/* ---- NCCL: between devices with their own memory ---- */

/* SGD without momentum at the rate -1 is an addition, and no device rounds it differently. */
static void add_on_device(void *user, void *a, void *b, size_t n)
{
    lam_exchange *x = user;
    lam_dev *dev = x->model->dev;
    const lam_part all = {.count = n, .lr = -1.0, .fix1 = 1.0, .fix2 = 1.0};
    dev->ops->update(dev, &(lam_update){.kind = LAM_SGD,
                                        .parts = &all,
                                        .n_parts = 1,
                                        .norm = x->zero,
                                        .grad = b,
                                        .master = a,
                                        .m = b});
}

static lam_status sync_exchange(void *user)
{
    lam_dev *dev = ((lam_exchange *)user)->model->dev;
    return dev->ops->sync(dev);
}

static int exchange_is_idle(void *user)
{
    lam_dev *dev = ((lam_exchange *)user)->model->dev;
    return dev->link->idle(dev);
}

/* Joins the others by NCCL, or says why not. */
static lam_status open_nccl(lam_exchange *x)
{
    const lam_params *p = &x->model->params;
    lam_dev *dev = p->dev;
    const size_t size = lam_class_size(dev, LAM_WIDE);
    char why[256];
    LAM_TRY(lam_nccl_open(&x->nccl, why, x->share.comm,
                          &(lam_nccl_device){.user = x,
                                             .stream = dev->link->stream,
                                             .card = dev->link->card,
                                             .sync = sync_exchange,
                                             .idle = exchange_is_idle,
                                             .add = add_on_device}));
    if (!x->nccl) {
        lam_log(LAM_LOG_INFO, "exchange: through host memory, by %s (%s)",
                lam_comm_name(x->share.comm), why);
        return LAM_OK;
    }
    lam_log(LAM_LOG_INFO, "exchange: between GPUs, by %s", lam_nccl_name(x->nccl));
    lam_status status = dev->ops->alloc(dev, &x->zero, size);
    if (status == LAM_OK)
        status = dev->ops->alloc(dev, &x->scratch, (p->total / 2 + LAM_SUM_GRAIN) * size);
    return lam_comm_agree(x->share.comm, status);
}

/* ---- create and free ---- */

static lam_status no_memory(const lam_exchange *x)
{
    return lam_fail(LAM_ERR_MEMORY, "exchange of %zu gradients: no memory", x->model->params.total);
}

static lam_status open_host(lam_exchange *x)
{
    const lam_params *p = &x->model->params;
    const size_t size = lam_class_size(p->dev, LAM_WIDE);
    x->stage = p->dev->own_memory ? malloc(p->total * size) : NULL;
    x->scratch = malloc((p->total / 2 + LAM_SUM_GRAIN) * size);
    if (!x->scratch || (!x->stage && p->dev->own_memory))
        return no_memory(x);
    return x->share.overlap ? lam_background_start(&x->beside, sum_stretch, x) : LAM_OK;
}

/* The messages of a step are others with the overlap than without: all ranks do it, or none. */
static lam_status agree_on_overlap(lam_exchange *x)
{
    unsigned char against = !x->share.overlap || x->model->params.dev->own_memory ||
                            !lam_comm_any_thread(x->share.comm);
    LAM_TRY(lam_comm_any(x->share.comm, &against, 1));
    x->share.overlap = !against;
    return LAM_OK;
}

static int is_alone(const lam_exchange *x)
{
    return lam_comm_size(x->share.comm) == 1 && !x->nccl;
}

lam_status lam_exchange_create(lam_exchange *x, lam_model *model, lam_share share)
{
    const lam_params *p = &model->params;
    *x = (lam_exchange){.share = share, .model = model, .left = p->total};
    lam_status status = LAM_OK;
    if (p->dev->link && (lam_comm_size(share.comm) > 1 || lam_nccl_wanted()))
        status = open_nccl(x);
    if (status == LAM_OK && is_alone(x))
        return LAM_OK;
    if (status == LAM_OK)
        status = agree_on_overlap(x);
    x->used = calloc((size_t)p->n + 1, 1);
    if (status == LAM_OK && !x->used)
        status = no_memory(x);
    if (status == LAM_OK && !x->nccl)
        status = open_host(x);
    if (status != LAM_OK)
        lam_exchange_free(x);
    return status;
}

void lam_exchange_free(lam_exchange *x)
{
    lam_background_stop(x->beside);
    if (x->nccl) {
        lam_dev *dev = x->model->dev;
        dev->ops->release(dev, x->scratch);
        dev->ops->release(dev, x->zero);
        lam_nccl_close(x->nccl);
        x->scratch = NULL;
    }
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

static lam_status sum_staged(lam_exchange *x)
{
    const lam_params *p = &x->model->params;
    lam_dev *dev = p->dev;
    const size_t bytes = p->total * lam_class_size(dev, LAM_WIDE);
    LAM_TRY(dev->ops->download(dev, x->stage, p->grad, bytes));
    LAM_TRY(
        lam_comm_sum(x->share.comm, x->stage, x->scratch, p->total, dev->wide, x->share.reduce));
    dev->ops->upload(dev, p->grad, x->stage, bytes);
    return LAM_OK;
}

/* What was not given early. */
static lam_status sum_left(lam_exchange *x)
{
    const size_t n = x->left;
    x->left = x->model->params.total;
    LAM_TRY(x->model->dev->ops->sync(x->model->dev));
    return sum_stretch(x, 0, n);
}

int lam_exchange_early(const lam_exchange *x)
{
    return x->beside != NULL;
}

void lam_exchange_part(lam_exchange *x, size_t from)
{
    lam_background_give(x->beside, from, x->left - from);
    x->left = from;
}

lam_status lam_exchange_gradients(lam_exchange *x)
{
    if (is_alone(x))
        return LAM_OK;
    const double began = lam_clock();
    if (x->beside)
        LAM_TRY(lam_background_wait(x->beside));
    LAM_TRY(join_marks(x));
    const double met = lam_clock();
    LAM_TRY(x->nccl    ? lam_nccl_sum(x->nccl, x->model->params.grad, x->scratch,
                                      x->model->params.total, x->share.reduce)
            : x->stage ? sum_staged(x)
                       : sum_left(x));
    x->waited += met - began;
    x->took += lam_clock() - met;
    return LAM_OK;
}

/* ---- exchanging ranges of a vector ---- */

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
    LAM_TRY(dev->ops->sync(dev));
    if (x->stage)
        LAM_TRY(move(x, flat, list, n, 1));
    unsigned char nothing = 0;
    const double began = lam_clock();
    LAM_TRY(lam_comm_any(x->share.comm, &nothing, 1)); /* waiting is not counted as sending */
    const double met = lam_clock();
    LAM_TRY(x->nccl ? lam_nccl_spread(x->nccl, pieces, n)
                    : lam_comm_spread(x->share.comm, pieces, n));
    if (x->stage)
        LAM_TRY(move(x, flat, list, n, 0));
    x->waited += met - began;
    x->took += lam_clock() - met;
    return LAM_OK;
}

lam_status lam_exchange_spread(lam_exchange *x, void *flat, const lam_stretch *list, int n)
{
    if (is_alone(x) || n == 0)
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
