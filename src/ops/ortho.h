/* ortho.h -- what Muon needs besides matrix products: momentum, scaling, a polynomial, and rows of one length.
 *
 * Muon steps along the orthogonal factor of a matrix's momentum.  Newton-Schulz finds it by matrix
 * products: X <- (a I + b A + c A A) X with A = X X^T, begun with |X| = 1 (train/muon.c).  Matrices
 * of one shape are treated together; X is a buffer of its own, so they may lie anywhere in the flat
 * vectors.  Padding is zero and stays zero. */
#ifndef LAM_OPS_ORTHO_H
#define LAM_OPS_ORTHO_H

#include "ops/types.h"

/* For matrix i, `size` elements from offset[i] of the flat vectors on:
 *   g = grad * min(1, clip / (norm + 1e-6))   (clip 0: unclipped), as in lam_update
 *   m = beta m + g
 *   u = g + beta m                            (Nesterov: the momentum after one more such step)
 *   x_i = u / |u|, the norm over the whole matrix, in double; 0 where u is 0
 * If norm is not finite m stays and x is 0. */
typedef struct lam_ortho_begin {
    const size_t *offset; /* [count], host memory, borrowed for the call */
    int count;
    size_t size;
    double beta, clip;
    const void *norm; /* WIDE [1]: of all gradients, from gnorm */
    const void *grad; /* WIDE, flat */
    void *m;          /* WIDE, flat */
    void *x;          /* ACT [count][size] */
} lam_ortho_begin;

/* q = a I + b A + c P for `count` square matrices of n rows, one after the other.  q may be P. */
typedef struct lam_ortho_mix {
    int count, n;
    double a, b, c;
    const void *A, *P; /* ACT [count][n][n] */
    void *q;           /* ACT [count][n][n] */
} lam_ortho_mix;

/* Rows of `count` matrices, [rows][cols] from offset[i] of a flat vector on, all get the same length, but none
 * becomes longer than LAM_EVEN_MOST times what it was: the momentum of a unit that has died fades away, and what is
 * left of it, in the end less than 1 / FLT_MAX, has no direction worth a step.  Rows of zeros stay.  The lengths there
 * are are summed up in double. */
#define LAM_EVEN_MOST 1e6
typedef struct lam_ortho_even {
    const size_t *offset; /* [count], host memory, borrowed for the call */
    int count, rows, cols;
    double length;
    void *x; /* WIDE, flat */
} lam_ortho_even;

#endif
