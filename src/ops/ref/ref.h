/* ref.h -- the reference back-end: double precision, naive, serial.
 *
 * This folder is the executable specification of ops/.  Every operation is the shortest loop that
 * says what the paper says; the other back-ends are tested against it.  It refuses speed: no
 * threads, no fusion, no blocking, and no source shared with another back-end.  Both element
 * classes are double; widths are padded only where a test asks for it (lam_dev_options), and every
 * stride is honoured. */
#ifndef LAM_OPS_REF_REF_H
#define LAM_OPS_REF_REF_H

#include "core/rng.h"
#include "ops/ops.h"

#include <assert.h>

typedef struct lam_ref_dev {
    lam_dev base;
    double *scores; /* one row of attention scores; owned, set aside by reserve */
    size_t n_scores;
} lam_ref_dev;

extern const lam_ops lam_ops_ref, lam_ops_ref16;

/* Opens a device with the table `ops`. */
lam_status lam_ref_open(lam_dev **out, const lam_ops *ops, const lam_dev_options *options);

/* What both tables share besides operations. */
void lam_ref_close(lam_dev *dev);
size_t lam_ref_reserve_bytes(const lam_dev *dev, const lam_work *largest);
lam_status lam_ref_reserve(lam_dev *dev, const lam_work *largest);
lam_status lam_ref_alloc(lam_dev *dev, void **out, size_t bytes);
void lam_ref_release(lam_dev *dev, void *memory);
void lam_ref_upload(lam_dev *dev, void *dst, const void *host, size_t bytes);
lam_status lam_ref_download(lam_dev *dev, void *host, const void *src, size_t bytes);
void lam_ref_zero(lam_dev *dev, void *dst, size_t bytes);
lam_status lam_ref_sync(lam_dev *dev);
size_t lam_ref_peak(lam_dev *dev);
void lam_ref_repeat(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*work)(void *),
                    void *arg);
void lam_ref_free_graphs(lam_dev *dev, lam_graphs *graphs);

#define LAM_REF_SERVICES                                                                           \
    .close = lam_ref_close, .reserve = lam_ref_reserve, .reserve_bytes = lam_ref_reserve_bytes,    \
    .alloc = lam_ref_alloc, .release = lam_ref_release, .upload = lam_ref_upload,                  \
    .download = lam_ref_download, .zero = lam_ref_zero, .sync = lam_ref_sync,                      \
    .peak = lam_ref_peak, .left = lam_host_left, .repeat = lam_ref_repeat,                         \
    .replay = lam_host_replay, .free_graphs = lam_ref_free_graphs

#define LAM_REF_OP(name, argument) void lam_ref_##name(lam_dev *dev, const argument *a);
LAM_KERNEL_OPS(LAM_REF_OP)
#undef LAM_REF_OP
void lam_ref_relu_bwd(lam_dev *dev, const lam_relu_bwd *a); /* the second half of gemm */

/* P[i][j] of query i of head h of stream b, before dropout, for all keys j; lse is as forward left it. */
void lam_ref_attn_weights(double *p, const lam_attn *a, size_t b, size_t h, size_t i);

/* Row `row` of block `block` of a view of doubles; NULL stays NULL. */
static inline double *lam_ref_row(lam_view view, size_t ld, size_t block, size_t row)
{
    return view.p ? (double *)view.p + block * view.step + row * ld : NULL;
}

/* Element `at` of a buffer of ACT, HALF or BYTE (before its row's scale). */
static inline double lam_ref_element(const void *p, lam_class type, size_t at)
{
    double x = 0.0;
    switch (type) {
    case LAM_HALF:
        lam_convert(&x, LAM_F64, (const uint16_t *)p + at, LAM_BF16, 1);
        return x;
    case LAM_BYTE:
        return ((const int8_t *)p)[at];
    default:
        return ((const double *)p)[at];
    }
}

/* drop(x) = x * this: 0 for a dropped element, the inverse of the kept share for a kept one. */
static inline double lam_ref_mask(const lam_drop *d, size_t width, size_t row, size_t col)
{
    if (d->p == 0.0)
        return 1.0;
    const uint64_t index = (uint64_t)row * ((width + 7) / 8 * 8) + col;
    const int keep =
        lam_drop_keep(d->seed, lam_drop_step(d), d->site, index, lam_drop_threshold(d->p));
    return keep ? lam_drop_scale(d->p) : 0.0;
}

/* Does query i of stream b see key j? */
static inline int lam_ref_visible(const lam_attn *a, size_t b, size_t i, size_t j)
{
    const long gap = a->shift + (long)i - (long)j; /* how far the key lies in the query's past */
    if ((long)j < lam_attn_oldest(a, b))
        return 0;
    switch (a->mode) {
    case LAM_CAUSAL:
        return gap >= 0 && (a->reach == 0 || gap < a->reach);
    case LAM_AHEAD:
        return gap < 0;
    case LAM_FULL:
        return 1;
    }
    return 0;
}

/* The row of r, rbias and their gradients that the pair reads. */
static inline size_t lam_ref_position_row(const lam_attn *a, size_t i, size_t j)
{
    const long row = a->r_zero + a->r_sign * ((long)j - a->shift - (long)i);
    assert(row >= 0 && row < a->r_rows);
    return (size_t)row;
}

#endif
