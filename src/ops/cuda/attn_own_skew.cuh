/* cuda/attn_own_skew.cuh -- the skew down the columns of attn_own.cuh.
 *
 * Scores stand transposed: owned rows down, queries across.  Owned row 8 half + g and query
 * 8 n + 2t + x of a step of 16 x 16 read row
 *     KEYS       8 (half - n + 1) + g + 7 - (2t + x)      DISTANCES  8 (half + n) + g + 2t + x
 * of the window's product: in the accumulator layout a lane of the same column, in this group of 8
 * rows or the next, so one shuffle an element. */
#ifndef LAM_OPS_CUDA_ATTN_OWN_SKEW_CUH
#define LAM_OPS_CUDA_ATTN_OWN_SKEW_CUH

#include "ops/cuda/ptx.cuh"
#include "ops/cuda/attn_tile.cuh"

enum attn_owner { KEYS, DISTANCES };

struct slide {
    int lane[2]; /* by x */
    bool next[2];
};

template <attn_owner OWNER>
static __device__ __forceinline__ slide slide_of(const attn_lanes &l)
{
    slide s;
#pragma unroll
    for (int x = 0; x < 2; x++) {
        const int row = OWNER == KEYS ? l.g + 7 - 2 * l.t - x : l.g + 2 * l.t + x;
        s.lane[x] = row % 8 * 4 + l.t;
        s.next[x] = row >= 8;
    }
    return s;
}

/* s += the window's product, skewed.  w[tile][n]: rows 16 tile .. of the window, queries 8 n .. */
template <attn_owner OWNER>
static __device__ __forceinline__ void add_skewed(float (&s)[2][4], const float (&w)[2][2][4],
                                                  const slide &sl)
{
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int x = 0; x < 2; x++) {
            const int group = OWNER == KEYS ? 1 - n : n;
            float moved[3];
#pragma unroll
            for (int y = 0; y < 3; y++)
                moved[y] = __shfl_sync(ATTN_FULL_WARP,
                                       w[(group + y) / 2][n][(group + y) % 2 * 2 + x], sl.lane[x]);
            s[n][x] += sl.next[x] ? moved[1] : moved[0];
            s[n][2 + x] += sl.next[x] ? moved[2] : moved[1];
        }
}

#endif
