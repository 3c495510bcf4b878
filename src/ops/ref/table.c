/* ref/table.c -- the reference device (host memory and one row of scratch) and its table. */
#include "core/arena.h"
#include "ops/ref/exact.h"

#include <stdlib.h>
#include <string.h>

/* There is one thread and one precision; widths are padded on request. */
lam_status lam_ref_open(lam_dev **out, const lam_ops *ops, const lam_dev_options *options)
{
    *out = NULL;
    lam_ref_dev *ref = calloc(1, sizeof *ref);
    if (!ref)
        return lam_fail(LAM_ERR_MEMORY, "device %s: no memory for the device itself", ops->name);
    ref->base = (lam_dev){.ops = ops,
                          .act = LAM_F64,
                          .wide = LAM_F64,
                          .tolerance = 1e-10,
                          .macs_per_s = 1e11,
                          .pad = options->pad > 0 ? options->pad : 1,
                          .narrow = 1,
                          .max_memory = options->max_memory};
    *out = &ref->base;
    return LAM_OK;
}

static lam_status ref_open(lam_dev **out, const lam_dev_options *options)
{
    return options->exact ? lam_ops_ref_exact.open(out, options)
                          : lam_ref_open(out, &lam_ops_ref, options);
}

void lam_ref_close(lam_dev *dev)
{
    if (!dev)
        return;
    free(((lam_ref_dev *)dev)->scores);
    free(dev);
}

size_t lam_ref_reserve_bytes(const lam_dev *dev, const lam_work *largest)
{
    (void)dev;
    return (size_t)largest->keys * sizeof(double);
}

/* Grows only, so that a smaller plan does not take from a larger one. */
lam_status lam_ref_reserve(lam_dev *dev, const lam_work *largest)
{
    lam_ref_dev *ref = (lam_ref_dev *)dev;
    const size_t keys = (size_t)largest->keys;
    if (keys <= ref->n_scores)
        return LAM_OK;
    LAM_TRY(lam_dev_ask(dev, "device ref", lam_ref_reserve_bytes(dev, largest)));
    double *scores = realloc(ref->scores, lam_ref_reserve_bytes(dev, largest));
    if (!scores)
        return lam_fail(LAM_ERR_MEMORY, "device ref: no memory for %zu attention scores", keys);
    ref->scores = scores;
    ref->n_scores = keys;
    return LAM_OK;
}

lam_status lam_ref_alloc(lam_dev *dev, void **out, size_t bytes)
{
    *out = NULL;
    LAM_TRY(lam_dev_ask(dev, "device ref", bytes));
    const size_t whole = (bytes / LAM_ALIGN + 1) * LAM_ALIGN; /* never 0 */
    if (whole >= bytes)
        *out = aligned_alloc(LAM_ALIGN, whole);
    if (!*out)
        return lam_fail(LAM_ERR_MEMORY, "device ref: no memory for %zu bytes", bytes);
    memset(*out, 0, whole);
    return LAM_OK;
}

void lam_ref_release(lam_dev *dev, void *memory)
{
    (void)dev;
    free(memory);
}

void lam_ref_upload(lam_dev *dev, void *dst, const void *host, size_t bytes)
{
    (void)dev;
    if (bytes)
        memcpy(dst, host, bytes);
}

lam_status lam_ref_download(lam_dev *dev, void *host, const void *src, size_t bytes)
{
    (void)dev;
    if (bytes)
        memcpy(host, src, bytes);
    return LAM_OK;
}

void lam_ref_zero(lam_dev *dev, void *dst, size_t bytes)
{
    (void)dev;
    if (bytes)
        memset(dst, 0, bytes);
}

lam_status lam_ref_sync(lam_dev *dev)
{
    (void)dev;
    return LAM_OK; /* nothing is ever queued, and nothing can go wrong */
}

size_t lam_ref_peak(lam_dev *dev)
{
    (void)dev;
    return 0;
}

/* Starting an operation costs nothing here. */
void lam_ref_repeat(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*work)(void *),
                    void *arg)
{
    (void)dev, (void)graphs, (void)key;
    work(arg);
}

void lam_ref_free_graphs(lam_dev *dev, lam_graphs *graphs)
{
    (void)dev, (void)graphs;
}

#define ENTRY(name, argument) .name = lam_ref_##name,

const lam_ops lam_ops_ref = {
    LAM_KERNEL_OPS(ENTRY) LAM_SHARED_OPS(LAM_HOST_ENTRY) /* every operation; then the device */
        .name = "ref",
    .summary = "float64, naive loops, one thread",
    .open = ref_open,
    LAM_REF_SERVICES,
};
