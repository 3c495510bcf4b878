/* rowwise.h -- work that goes row by row: residual + LayerNorm, dropout, copies, column sums. */
#ifndef LAM_OPS_ROWWISE_H
#define LAM_OPS_ROWWISE_H

#include "ops/types.h"

/* s = x + drop(add + bias);  y = LayerNorm(s) * gain + shift (biased variance).
 *
 * Covers every residual of the block (Eq. 3), post- and pre-norm:
 *   add  = NULL: s is x itself, `sum` is not written and backward reads x (bias, drop unused);
 *   gain = NULL: no normalisation, y = s; sum, mean, rstd, shift unused.
 * There are blocks * rows rows of `width` true columns, stored ld apart (columns width..ld-1 are
 * zero in and zero out).  x, y, dy, dx, dsum are views; add, sum, dadd are contiguous
 * [blocks*rows][ld]; mean, rstd are [blocks*rows].
 *
 * Backward, with the forward fields still in place:
 *   ds   = LayerNorm'(dy) + dsum          (dsum: gradient that reached the sum by another way)
 *   dx   = ds                             (overwritten; may be the same memory as dy or dsum)
 *   dadd = ds under the dropout mask      (overwritten)
 *   dgain, dshift, dbias += column sums   (dbias of the masked ds)
 * dx.p, dsum.p, dadd, dbias may be NULL. */
typedef struct lam_norm {
    int blocks, rows, width, ld;
    double eps;
    lam_drop drop;
    lam_view x, y;                /* ACT */
    const void *add;              /* ACT, or NULL */
    const void *bias;             /* WIDE [width], or NULL */
    void *sum;                    /* ACT: kept for backward */
    void *mean, *rstd;            /* WIDE: kept for backward */
    const void *gain, *shift;     /* WIDE [width] */
    lam_view dy, dx, dsum;        /* ACT */
    void *dadd;                   /* ACT */
    void *dgain, *dshift, *dbias; /* WIDE [width], accumulated */
} lam_norm;

/* out = drop(in), blocks * rows rows of width true columns, ld apart (the rest zero in, zero out).
 * Linear, so its backward is itself.  in and out may be equal.  p = 0 copies. */
typedef struct lam_dropout {
    int blocks, rows, width, ld;
    lam_drop drop;
    lam_view in, out; /* ACT */
} lam_dropout;

/* out = in for blocks of `count` consecutive elements of one class, block b at b * step.  Source and
 * destination must not overlap, except that they may be equal.  in.p NULL: zeros. */
typedef struct lam_copy {
    int blocks;
    size_t count;
    lam_class type;
    lam_view in, out;
} lam_copy;

/* out[c] += sum over rows of in[r][c]. */
typedef struct lam_colsum {
    int rows, width, ld;
    const void *in; /* ACT */
    void *out;      /* WIDE [width], accumulated */
} lam_colsum;

#endif
