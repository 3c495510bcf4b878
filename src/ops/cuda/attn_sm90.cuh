/* cuda/attn_sm90.cuh -- what the Hopper attention kernels share: 64 x 64 tiles of a warpgroup.
 *
 * Rows are always queries.  Of the two parts of a score, content and position, one is a product with
 * the 64 columns at hand; the other is a product with a *band* of 128 rows, of which every score reads one element:
 *   columns are keys       band of r by place:  S[row][x] += band[row][x + 63 - row]   (RIGHT)
 *   columns are distances  band of keys:        S[row][x] += band[row][x + row]        (LEFT)
 * A row of the band lies in one quad of lanes; warp w reads ten of its sixteen tiles of 8 columns,
 * starting at a place that depends on w: a branch on w, so that register numbers are constants.
 * attn_tile.cuh explains the shuffles. */
#ifndef LAM_OPS_CUDA_ATTN_SM90_CUH
#define LAM_OPS_CUDA_ATTN_SM90_CUH

#include "ops/cuda/attn_tile.cuh"
#include "ops/cuda/attn_tma.cuh"
#include "ops/cuda/attn_wgmma.cuh"

#ifndef ATTN_GROUPS
#define ATTN_GROUPS 2
#endif

enum attn_side { RIGHT, LEFT };

enum {
    WG_ROWS = 64,            /* of every tile */
    WG_TILE = WG_ROWS * 128, /* its bytes */
    WG_THREADS = 128,        /* of a warpgroup */
    WG_STEP_ROWS = 32,
    WG_STEP_COLS = 2048,               /* bytes of a step of depth 16, by rows and by columns */
    WG_GROUPS = ATTN_GROUPS,           /* warpgroups of a block that compute */
    WG_BLOCK = WG_GROUPS * WG_THREADS, /* threads that compute; then those that copy */
    WG_ALL = WG_BLOCK + WG_THREADS,
    WG_REGISTERS = WG_GROUPS == 2 ? 240 : 160 /* of a thread that computes */
};

static __device__ __forceinline__ attn_skew attn_skew_by(attn_side side, int lane)
{
    const int g = lane / 4, t = lane % 4, quad = lane & ~3, shift = side == RIGHT ? 7 - g : g;
    const int even = t + (shift + 1) / 2, odd = t + shift / 2;
    return {quad + even % 4, quad + odd % 4, even >= 4, odd >= 4, shift % 2 == 1};
}

/* One tile of the band, number n of the ten a warp reads: its columns go to where they belong. */
template <attn_side SIDE, typename PUT>
static __device__ __forceinline__ void attn_skew_tile(const float (&from)[4], float (&last)[4],
                                                      int n, const attn_skew &skew, PUT put)
{
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
        put(tile, 2 * half, skew.swap ? y : x);
        put(tile, 2 * half + 1, skew.swap ? x : y);
    }
#pragma unroll
    for (int x = 0; x < 4; x++)
        last[x] = now[x];
}

/* Tiles FROM .. FROM + TILES - 1 of the band as warp W of its group sees them. */
template <attn_side SIDE, int W, int FROM, int TILES, typename PUT>
static __device__ __forceinline__ void
attn_skew_by_warp(const float (&band)[TILES][4], float (&last)[4], const attn_skew &skew, PUT put)
{
    enum { FIRST = SIDE == RIGHT ? 2 * (3 - W) : 2 * W };
#pragma unroll
    for (int n = 0; n < 10; n++)
        if (FIRST + n >= FROM && FIRST + n < FROM + TILES)
            attn_skew_tile<SIDE>(band[FIRST + n - FROM], last, n, skew, put);
}

/* Calls put(tile, register, value) for every score whose band element lies in these tiles; `last`
 * carries from one part of the band to the next. */
template <attn_side SIDE, int FROM, int TILES, typename PUT>
static __device__ __forceinline__ void attn_skew_band(const float (&band)[TILES][4],
                                                      float (&last)[4], int warp,
                                                      const attn_skew &skew, PUT put)
{
    switch (warp) {
    case 0:
        return attn_skew_by_warp<SIDE, 0, FROM>(band, last, skew, put);
    case 1:
        return attn_skew_by_warp<SIDE, 1, FROM>(band, last, skew, put);
    case 2:
        return attn_skew_by_warp<SIDE, 2, FROM>(band, last, skew, put);
    default:
        return attn_skew_by_warp<SIDE, 3, FROM>(band, last, skew, put);
    }
}

/* s += the whole band, skewed. */
template <attn_side SIDE>
static __device__ __forceinline__ void attn_add_skewed(float (&s)[8][4], const float (&band)[16][4],
                                                       int warp, const attn_skew &skew)
{
    float last[4];
    attn_skew_band<SIDE, 0>(band, last, warp, skew,
                            [&](int tile, int x, float value) { s[tile][x] += value; });
}

/* s += one half of the band, skewed: first the lower half, then the upper. */
template <attn_side SIDE, int HALF>
static __device__ __forceinline__ void attn_add_half(float (&s)[8][4], const float (&band)[8][4],
                                                     float (&last)[4], int warp,
                                                     const attn_skew &skew)
{
    attn_skew_band<SIDE, 8 * HALF>(band, last, warp, skew,
                                   [&](int tile, int x, float value) { s[tile][x] += value; });
}

/* d = a b^T in the background, for a tile a of 64 rows of K elements and N / 64 tiles b in line. */
template <int K, int N>
static __device__ __forceinline__ void attn_wg_rows(float (&d)[N / 8][4], uint32_t a, uint32_t b)
{
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++)
        attn_wg_mma<N, BY_ROWS, BY_ROWS>(d, attn_operand(a + WG_STEP_ROWS * kk),
                                         attn_operand(b + WG_STEP_ROWS * kk), kk > 0);
}

/* The same with a in registers. */
template <int K, int N>
static __device__ __forceinline__ void attn_wg_rows(float (&d)[N / 8][4],
                                                    const uint32_t (&a)[K / 16][4], uint32_t b)
{
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++)
        attn_wg_mma<N, BY_ROWS>(d, a[kk], attn_operand(b + WG_STEP_ROWS * kk), kk > 0);
}

/* The first half of d from tile b0, the second from b1, which lie apart. */
template <int K>
static __device__ __forceinline__ void attn_wg_halves(float (&d)[16][4], uint32_t a, uint32_t b0,
                                                      uint32_t b1)
{
    attn_wg_rows<K, 64>(*(float(*)[8][4]) & d[0], a, b0);
    attn_wg_rows<K, 64>(*(float(*)[8][4]) & d[8], a, b1);
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

/* ---- the pipeline of tiles ------------------------------------------------------------------- */

/* One thread of a third warpgroup asks the copy engine for tiles ahead of their use: `full` turns when
 * a stage has come, `empty` when all warps that compute are done with it. */
struct attn_turn {
    int stage;
    uint32_t phase;
};

template <int STAGES>
static __device__ __forceinline__ void attn_advance(attn_turn &turn)
{
    if (++turn.stage == STAGES) {
        turn.stage = 0;
        turn.phase ^= 1;
    }
}

/* x + 1 in a ring of N. */
template <int N>
static __device__ __forceinline__ int attn_next(int x)
{
    return x + 1 == N ? 0 : x + 1;
}

/* Barriers at `bars`: full[STAGES], empty[STAGES] and one for what is copied once. */
template <int STAGES>
static __device__ __forceinline__ void attn_open_bars(uint32_t bars)
{
    if (threadIdx.x == 0) {
        for (int x = 0; x < STAGES; x++) {
            attn_bar_init(bars + 8 * (uint32_t)x, 1);
            attn_bar_init(bars + 8 * (uint32_t)(STAGES + x), WG_BLOCK / LAM_WARP);
        }
        attn_bar_init(bars + 16 * STAGES, 1);
        attn_bar_publish();
    }
    __syncthreads();
}

template <int STAGES>
static __device__ __forceinline__ uint32_t attn_full(uint32_t bars, int stage)
{
    return bars + 8 * (uint32_t)stage;
}

template <int STAGES>
static __device__ __forceinline__ uint32_t attn_empty(uint32_t bars, int stage)
{
    return bars + 8 * (uint32_t)(STAGES + stage);
}

template <int STAGES>
static __device__ __forceinline__ uint32_t attn_once(uint32_t bars)
{
    return bars + 16 * STAGES;
}

/* This warp is done with a stage. */
static __device__ __forceinline__ void attn_leave(uint32_t empty)
{
    __syncwarp(); /* every lane has seen it full: its phase may turn twice from here on */
    if (threadIdx.x % LAM_WARP == 0)
        attn_bar_arrive(empty);
}

/* The same in all lanes, and known to be by the compiler. */
static __device__ __forceinline__ int attn_uniform(int x)
{
    return __shfl_sync(ATTN_FULL_WARP, x, 0);
}

/* ---- the walk of a block of queries over its keys -------------------------------------------- */

struct attn_walk {
    int b, h, i0;
    int key_lo, tiles; /* tiles of 64 keys */
    int r0;            /* the row of r, in the order of place, that chunk 0 begins with */
};

static __device__ __forceinline__ attn_walk attn_walk_of(const attn_call &c)
{
    const lam_attn &a = c.a;
    attn_walk w;
    /* Later queries of a causal call see more keys: longest work first. */
    const int tile = c.e_hi == 0 ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    w.h = (int)blockIdx.y;
    w.b = (int)blockIdx.z;
    w.i0 = tile * WG_GROUPS * WG_ROWS;
    const int i_end = min(w.i0 + WG_GROUPS * WG_ROWS, a.queries);
    const int key_hi = min(a.keys - 1, a.shift + i_end - 1 + c.e_hi);
    w.key_lo = max(0, a.shift + w.i0 + c.e_lo) / WG_ROWS * WG_ROWS;
    w.tiles = key_hi < w.key_lo ? 0 : (key_hi - w.key_lo) / WG_ROWS + 1;
    w.r0 = w.key_lo - a.shift - (w.i0 + WG_GROUPS * WG_ROWS - 1) - c.e_first;
    return w;
}

/* Where tiles of keys and values and chunks of r go. */
struct attn_rooms {
    uint32_t key, value, band, bars;
};

/* What is asked for next. */
struct attn_asked {
    int tile, slot;
    attn_turn turn;
};

/* Asks for a chunk of r into the next slot of a ring.  Slot 0 is kept twice, again behind the last,
 * so that any two neighbours lie in line. */
template <int SLOTS>
static __device__ __forceinline__ void attn_ask_chunk(const attn_maps &maps, uint32_t band, int x,
                                                      int row, uint32_t bar, int &slot)
{
    attn_tma_tile(band + (uint32_t)(slot * WG_TILE), &maps.r, x, row, 0, bar);
    if (slot == 0)
        attn_tma_tile(band + SLOTS * WG_TILE, &maps.r, x, row, 0, bar);
    slot = attn_next<SLOTS>(slot);
}

/* Asks for one more tile: its keys and values, and the chunks of r no tile before it brought.  A
 * block uses chunks t .. t + WG_GROUPS for tile t; with STAGES + WG_GROUPS slots what a chunk replaces is done with
 * when the stage is. */
template <int K, int STAGES>
static __device__ __forceinline__ void attn_ask(const attn_maps &maps, const attn_walk &w,
                                                const attn_rooms &rooms, attn_asked &asked)
{
    if (asked.tile >= w.tiles)
        return;
    const uint32_t bar = attn_full<STAGES>(rooms.bars, asked.turn.stage);
    const uint32_t stage = (uint32_t)(asked.turn.stage * WG_TILE);
    const int x = w.h * K, key = w.key_lo + asked.tile * WG_ROWS;
    if (asked.tile >= STAGES)
        attn_bar_wait(attn_empty<STAGES>(rooms.bars, asked.turn.stage), asked.turn.phase ^ 1);
    const int twice = asked.slot == 0; /* chunk 0 is the only one of the first three */
    attn_bar_expect(bar, (uint32_t)((asked.tile == 0 ? 3 + WG_GROUPS : 3) + twice) * WG_TILE);
    attn_tma_tile(rooms.key + stage, &maps.k, x, key, w.b, bar);
    for (int chunk = asked.tile == 0 ? 0 : WG_GROUPS; chunk <= WG_GROUPS; chunk++)
        attn_ask_chunk<STAGES + WG_GROUPS>(maps, rooms.band, x,
                                           w.r0 + (asked.tile + chunk) * WG_ROWS, bar, asked.slot);
    attn_tma_tile(rooms.value + stage, &maps.value, x, key, w.b, bar);
    asked.tile++;
    attn_advance<STAGES>(asked.turn);
}

/* Describes the call's tensors; false, and noted, if the driver cannot. */
bool lam_cuda_attn_maps(lam_cuda_dev *dev, const char *op, attn_maps *m, const attn_call *c);

void lam_cuda_attn_sm90_bwd_q(lam_cuda_dev *dev, const attn_call *c,
                              const attn_maps *maps); /* dq, du, dv */
void lam_cuda_attn_sm90_bwd_kv(lam_cuda_dev *dev, const attn_call *c,
                               const attn_maps *maps); /* dk, dvalue */
void lam_cuda_attn_sm90_bwd_r(lam_cuda_dev *dev, const attn_call *c,
                              const attn_maps *maps); /* dr */

#endif
