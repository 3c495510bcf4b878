/* cuda/attn_sm90.cuh -- what the Hopper attention kernels share: 64 x 64 tiles of a warpgroup.
 *
 * Rows are always queries.  Of the two parts of a score, content and position, one is a product with
 * the 64 columns at hand; the other is a product with a *band* of 128 rows, in two halves of 64, of
 * which every score reads one element:
 *   columns are keys       band of r by place:  S[row][x] += band[row][x + 63 - row]   (RIGHT)
 *   columns are distances  band of keys:        S[row][x] += band[row][x + row]        (LEFT)
 * A row of the band lies in one quad of lanes; warp w reads ten of its sixteen tiles of 8 columns,
 * starting at a place that depends on w: a branch on w, so that register numbers are constants.
 * attn_tile.cuh explains the shuffles. */
#ifndef LAM_OPS_CUDA_ATTN_SM90_CUH
#define LAM_OPS_CUDA_ATTN_SM90_CUH

#include "ops/cuda/attn_tile.cuh"
#include "ops/cuda/attn_wgmma.cuh"

enum attn_side { RIGHT, LEFT };

enum {
    WG_ROWS = 64,            /* of every tile */
    WG_TILE = WG_ROWS * 128, /* its bytes */
    WG_THREADS = 128,        /* of a warpgroup */
    WG_STEP_ROWS = 32,
    WG_STEP_COLS = 2048, /* bytes of a step of depth 16, by rows and by columns */
    WG_GROUPS = 2,       /* warpgroups of a block */
    WG_BLOCK = WG_GROUPS * WG_THREADS
};

static __device__ __forceinline__ attn_skew attn_skew_by(attn_side side, int lane)
{
    const int g = lane / 4, t = lane % 4, quad = lane & ~3, shift = side == RIGHT ? 7 - g : g;
    const int even = t + (shift + 1) / 2, odd = t + shift / 2;
    return {quad + even % 4, quad + odd % 4, even >= 4, odd >= 4, shift % 2 == 1};
}

/* s += the band, skewed, as warp W of its group sees it. */
template <attn_side SIDE, int W>
static __device__ __forceinline__ void
attn_add_skewed_by(float (&s)[8][4], const float (&band)[2][8][4], const attn_skew &skew)
{
    enum { FIRST = SIDE == RIGHT ? 2 * (3 - W) : 2 * W };
    float last[4];
#pragma unroll
    for (int n = 0; n < 10; n++) {
        const float(&from)[4] = band[(FIRST + n) / 8][(FIRST + n) % 8];
        float now[4];
        now[0] = __shfl_sync(ATTN_FULL_WARP, from[0], skew.even);
        now[1] = __shfl_sync(ATTN_FULL_WARP, from[1], skew.odd);
        now[2] = __shfl_sync(ATTN_FULL_WARP, from[2], skew.even);
        now[3] = __shfl_sync(ATTN_FULL_WARP, from[3], skew.odd);
#pragma unroll
        for (int half = 0; half < 2; half++) { /* 0: row g, 1: row g + 8 */
            const int tile = n - (half == (SIDE == RIGHT ? 0 : 1) ? 2 : 1);
            if (tile < 0 || tile > 7)
                continue;
            const float x = skew.even_next ? now[2 * half] : last[2 * half];
            const float y = skew.odd_next ? now[2 * half + 1] : last[2 * half + 1];
            s[tile][2 * half] += skew.swap ? y : x;
            s[tile][2 * half + 1] += skew.swap ? x : y;
        }
#pragma unroll
        for (int x = 0; x < 4; x++)
            last[x] = now[x];
    }
}

template <attn_side SIDE>
static __device__ __forceinline__ void
attn_add_skewed(float (&s)[8][4], const float (&band)[2][8][4], int warp, const attn_skew &skew)
{
    switch (warp) {
    case 0:
        return attn_add_skewed_by<SIDE, 0>(s, band, skew);
    case 1:
        return attn_add_skewed_by<SIDE, 1>(s, band, skew);
    case 2:
        return attn_add_skewed_by<SIDE, 2>(s, band, skew);
    default:
        return attn_add_skewed_by<SIDE, 3>(s, band, skew);
    }
}

/* d = a b^T for tiles a, b of 64 rows of K elements, in the background. */
template <int K>
static __device__ __forceinline__ void attn_wg_rows(float (&d)[8][4], uint32_t a, uint32_t b)
{
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++)
        attn_wg_mma<64, BY_ROWS, BY_ROWS>(d, attn_operand(a + WG_STEP_ROWS * kk),
                                          attn_operand(b + WG_STEP_ROWS * kk), kk > 0);
}

/* The same with a in registers. */
template <int K>
static __device__ __forceinline__ void attn_wg_rows(float (&d)[8][4],
                                                    const uint32_t (&a)[K / 16][4], uint32_t b)
{
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++)
        attn_wg_mma<64, BY_ROWS>(d, a[kk], attn_operand(b + WG_STEP_ROWS * kk), kk > 0);
}

/* d += a^T b: a holds 64 columns, b K columns, both 64 rows. */
template <int K>
static __device__ __forceinline__ void attn_wg_columns(float (&d)[K / 8][4], uint32_t a, uint32_t b)
{
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
        attn_wg_mma<K, BY_COLUMNS, BY_COLUMNS>(d, attn_operand(a + WG_STEP_COLS * kk),
                                               attn_operand(b + WG_STEP_COLS * kk), true);
}

/* The 64 x 64 numbers of a warpgroup as left operands. */
static __device__ __forceinline__ void attn_pack_left(uint32_t (&a)[4][4], const float (&s)[8][4])
{
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            a[kk][x] = attn_pack(s[2 * kk + x / 2][x % 2 * 2], s[2 * kk + x / 2][x % 2 * 2 + 1]);
}

/* The same into this warp's sixteen rows of a tile. */
static __device__ __forceinline__ void attn_store_left(uint32_t rows, const float (&s)[8][4],
                                                       const attn_lanes &lanes)
{
    uint32_t a[4][4];
    attn_pack_left(a, s);
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
        attn_store4(rows + (lanes.a ^ (uint32_t)(kk << 5)), a[kk]);
}

/* Rows of a tile copied by the whole block. */
template <int K>
static __device__ __forceinline__ void attn_fetch(uint32_t to, const lam_bf16 *from, size_t ld,
                                                  int first, int limit)
{
    attn_load_rows<K, WG_ROWS, WG_BLOCK>(to, from, ld, first, 1, limit);
}

#endif
