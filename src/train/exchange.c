/* exchange.c -- see exchange.h.
 *
 * The gradients of a layer are summed while the layers below are still in backward; each number is summed in the same
 * tree whenever that happens.  In the host's memory a thread does it, since MPI makes no progress by itself.  A device
 * with memory of its own has its whole backward pass in its queue by then, perhaps as one captured graph: the pass
 * marks where a layer is done, and this thread, which has nothing else to do, follows the marks with a second queue:
 * by NCCL, or staged through the host. */
#include "train/exchange.h"

#include "core/arena.h"
#include "core/clock.h"
#include "core/log.h"
#include "train/optimizer.h"

#include <stdlib.h>
#include <string.h>

/* The context that sends: its own, or the model's. */
static lam_dev *sender(const lam_exchange *x)
{
    return x->queue ? x->queue : x->model->dev;
}

static char *place(const lam_exchange *x, const void *base, size_t at)
{
    return lam_at(x->model->dev, LAM_WIDE, base, at);
}

/* Sums a stretch of the gradients, which are in host memory. */
static lam_status sum_host(void *user, size_t from, size_t count)
{
    lam_exchange *x = user;
    const lam_params *p = &x->model->params;
    return lam_comm_sum(x->share.comm, place(x, x->stage ? x->stage : p->grad, from), x->scratch,
                        count, p->dev->wide, x->share.reduce);
}

/* ---- NCCL: between devices with their own memory ---- */

static void add_on_device(void *user, void *a, void *b, size_t n)
{
    lam_exchange *x = user;
    lam_sgd_plain(sender(x), &(lam_plain_sgd){.n = n, .p = a, .x = b, .lr = -1.0, .zero = x->zero});
}

static lam_status sync_sender(void *user)
{
    lam_dev *dev = sender(user);
    return dev->ops->sync(dev);
}

static int sender_is_idle(void *user)
{
    lam_dev *dev = sender(user);
    return dev->link->idle(dev);
}

/* Joins the others by NCCL, or says why not. */
static lam_status open_nccl(lam_exchange *x)
{
    const lam_params *p = &x->model->params;
    lam_dev *dev = p->dev;
    const char *const when = x->queue ? ", beside the backward pass" : "";
    const size_t size = lam_class_size(dev, LAM_WIDE);
    char why[256];
    LAM_TRY(lam_nccl_open(&x->nccl, why, x->share.comm,
                          &(lam_nccl_device){.user = x,
                                             .stream = sender(x)->link->stream,
                                             .card = dev->link->card,
                                             .sync = sync_sender,
                                             .idle = sender_is_idle,
                                             .add = add_on_device}));
    if (!x->nccl) {
        lam_log(LAM_LOG_INFO, "exchange: through host memory, by %s%s (%s)",
                lam_comm_name(x->share.comm), when, why);
        return LAM_OK;
    }
    lam_log(LAM_LOG_INFO, "exchange: between GPUs, by %s%s", lam_nccl_name(x->nccl), when);
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
    return x->share.overlap && !x->queue ? lam_background_start(&x->beside, sum_host, x) : LAM_OK;
}

/* The messages of a step are others with the overlap than without: all ranks do it, or none. */
static lam_status agree_on_overlap(lam_exchange *x)
{
    const lam_dev *dev = x->model->dev;
    unsigned char against =
        !x->share.overlap || (dev->own_memory ? !dev->link : !lam_comm_any_thread(x->share.comm));
    LAM_TRY(lam_comm_any(x->share.comm, &against, 1));
    x->share.overlap = !against;
    return LAM_OK;
}

static lam_status open_queue(lam_exchange *x)
{
    lam_dev *dev = x->model->dev;
    const lam_dev_options same = {.max_memory = dev->max_memory};
    return lam_comm_agree(x->share.comm, x->share.overlap && dev->own_memory
                                             ? dev->ops->open(&x->queue, &same)
                                             : LAM_OK);
}

static int is_alone(const lam_exchange *x)
{
    return lam_comm_size(x->share.comm) == 1 && !x->nccl;
}

static lam_status open_parts(lam_exchange *x)
{
    const lam_params *p = &x->model->params;
    LAM_TRY(agree_on_overlap(x));
    LAM_TRY(open_queue(x));
    if (p->dev->link)
        LAM_TRY(open_nccl(x));
    x->used = calloc((size_t)p->n + 1, 1);
    if (!x->used)
        return no_memory(x);
    return x->nccl ? LAM_OK : open_host(x);
}

lam_status lam_exchange_create(lam_exchange *x, lam_model *model, lam_share share)
{
    *x = (lam_exchange){.share = share, .model = model, .left = model->params.total};
    if (lam_comm_size(share.comm) == 1 && !(model->dev->link && lam_nccl_wanted()))
        return LAM_OK;
    const lam_status status = open_parts(x);
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
    if (x->queue)
        x->queue->ops->close(x->queue);
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

static lam_status sum_staged(lam_exchange *x, size_t from, size_t count)
{
    lam_dev *dev = sender(x);
    const size_t bytes = count * lam_class_size(dev, LAM_WIDE);
    void *const host = place(x, x->stage, from);
    void *const there = place(x, x->model->params.grad, from);
    LAM_TRY(dev->ops->download(dev, host, there, bytes));
    LAM_TRY(sum_host(x, from, count));
    dev->ops->upload(dev, there, host, bytes);
    return LAM_OK;
}

/* Of gradients that are there. */
static lam_status sum_stretch(lam_exchange *x, size_t from, size_t count)
{
    return x->nccl    ? lam_nccl_sum(x->nccl, (float *)place(x, x->model->params.grad, from),
                                     x->scratch, count, x->share.reduce)
           : x->stage ? sum_staged(x, from, count)
                      : sum_host(x, from, count);
}

int lam_exchange_early(const lam_exchange *x)
{
    return x->beside || x->queue;
}

/* Parts of less than one LAM_MARKS-th wait for the next: there are no more marks, and short messages cost as much. */
size_t lam_exchange_due(lam_exchange *x, size_t from, size_t end)
{
    const size_t total = x->model->params.total;
    if (end == total) {
        x->left = total;
        x->parts = 0;
    }
    return (x->left - from) * LAM_MARKS >= total ? x->left - from : 0;
}

void lam_exchange_part(lam_exchange *x, size_t from)
{
    lam_dev *dev = x->model->dev;
    if (x->beside) {
        lam_background_give(x->beside, from, x->left - from);
    } else {
        dev->link->mark(dev, x->parts);
        x->from[x->parts++] = from;
    }
    x->left = from;
}

/* The parts, each when the model's device has come to its mark. */
static lam_status sum_parts(lam_exchange *x)
{
    lam_dev *dev = x->model->dev, *own = x->queue;
    size_t end = x->model->params.total;
    for (int i = 0; i < x->parts; end = x->from[i++]) {
        own->link->after(own, dev, i);
        LAM_TRY(own->ops->sync(own));
        const int late = dev->link->idle(dev);
        const double began = lam_clock();
        LAM_TRY(sum_stretch(x, x->from[i], end - x->from[i]));
        *(late ? &x->took : &x->hidden) += lam_clock() - began;
    }
    return LAM_OK;
}

/* What was not passed early. */
static lam_status sum_left(lam_exchange *x)
{
    const size_t n = x->left;
    x->left = x->model->params.total;
    x->parts = 0;
    LAM_TRY(sum_stretch(x, 0, n));
    return x->queue ? x->queue->ops->sync(x->queue) : LAM_OK;
}

lam_status lam_exchange_gradients(lam_exchange *x)
{
    lam_dev *dev = x->model->dev;
    if (is_alone(x))
        return LAM_OK;
    LAM_TRY(sum_parts(x));
    LAM_TRY(dev->ops->sync(dev)); /* what is still computed is neither waited for nor sent */
    const double began = lam_clock();
    if (x->beside)
        LAM_TRY(lam_background_wait(x->beside));
    LAM_TRY(join_marks(x));
    const double met = lam_clock();
    LAM_TRY(sum_left(x));
    x->waited += met - began;
    x->took += lam_clock() - met;
    return LAM_OK;
}

double lam_exchange_hidden(const lam_exchange *x)
{
    return x->hidden + lam_background_busy(x->beside);
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
