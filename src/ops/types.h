/* types.h -- the few types that all operations share, and the letters used for shapes.
 *
 *   B streams (batch)   N target length   M memory length   L layers    V vocabulary
 *   H heads             K head width      D model width     F inner width
 *   m memory rows there are now (m <= M)  T rows of one stream, m + N
 * Layouts are written [B][T][D], fastest last.
 *
 * A buffer holds one of five element classes.  Which C type a class is, only the back-end knows:
 *           ref     cpu     cuda
 *   ACT     double  float   bf16 (float when verifying)   activations, GEMM operands, weights
 *   WIDE    double  float   float     statistics, log-sum-exp, vectors (biases, gains, u, v),
 *                                     gradients of parameters, master weights, moments
 *   INT     int32_t everywhere        token ids, row indices
 *   HALF    bf16 everywhere           weights and cached keys and values, for inference
 *   BYTE    int8_t everywhere         weights, with a scale (WIDE) for each row, for inference; on exact devices
 *                                     also cached keys and values, with a scale for each head of each row
 * HALF and BYTE are only for devices that say so (lam_dev.narrow), and only where an operation names them.
 * On exact devices (exact.h) ACT and WIDE are float.
 * Pointers are `void *` because they may be device addresses: code above ops never reads through
 * them.  Strides and offsets are in elements, never in bytes. */
#ifndef LAM_OPS_TYPES_H
#define LAM_OPS_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum lam_class { LAM_ACT, LAM_WIDE, LAM_INT, LAM_HALF, LAM_BYTE } lam_class;

/* Rows of several blocks (streams): row r of block b starts at element b * step + r * ld of p,
 * where ld is given beside the view.  A contiguous buffer has step = rows * ld. */
typedef struct lam_view {
    void *p;
    size_t step;
} lam_view;

/* One use of dropout: a pure function of these numbers (core/rng.h says which bits).  p = 0 is off.
 * In a matrix the element (row, col) has index row * round_up(width, 8) + col, where row counts the
 * rows of the call and width is the true width: every row begins a Philox block, and padding does
 * not shift the bits. */
typedef struct lam_drop {
    double p;
    uint64_t seed;
    uint32_t step;
    uint32_t site;
    const void *more; /* INT [1], added to step; NULL: nothing.  Work that repeats counts here. */
} lam_drop;

/* The step a mask is drawn for.  Back-ends whose memory is the host's call this. */
static inline uint32_t lam_drop_step(const lam_drop *d)
{
    return d->step + (d->more ? *(const uint32_t *)d->more : 0);
}

#endif
