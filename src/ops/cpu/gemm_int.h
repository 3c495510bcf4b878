/* gemm_int.h -- what the files of matrix products share: a block of a product, and what is done behind it.
 *
 *   gemm.c          the entry point, the library, and who multiplies which block
 *   gemm_tiles.c    y = x W^T by our own tiles
 *   gemm_finish.c   bias, ReLU and dropout, or the gradient of ReLU, while a block is near
 *   gemm_check.c    does the library work?
 *   gemv.c, gemm_narrow.c   a few rows; narrow operands (gemv.h) */
#ifndef LAM_OPS_CPU_GEMM_INT_H
#define LAM_OPS_CPU_GEMM_INT_H

#include "ops/cpu/chunks.h"
#include "ops/cpu/philox.h"

/* C = A B + beta C with the layout of `shape`, and m, n, k >= 1 of its own: a block of a product, or some terms. */
typedef struct lam_product {
    const lam_gemm *shape;
    size_t which, row, col; /* of the batch; where the block begins in C */
    size_t m, n, k, lda, ldb;
    const float *a, *b;
    float *c, beta;
} lam_product;

/* ---- gemm_finish.c ---- */

/* What ops/gemm.h fuses behind a product. */
typedef struct lam_finish {
    int some; /* is there anything to do? */
    lam_mask mask;
    lam_chunks chunks; /* with shape->h: of rows, whose sums for dbias are in `partial` */
    float *partial;
} lam_finish;

lam_finish lam_finish_make(const lam_cpu_dev *dev, const lam_gemm *g);
/* Rows of a block, and n of its columns from `col` on (a multiple of sixteen).  With shape->h each chunk is done by one thread,
 * its rows in order. */
void lam_finish_rows(const lam_finish *f, const lam_product *p, size_t row, size_t rows, size_t col,
                     size_t n);
/* When all is done: dbias. */
void lam_finish_sums(const lam_finish *f, const lam_gemm *g);

/* ---- gemm_tiles.c ---- */

enum { LAM_GEMM_ROOM = (1 << 18) + (1 << 13) }; /* floats that lam_gemm_tiles() needs */

/* Depends on the whole product alone, not on how it is divided: so neither do the bits. */
int lam_gemm_tiles_take(const lam_gemm *g);
/* p and, where `products` is more than 1, the same block of those behind it, which have B in common; then f. */
void lam_gemm_tiles(const lam_product *p, size_t products, float *room, const lam_finish *f);

#endif
