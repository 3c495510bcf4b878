/* gemm.h -- matrix products: every linear map, its two gradients, and convolutions by rows. */
#ifndef LAM_OPS_GEMM_H
#define LAM_OPS_GEMM_H

#include "ops/types.h"

typedef enum lam_trans {
    LAM_KEEP, /* the operand is stored as it is used */
    LAM_FLIP  /* the operand is stored transposed */
} lam_trans;

/* For each of `batch` products:  C = A B + beta C,  then C = drop(relu(C + bias)) as far as asked.
 * All matrices are row-major.  A is m x k (stored k x m when flipped), B is k x n (stored n x k
 * when flipped), C is m x n.  Operands move on by step_* from one product to the next; a step of 0
 * reuses the operand, and step_c = 0 sums all products into one C.
 * Weights are stored [out][in] as in PyTorch, so for y = x W^T:
 *   y  = A=x  B=W flipped;     dx = A=dy  B=W kept;     dW = A=dy flipped  B=x kept, beta = 1.
 * B may be weights in HALF or BYTE, one matrix for all products (step_b = 0); a row of it as stored has
 * one scale.  C may be HALF, or BYTE on exact devices, where it is a cache: then beta = 0, and there is no bias, ReLU or
 * dropout. */
typedef struct lam_gemm {
    int m, n, k, batch;
    lam_trans ta, tb;
    const void *a, *b;   /* ACT; b: b_class */
    lam_class b_class;   /* ACT, HALF or BYTE */
    const void *b_scale; /* WIDE, one for each stored row of b; BYTE only */
    void *c;             /* c_class: ACT, HALF, BYTE, or WIDE for gradients of parameters */
    lam_class c_class;
    /* BYTE only: every c_group columns have one scale.  c_group divides n, ldc and step_c; the scale of the group that
     * begins at element x of c is c_scale[x / c_group]. */
    void *c_scale; /* WIDE */
    int c_group;
    size_t lda, ldb, ldc;
    size_t step_a, step_b, step_c;
    double beta;      /* 0 (C is not read) or 1 */
    const void *bias; /* WIDE [n], or NULL */
    int relu;         /* 0 or 1 */
    lam_drop drop; /* rows are counted through the batch: product i, row r is i * m + r; width n */

    /* Where C is the gradient of h = drop(relu(z + bias)), it goes on to z at once: with h, C = A B and
     * then what lam_relu_bwd says.  One product, C in ACT, beta = 0, no epilogue, ldc = n. */
    const void *h;  /* ACT [m][n], or NULL */
    double h_scale; /* lam_drop_scale(p), 1 without dropout */
    void *dbias;    /* WIDE [n], accumulated */
} lam_gemm;

/* The second half of a product with h, for back-ends that do it in a pass of its own.  The gradient of
 * h = drop(relu(z + bias)), from h alone: h > 0 exactly where the ReLU passed and the element was kept.
 * dh = h > 0 ? scale * dh : 0 in place; dbias += column sums of the new dh.  Contiguous [rows][width]. */
typedef struct lam_relu_bwd {
    int rows, width;
    double scale;
    const void *h; /* ACT */
    void *dh;      /* ACT, in place */
    void *dbias;   /* WIDE [width], accumulated */
} lam_relu_bwd;

static inline lam_relu_bwd lam_gemm_back(const lam_gemm *a)
{
    const lam_relu_bwd back = {a->m, a->n, a->h_scale, a->h, a->c, a->dbias};
    return back;
}

#endif
