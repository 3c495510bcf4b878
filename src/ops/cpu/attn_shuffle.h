/* attn_shuffle.h -- sixteen vectors of sixteen: transposing them, and summing each of them.
 *
 * Both go by halves.  In step h = 8, 4, 2, 1 the vectors i and i + h meet: LOW takes the even blocks
 * of h lanes of both, HIGH the odd ones.  Keeping both is one step of a transpose; adding the two is
 * one step of sixteen sums at once. */
#ifndef LAM_OPS_CPU_ATTN_SHUFFLE_H
#define LAM_OPS_CPU_ATTN_SHUFFLE_H

#include "ops/cpu/attn_tile.h"

/* clang-format off */
#define LAM_LOW_8_  0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define LAM_HIGH_8_ 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LAM_LOW_4_  0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define LAM_HIGH_4_ 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LAM_LOW_2_  0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define LAM_HIGH_2_ 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LAM_LOW_1_  0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define LAM_HIGH_1_ 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
/* clang-format on */

#define LAM_TRADE_(h)                                                                              \
    LAM_UNROLL                                                                                     \
    for (int i = 0; i < LAM_VEC; i++)                                                              \
        if (!(i & h)) {                                                                            \
            const lam_f16v low = __builtin_shufflevector(x[i], x[i + h], LAM_LOW_##h##_);          \
            x[i + h] = __builtin_shufflevector(x[i], x[i + h], LAM_HIGH_##h##_);                   \
            x[i] = low;                                                                            \
        }

#define LAM_FOLD_(h)                                                                               \
    LAM_UNROLL                                                                                     \
    for (int i = 0; i < h; i++)                                                                    \
        x[i] = __builtin_shufflevector(x[i], x[i + h], LAM_LOW_##h##_) +                           \
               __builtin_shufflevector(x[i], x[i + h], LAM_HIGH_##h##_);

/* clang-format off */
/* x[i][c] becomes x[c][i]. */
LAM_INLINE void lam_transpose16(lam_f16v x[LAM_VEC])
{
    LAM_TRADE_(8)
    LAM_TRADE_(4)
    LAM_TRADE_(2)
    LAM_TRADE_(1)
}

/* clang-format on */

/* Lane i is the sum of the lanes of x[i]; x is used up. */
LAM_INLINE lam_f16v lam_sums16(lam_f16v x[LAM_VEC])
{
    LAM_FOLD_(8)
    LAM_FOLD_(4)
    LAM_FOLD_(2)
    LAM_FOLD_(1)
    return x[0];
}

#endif
