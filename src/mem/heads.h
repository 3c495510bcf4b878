/* heads.h -- GEMMs batched over all heads of all streams. */
#ifndef LAM_MEM_HEADS_H
#define LAM_MEM_HEADS_H

#include "mem/mem.h"

/* A matrix of activations of one head of one stream, and the distances to the next head's and the next stream's. */
typedef struct lam_heads {
    void *p;
    size_t ld, head, stream;
} lam_heads;

/* C = A B for every head of every stream; only m, n, k, ta and tb of `shape` are used. */
void lam_heads_gemm(const lam_segment *s, lam_gemm shape, lam_heads a, lam_heads b, lam_heads c);

#endif
