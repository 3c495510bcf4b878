/* cuda/attn_sm90_bwd_q.cu -- dq, du and dv of relative-position attention for Hopper.
 *
 * fwd was S = scale (qu . k + qv . r) with qu = q + u, qv = q + v; with dS = P (do . value - delta)
 *   dq_i = scale ( sum_j dS_ij k_j + sum_j dS_ij r[row(i,j)] );  du, dv: the sums over i of the two.
 * The walk of attn_sm90_fwd.cu.  For the second sum dS is skewed back to the band's
 * columns (attn_bwd_q.cu explains how), as left operands of its eight steps of depth 16; a warp's
 * window covers five of them, the others are zero. */
#define ATTN_GROUPS 3
#include "ops/cuda/attn_sm90.cuh"

enum {
    STAGES = 3, /* this tile, one to come, one that a warpgroup behind may still use */
    QU = 0,
    QV = QU + WG_GROUPS * WG_TILE,
    DO = QV + WG_GROUPS * WG_TILE,
    KEY = DO + WG_GROUPS * WG_TILE,
    VALUE = KEY + STAGES * WG_TILE,
    BAND = VALUE + STAGES * WG_TILE,
    BARS = BAND + (STAGES + WG_GROUPS + 1) * WG_TILE,
    BYTES = BARS + 8 * (2 * STAGES + 1)
};

/* P from scores. */
static __device__ __forceinline__ void weigh(float (&s)[8][4], float scale2, const float (&lse2)[2])
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            s[n][x] = attn_exp2(fmaf(s[n][x], scale2, -lse2[x / 2]));
}

static __device__ __forceinline__ void hide(float (&s)[8][4], int lo, int hi, int end, int t)
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            const int key = 8 * n + 2 * t + x % 2, row = x / 2 * 8;
            if (key < lo + row || key > hi + row || key >= end)
                s[n][x] = -CUDART_INF_F;
        }
}

/* dS of 64 keys as left operands of the band's eight steps, as warp W of its group sees it. */
template <int W>
static __device__ __forceinline__ void unskew_by(uint32_t (&a)[8][4], const float (&ds)[8][4],
                                                 const attn_unskew &back)
{
    uint32_t even[2] = {0, 0}, odd[2] = {0, 0}, x_last = 0, y_last = 0;
#pragma unroll
    for (int kk = 0; kk < 8; kk++)
        if (kk < 3 - W || kk > 7 - W)
            a[kk][0] = a[kk][1] = a[kk][2] = a[kk][3] = 0;
#pragma unroll
    for (int n = 0; n < 10; n++) {
        even[0] = even[1];
        odd[0] = odd[1];
        even[1] = odd[1] = 0;
        if (n < 8) {
            even[1] = __shfl_sync(ATTN_FULL_WARP, attn_pack(ds[n][0], ds[n][2]), back.even);
            odd[1] = __shfl_sync(ATTN_FULL_WARP, attn_pack(ds[n][1], ds[n][3]), back.odd);
        }
        const uint32_t x = back.even_same ? even[1] : even[0], y = back.odd_same ? odd[1] : odd[0];
        a[3 - W + n / 2][n % 2 * 2] = attn_bytes(x_last, y_last, back.upper);
        a[3 - W + n / 2][n % 2 * 2 + 1] = attn_bytes(x, y, back.lower);
        x_last = x;
        y_last = y;
    }
}

static __device__ __forceinline__ void unskew(uint32_t (&a)[8][4], const float (&ds)[8][4],
                                              int warp, const attn_unskew &back)
{
    switch (warp) {
    case 0:
        return unskew_by<0>(a, ds, back);
    case 1:
        return unskew_by<1>(a, ds, back);
    case 2:
        return unskew_by<2>(a, ds, back);
    default:
        return unskew_by<3>(a, ds, back);
    }
}

/* part[.] = scale * the sum of d over the block's rows, in a fixed order. */
template <int K>
static __device__ __forceinline__ void sum_rows(float *part, const float (&d)[K / 8][4],
                                                float *sums, float scale, const attn_lanes &lanes)
{
    const int warp = (int)threadIdx.x / LAM_WARP;
#pragma unroll
    for (int n = 0; n < K / 8; n++)
#pragma unroll
        for (int x = 0; x < 2; x++) {
            float sum = d[n][x] + d[n][2 + x];
#pragma unroll
            for (int step = 4; step < LAM_WARP; step *= 2)
                sum += __shfl_xor_sync(ATTN_FULL_WARP, sum, step);
            if (lanes.g == 0)
                sums[warp * K + 8 * n + 2 * lanes.t + x] = sum;
        }
    attn_wg_all<WG_BLOCK>();
    for (int x = (int)threadIdx.x; x < K; x += WG_BLOCK) {
        float sum = 0.0f;
        for (int w = 0; w < WG_BLOCK / LAM_WARP; w++)
            sum += sums[w * K + x];
        part[x] = sum * scale;
    }
    attn_wg_all<WG_BLOCK>();
}

/* Asks for all that the block needs. */
template <int K>
static __device__ __forceinline__ void copy(const attn_call &c, const attn_maps &maps,
                                            const attn_walk &w, uint32_t room)
{
    const attn_rooms rooms = {room + KEY, room + VALUE, room + BAND, room + BARS};
    const uint32_t once = attn_once<STAGES>(room + BARS);
    const int line = (w.b * c.a.H + w.h) * c.q_pad;
    attn_asked asked = {};
    attn_bar_expect(once, 3 * WG_GROUPS * WG_TILE);
    for (int x = 0; x < WG_GROUPS; x++) {
        const uint32_t to = room + (uint32_t)(x * WG_TILE);
        const int i = w.i0 + x * WG_ROWS;
        attn_tma_tile(to + QU, &maps.qu, 0, line + i, 0, once);
        attn_tma_tile(to + QV, &maps.qv, 0, line + i, 0, once);
        attn_tma_tile(to + DO, &maps.d_o, w.h * K, i, w.b, once);
    }
    while (asked.tile < w.tiles)
        attn_ask<K, STAGES>(maps, w, rooms, asked);
}

template <int K>
static __device__ __forceinline__ void compute(const attn_call &c, const attn_walk &w)
{
    const lam_attn &a = c.a;
    const int group = attn_uniform((int)threadIdx.x / WG_THREADS);
    const int warp = attn_uniform((int)threadIdx.x / LAM_WARP % 4);
    const int lane = (int)threadIdx.x % LAM_WARP, row0 = WG_ROWS * group + 16 * warp;
    const attn_lanes lanes = attn_lanes_of<K>(lane);
    const attn_skew skew = attn_skew_by(RIGHT, lane);
    const attn_unskew back = attn_unskew_of(lane);
    const uint32_t room = attn_address(attn_room()), bars = room + BARS;
    const attn_rooms rooms = {room + KEY, room + VALUE, room + BAND, bars};
    const float scale2 = (float)a.scale * CUDART_L2E_F;
    const int at = a.shift + w.i0 + WG_ROWS * group; /* where the group's first query stands */
    const int line = (w.b * a.H + w.h) * c.q_pad;

    float lse2[2] = {CUDART_INF_F, CUDART_INF_F}, delta[2] = {0.0f, 0.0f};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int i = w.i0 + row0 + lanes.g + 8 * half;
        if (i < a.queries) {
            lse2[half] = c.lse2[(size_t)line + i];
            delta[half] = c.delta[(size_t)line + i];
        }
    }
    attn_bar_wait(attn_once<STAGES>(bars), 0);

    float dq_k[K / 8][4] = {}, dq_r[K / 8][4] = {};
    attn_turn turn = {};
    int slot = WG_GROUPS - 1 - group; /* the first chunk of the group's band */
    for (int t = 0; t < w.tiles; t++) {
        attn_bar_wait(attn_full<STAGES>(bars, turn.stage), turn.phase);
        const int j0 = w.key_lo + t * WG_ROWS;
        const int low = j0 - (at + WG_ROWS - 1), high = j0 + WG_ROWS - 1 - at;
        const uint32_t key = rooms.key + (uint32_t)(turn.stage * WG_TILE);
        const uint32_t value = rooms.value + (uint32_t)(turn.stage * WG_TILE);
        const uint32_t empty = attn_empty<STAGES>(bars, turn.stage);
        const uint32_t mine = room + (uint32_t)(group * WG_TILE);
        const uint32_t chunk0 = rooms.band + (uint32_t)(slot * WG_TILE);
        slot = attn_next<STAGES + WG_GROUPS>(slot);
        const uint32_t chunk1 = rooms.band + (uint32_t)(slot * WG_TILE);
        attn_advance<STAGES>(turn);
        if (high >= c.e_lo && low <= c.e_hi) {
            float s[8][4], band[8][4], last[4];
            attn_wg_hold(s);
            attn_wg_hold(band);
            attn_wg_begin();
            attn_wg_rows<K, 64>(s, mine + QU, key);
            attn_wg_rows<K, 64>(band, mine + QV, chunk0);
            attn_wg_close();
            attn_wg_wait<0>();
            attn_wg_hold(s);
            attn_wg_hold(band);
            attn_add_half<RIGHT, 0>(s, band, last, warp, skew);
            attn_wg_hold(band);
            attn_wg_begin();
            attn_wg_rows<K, 64>(band, mine + QV, chunk1);
            attn_wg_close();
            attn_wg_wait<0>();
            attn_wg_hold(band);
            attn_add_half<RIGHT, 1>(s, band, last, warp, skew);
            attn_wg_hold(band);
            attn_wg_begin();
            attn_wg_rows<K, 64>(band, mine + DO, value); /* dP */
            attn_wg_close();
            if (low < c.e_lo || high > c.e_hi || j0 + WG_ROWS > a.keys) {
                const int from = at + 16 * warp + lanes.g - j0;
                hide(s, from + c.e_lo, from + c.e_hi, a.keys - j0, lanes.t);
            }
            weigh(s, scale2, lse2);
            attn_wg_wait<0>();
            attn_wg_hold(band);
#pragma unroll
            for (int y = 0; y < 8; y++)
#pragma unroll
                for (int x = 0; x < 4; x++)
                    s[y][x] *= band[y][x] - delta[x / 2];
            uint32_t left[4][4], left_band[8][4];
            attn_pack_left(left, s);
            unskew(left_band, s, warp, back);
            attn_wg_hold(dq_k);
            attn_wg_hold(dq_r);
            attn_wg_begin();
#pragma unroll
            for (int kk = 0; kk < 4; kk++)
                attn_wg_mma<K, BY_COLUMNS>(dq_k, left[kk], attn_operand(key + WG_STEP_COLS * kk),
                                           true);
#pragma unroll
            for (int kk = 0; kk < 8; kk++)
                attn_wg_mma<K, BY_COLUMNS>(
                    dq_r, left_band[kk],
                    attn_operand((kk < 4 ? chunk0 : chunk1) + WG_STEP_COLS * (kk % 4)), true);
            attn_wg_close();
            attn_wg_wait<0>();
            attn_wg_hold(dq_k);
            attn_wg_hold(dq_r);
        }
        attn_leave(empty);
    }
    attn_wg_all<WG_BLOCK>(); /* the tiles are free */
    float *sums = (float *)(attn_room() + KEY);
    const size_t part = (((size_t)w.b * gridDim.x + blockIdx.x) * a.H + w.h) * K;
    if (a.u)
        sum_rows<K>(c.du_part + part, dq_k, sums, (float)a.scale, lanes);
    if (a.v)
        sum_rows<K>(c.dv_part + part, dq_r, sums, (float)a.scale, lanes);
#pragma unroll
    for (int n = 0; n < K / 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            dq_k[n][x] += dq_r[n][x];
    unsigned char *out = attn_room() + QU + row0 * 128;
    attn_store_tile<K>(out, dq_k, (float)a.scale, (float)a.scale, lanes);
    __syncwarp();
    attn_write_rows<K>(attn_row<lam_bf16>(a.dq, a.ldq, w.b, w.i0 + row0, (size_t)w.h * K), a.ldq,
                       out, a.queries - w.i0 - row0, false);
}

template <int K>
static __global__ void __launch_bounds__(WG_ALL, 1)
    sm90_bwd_q(const attn_call c, const __grid_constant__ attn_maps maps)
{
    const attn_walk w = attn_walk_of(c);
    const uint32_t room = attn_address(attn_room());
    attn_open_bars<STAGES>(room + BARS);
    if (threadIdx.x >= WG_BLOCK) {
        attn_give_registers();
        if (threadIdx.x == WG_BLOCK)
            copy<K>(c, maps, w, room);
    } else {
        attn_take_registers<WG_REGISTERS>();
        compute<K>(c, w);
    }
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c, const attn_maps *maps)
{
    const lam_attn *a = &c->a;
    const int tiles = lam_cuda_ceil(a->queries, WG_GROUPS * WG_ROWS), width = a->H * K;
    const dim3 grid((unsigned)tiles, (unsigned)a->H, (unsigned)a->B);
    attn_launch(dev, "attn_bwd", sm90_bwd_q<K>, grid, WG_ALL, BYTES, *c, *maps);
    if (a->u && a->du)
        lam_cuda_attn_fold(dev, (float *)a->du, c->du_part, a->B * tiles, width);
    if (a->v && a->dv)
        lam_cuda_attn_fold(dev, (float *)a->dv, c->dv_part, a->B * tiles, width);
}

void lam_cuda_attn_sm90_bwd_q(lam_cuda_dev *dev, const attn_call *c, const attn_maps *maps)
{
    switch (c->a.K) {
    case 32:
        return launch<32>(dev, c, maps);
    case 48:
        return launch<48>(dev, c, maps);
    case 64:
        return launch<64>(dev, c, maps);
    }
}
