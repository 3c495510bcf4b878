/* attn_tile.h -- the one inner loop of attention: eight rows times a few vectors, in registers.
 *
 *   C[8][16 n]  =  (C +)  A[8][depth]  B[depth][16 n]
 *
 * Attention's matrices are too small for a library call each (a head is 64 wide), so every product
 * of it is cut into these tiles.  A is read one number at a time and spread over a vector, along its
 * rows (queries, probabilities) or its columns (A transposed: keys collect from queries).  B is read
 * in vectors whose distance is free, so it may be plain rows or packed strips.
 * Nothing here knows about masks or edges: callers hand over whole tiles. */
#ifndef LAM_OPS_CPU_ATTN_TILE_H
#define LAM_OPS_CPU_ATTN_TILE_H

#include "ops/cpu/attn_warm.h"
#include "ops/cpu/vecmath.h"

enum { LAM_TILE = 8 }; /* rows of a tile */

/* Accumulators must fit the registers: 24 of 32 with AVX-512, 8 of 16 below. */
#if defined(__AVX512F__)
enum { LAM_TILE_STEP = 8, LAM_TILE_VECS = 3 };
#elif defined(__AVX__)
enum { LAM_TILE_STEP = 4, LAM_TILE_VECS = 1 };
#else
enum { LAM_TILE_STEP = 2, LAM_TILE_VECS = 1 };
#endif

typedef enum lam_tile_start { LAM_TILE_SET, LAM_TILE_ADD } lam_tile_start;
typedef enum lam_tile_order { LAM_TILE_ROWS, LAM_TILE_COLS } lam_tile_order;

typedef struct lam_tile {
    float *c;
    size_t ldc; /* ld + 1 makes C a skewed band */
    const float *a;
    size_t lda; /* element (i, k) at i * lda + k (ROWS) or k * lda + i (COLS) */
    const float *b;
    size_t ldb, next; /* the distance of B's rows, and of the vectors within a row */
    int depth;
    lam_warm *warm; /* advanced as tiles go, or NULL */
} lam_tile;

/* Columns of vectors from `first` on, rows from `row` on; everything after t is a constant. */
LAM_INLINE void tile_step(const lam_tile *t, size_t row, int first, const int vecs,
                          const lam_tile_order order, const lam_tile_start start)
{
    const size_t along = order == LAM_TILE_ROWS ? t->lda : 1;
    const size_t down = order == LAM_TILE_ROWS ? 1 : t->lda;
    const size_t ldb = t->ldb, next = t->next, ldc = t->ldc;
    const float *a = t->a + row * along, *b = t->b + (size_t)first * next;
    float *c = t->c + row * ldc + (size_t)first * LAM_VEC;
    const int regs = vecs * LAM_REGS;
    lam_reg sum[LAM_TILE_STEP][LAM_TILE_VECS * LAM_REGS];

    if (t->warm)
        lam_warm_step(t->warm);
    LAM_UNROLL
    for (int i = 0; i < LAM_TILE_STEP; i++) {
        LAM_UNROLL
        for (int v = 0; v < regs; v++)
            sum[i][v] = (lam_reg){0.0f};
    }
    for (int k = t->depth; k > 0; k--) {
        lam_reg bv[LAM_TILE_VECS * LAM_REGS];
        LAM_UNROLL
        for (int v = 0; v < regs; v++)
            bv[v] = lam_reg_load(b + (size_t)(v / LAM_REGS) * next + v % LAM_REGS * LAM_REG);
        LAM_UNROLL
        for (int i = 0; i < LAM_TILE_STEP; i++) {
            const lam_reg x = lam_reg_splat(a[(size_t)i * along]);
            LAM_UNROLL
            for (int v = 0; v < regs; v++)
                sum[i][v] = lam_reg_fma(x, bv[v], sum[i][v]);
        }
        a += down;
        b += ldb;
    }
    LAM_UNROLL
    for (int i = 0; i < LAM_TILE_STEP; i++) {
        LAM_UNROLL
        for (int v = 0; v < regs; v++) {
            float *at = c + (size_t)i * ldc + LAM_REG * v;
            /* Added at the end: many small terms first, the large one last, rounds least. */
            const lam_reg x = start == LAM_TILE_ADD ? sum[i][v] + lam_reg_load(at) : sum[i][v];
            memcpy(at, &x, sizeof x);
        }
    }
}

/* The whole tile, n vectors wide: in threes, the rest in twos. */
LAM_INLINE void lam_tile_mul(const lam_tile *t, int n, const lam_tile_order order,
                             const lam_tile_start start)
{
    for (size_t row = 0; row < LAM_TILE; row += LAM_TILE_STEP) {
        int v = 0;
#if defined(__AVX512F__)
        for (; n - v >= 5 || n - v == 3; v += 3)
            tile_step(t, row, v, 3, order, start);
        for (; n - v >= 2; v += 2)
            tile_step(t, row, v, 2, order, start);
#endif
        for (; v < n; v++)
            tile_step(t, row, v, 1, order, start);
    }
}

#endif
