/* heads.h -- products of matrices that every head of every stream has one of. */
#ifndef LAM_MEM_HEADS_H
#define LAM_MEM_HEADS_H

#include "mem/mem.h"

/* A matrix of activations of one head of one stream, and how far the next head's and the next stream's are. */
typedef struct lam_heads {
    void *p;
    size_t ld, head, stream;
} lam_heads;

/* C = A B of every head of every stream; of `shape` m, n, k, ta and tb count. */
void lam_heads_gemm(const lam_segment *s, lam_gemm shape, lam_heads a, lam_heads b, lam_heads c);

#endif
