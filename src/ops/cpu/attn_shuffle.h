/* attn_shuffle.h -- sixteen vectors of sixteen: transposing them, and summing each of them.
 *
 * Both go by halves.  In step h = 8, 4, 2, 1 the vectors i and i + h meet: LOW takes the even blocks
 * of h lanes of both, HIGH the odd ones.  Keeping both is one step of a transpose; adding the two is
 * one step of sixteen sums at once.  Blocks of whole registers only change places. */
#ifndef LAM_OPS_CPU_ATTN_SHUFFLE_H
#define LAM_OPS_CPU_ATTN_SHUFFLE_H

#include "ops/cpu/attn_tile.h"

/* clang-format off */
#if defined(__AVX512F__)
#define LAM_LOW_8_  0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define LAM_HIGH_8_ 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LAM_LOW_4_  0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define LAM_HIGH_4_ 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LAM_LOW_2_  0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define LAM_HIGH_2_ 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LAM_LOW_1_  0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define LAM_HIGH_1_ 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#elif defined(__AVX__)
#define LAM_LOW_4_  0, 1, 2, 3, 8, 9, 10, 11
#define LAM_HIGH_4_ 4, 5, 6, 7, 12, 13, 14, 15
#define LAM_LOW_2_  0, 1, 8, 9, 4, 5, 12, 13
#define LAM_HIGH_2_ 2, 3, 10, 11, 6, 7, 14, 15
#define LAM_LOW_1_  0, 8, 2, 10, 4, 12, 6, 14
#define LAM_HIGH_1_ 1, 9, 3, 11, 5, 13, 7, 15
#else
#define LAM_LOW_2_  0, 1, 4, 5
#define LAM_HIGH_2_ 2, 3, 6, 7
#define LAM_LOW_1_  0, 4, 2, 6
#define LAM_HIGH_1_ 1, 5, 3, 7
#endif

#define LAM_TRADE_(h)                                                                              \
    LAM_UNROLL                                                                                     \
    for (int i = 0; i < LAM_REG; i++)                                                              \
        if (!(i & h)) {                                                                            \
            const lam_reg low = __builtin_shufflevector(x[i], x[i + h], LAM_LOW_##h##_);           \
            x[i + h] = __builtin_shufflevector(x[i], x[i + h], LAM_HIGH_##h##_);                   \
            x[i] = low;                                                                            \
        }

#define LAM_FOLD_(h)                                                                               \
    LAM_UNROLL                                                                                     \
    for (int i = 0; i < h; i++)                                                                    \
        x[i] = __builtin_shufflevector(x[i], x[i + h], LAM_LOW_##h##_) +                           \
               __builtin_shufflevector(x[i], x[i + h], LAM_HIGH_##h##_);

/* A square of registers: x[i][c] becomes x[c][i]. */
LAM_INLINE void lam_transpose_regs(lam_reg x[LAM_REG])
{
#if defined(__AVX512F__)
    LAM_TRADE_(8)
#endif
#if defined(__AVX__)
    LAM_TRADE_(4)
#endif
    LAM_TRADE_(2)
    LAM_TRADE_(1)
}

/* Lane i is the sum of the lanes of x[i]. */
LAM_INLINE lam_reg lam_sum_regs(lam_reg x[LAM_REG])
{
#if defined(__AVX512F__)
    LAM_FOLD_(8)
#endif
#if defined(__AVX__)
    LAM_FOLD_(4)
#endif
    LAM_FOLD_(2)
    LAM_FOLD_(1)
    return x[0];
}

/* clang-format on */

/* Row i of `out` becomes column i of sixteen rows `step` apart, square by square. */
LAM_INLINE void lam_transpose16(float *out, const float *in, ptrdiff_t step)
{
    for (int row = 0; row < LAM_VEC; row += LAM_REG)
        for (int col = 0; col < LAM_VEC; col += LAM_REG) {
            lam_reg x[LAM_REG];
            LAM_UNROLL
            for (int i = 0; i < LAM_REG; i++)
                x[i] = lam_reg_load(in + (row + i) * step + col);
            lam_transpose_regs(x);
            LAM_UNROLL
            for (int i = 0; i < LAM_REG; i++)
                memcpy(out + (col + i) * LAM_VEC + row, &x[i], sizeof x[i]);
        }
}

/* Lane i is the sum of row i of sixteen rows side by side.  A row's registers are first summed by halves, as
 * lam_sum16() does. */
LAM_INLINE lam_f16v lam_sums16(const float *in)
{
    lam_f16v sums;
    LAM_EACH(part)
    {
        lam_reg x[LAM_REG];
        LAM_UNROLL
        for (int i = 0; i < LAM_REG; i++) {
            const lam_f16v row = lam_load(in + (part * LAM_REG + i) * LAM_VEC);
#if defined(__AVX512F__)
            x[i] = row.r[0];
#elif defined(__AVX__)
            x[i] = row.r[0] + row.r[1];
#else
            x[i] = (row.r[0] + row.r[2]) + (row.r[1] + row.r[3]);
#endif
        }
        sums.r[part] = lam_sum_regs(x);
    }
    return sums;
}

#endif
