/* cuda/attn_sm90_skew.cuh -- the skew between keys and distances in the 64 x 64 tiles of a warpgroup.
 *
 * Of the two parts of a score, content and position, the second is a product with a *band* of 128
 * rows of r in the order of offsets, of which every score reads one element:
 *     S[row][x] += band[row][x + 63 - row]
 * A row of the band lies in one quad of lanes; warp w reads ten of its sixteen tiles of 8 columns,
 * starting at a column that depends on w: a branch on w, so that register numbers are constants.
 * attn_tile.cuh explains the shuffles. */
#ifndef LAM_OPS_CUDA_ATTN_SM90_SKEW_CUH
#define LAM_OPS_CUDA_ATTN_SM90_SKEW_CUH

#include "ops/cuda/attn_tile.cuh"

/* Are there scores that the band is added to, or are these the first? */
enum attn_sum { ONTO, FRESH };

/* One tile of the band, number n of the ten a warp reads: its columns go to where they belong. */
static __device__ __forceinline__ void attn_skew_tile(float (&s)[8][4], const float (&from)[4],
                                                      float (&last)[4], int n,
                                                      const attn_skew &skew, attn_sum sum)
{
    float now[4];
    attn_skew_fetch(now, from, skew);
#pragma unroll
    for (int half = 0; half < 2; half++) { /* 0: row g, 1: row g + 8 */
        const int tile = n - (half == 0 ? 2 : 1);
        if (tile < 0 || tile > 7)
            continue;
        const float x = skew.even_next ? now[2 * half] : last[2 * half];
        const float y = skew.odd_next ? now[2 * half + 1] : last[2 * half + 1];
        const float first = skew.swap ? y : x, second = skew.swap ? x : y;
        s[tile][2 * half] = sum == ONTO ? s[tile][2 * half] + first : first;
        s[tile][2 * half + 1] = sum == ONTO ? s[tile][2 * half + 1] + second : second;
    }
#pragma unroll
    for (int x = 0; x < 4; x++)
        last[x] = now[x];
}

/* Tiles FROM .. FROM + TILES - 1 of the band as warp W of its group sees them. */
template <int W, int FROM, int TILES>
static __device__ __forceinline__ void
attn_skew_by_warp(float (&s)[8][4], const float (&band)[TILES][4], float (&last)[4],
                  const attn_skew &skew, attn_sum sum)
{
    enum { FIRST = 2 * (3 - W) };
#pragma unroll
    for (int n = 0; n < 10; n++)
        if (FIRST + n >= FROM && FIRST + n < FROM + TILES)
            attn_skew_tile(s, band[FIRST + n - FROM], last, n, skew, sum);
}

/* s += tiles FROM .. of the band, skewed; parts of a band come in order, and `last` carries from one
 * to the next. */
template <int FROM, int TILES>
static __device__ __forceinline__ void
attn_add_skewed(float (&s)[8][4], const float (&band)[TILES][4], float (&last)[4], int warp,
                const attn_skew &skew, attn_sum sum = ONTO)
{
    switch (warp) {
    case 0:
        return attn_skew_by_warp<0, FROM>(s, band, last, skew, sum);
    case 1:
        return attn_skew_by_warp<1, FROM>(s, band, last, skew, sum);
    case 2:
        return attn_skew_by_warp<2, FROM>(s, band, last, skew, sum);
    default:
        return attn_skew_by_warp<3, FROM>(s, band, last, skew, sum);
    }
}

/* s = the part of tiles 0 .. 7 of the band, zero where it has none; tiles 8 .. 15 are to be added. */
static __device__ __forceinline__ void attn_begin_skewed(float (&s)[8][4],
                                                         const float (&band)[8][4],
                                                         float (&last)[4], int warp,
                                                         const attn_skew &skew)
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            s[n][x] = 0.0f;
    attn_add_skewed<0>(s, band, last, warp, skew, FRESH);
}

#endif
