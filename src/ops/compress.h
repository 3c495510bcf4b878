/* compress.h -- what a compressed memory needs besides products and attention. */
#ifndef LAM_OPS_COMPRESS_H
#define LAM_OPS_COMPRESS_H

#include "ops/types.h"

typedef enum lam_pool_kind { LAM_MEAN, LAM_MAXIMUM } lam_pool_kind;

/* out[r] = mean or maximum, column by column, of the rows in[group * r .. group * r + group - 1].  All
 * contiguous, rows ld apart, of width true columns (the rest zero in, zero out). */
typedef struct lam_pool {
    lam_pool_kind kind;
    int rows, group, width, ld; /* rows of out */
    const void *in;             /* ACT [rows * group][ld] */
    void *out;                  /* ACT [rows][ld] */
} lam_pool;

/* Squared distance of the rows of two matrices, and its gradient with respect to the first:
 *   sum[r] = weight * sum_c (a[r][c] - b[r][c])^2,   d[r][c] = 2 * weight * scale * (a[r][c] - b[r][c])
 * Contiguous, rows ld apart; padding is equal in a and b.  d may be a or b. */
typedef struct lam_distance {
    int rows, width, ld;
    double weight, scale;
    const void *a, *b; /* ACT */
    void *sum;         /* WIDE [rows] */
    void *d;           /* ACT */
} lam_distance;

#endif
