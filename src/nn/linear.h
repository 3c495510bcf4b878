/* linear.h -- y = x W^T and its gradients, on rows that lie in blocks.
 *
 * A segment stores memory rows and current rows of a stream contiguously, so most layers work on "rows a .. b of every
 * stream".  If these rows are contiguous, or one row per stream, this is a single GEMM; otherwise one GEMM per
 * stream. */
#ifndef LAM_NN_LINEAR_H
#define LAM_NN_LINEAR_H

#include "nn/weights.h"

/* Row r of block b at element b * step + r * ld. */
typedef struct lam_rows {
    void *p;
    size_t step, ld;
} lam_rows;

/* Which rows, and the sizes of W [out][in] (stored rows ldw apart). */
typedef struct lam_linear {
    lam_dev *dev;
    int blocks, rows; /* rows per block */
    int in, out;
    size_t ldw;
} lam_linear;

typedef struct lam_epilogue {
    int add;          /* y += instead of y = */
    const void *bias; /* WIDE [out], or NULL */
    int relu;
    lam_drop drop;
    lam_class type; /* of y: ACT, or HALF or BYTE for a cache */
    void *scale;    /* BYTE: as c_scale and c_group of ops/gemm.h */
    int group;
} lam_epilogue;

/* y = x W^T, then the epilogue (NULL: none). */
void lam_linear_fwd(const lam_linear *l, lam_rows y, lam_rows x, lam_weights weight,
                    const lam_epilogue *epilogue);
/* The same with x = norm's y, which is computed first: one block of rows without a gap between them. */
void lam_linear_norm_fwd(const lam_linear *l, lam_rows y, const lam_norm *norm, lam_weights weight,
                         const lam_epilogue *epilogue);
/* dx = dy W + beta dx. */
void lam_linear_bwd_x(const lam_linear *l, lam_rows dx, lam_rows dy, lam_weights weight,
                      double beta);
/* The result of an epilogue with ReLU. */
typedef struct lam_passed {
    const void *h; /* its result, contiguous rows of `in` elements */
    double scale;  /* lam_drop_scale(p), 1 without dropout */
    void *dbias;   /* WIDE [in], accumulated */
} lam_passed;

/* dx = dy W goes back through x = drop(relu(z + bias)) at once: dz, contiguous, and dbias.  One block. */
void lam_linear_bwd_relu(const lam_linear *l, lam_rows dz, lam_rows dy, lam_weights weight,
                         const lam_passed *passed);
/* dW += dy^T x. */
void lam_linear_bwd_w(const lam_linear *l, void *dweight, lam_rows dy, lam_rows x);

/* Rows from..end of a [blocks][cap][ld] buffer. */
lam_rows lam_rows_from(const lam_dev *dev, void *p, int cap, size_t ld, int from);

#endif
