/* cuda/attn_sm90_bwd_r.cu -- dr of relative-position attention for Hopper.
 *
 * fwd was S = scale (qu . k + qv . r); with dS = P (do . value - delta), along the diagonal
 * j - shift - i = e and over all streams
 *   dr_e = scale sum_{b,i} dS qv_i.
 * A block owns 192 distances, a warpgroup 64, for a group of streams; tiles of 64 queries come by, one
 * stream after the other, with the keys and values that stand at these distances from them: a band of
 * 128 for a warpgroup, 256 for a block, moving on by 64 a tile.  So here the positional part is the
 * direct product and content and dP are skewed.  Groups of streams are summed in order at the end. */
#define ATTN_GROUPS 3
#include "ops/cuda/attn_sm90.cuh"

enum {
    OWN = WG_GROUPS * WG_ROWS,
    STAGES = 2, /* this tile and one to come */
    CHUNKS = WG_GROUPS + 1,
    SLOTS = 2 * CHUNKS, /* of keys and values: for a tile, and for the next stream */
    MINE = 0,
    QU = MINE + WG_GROUPS * WG_TILE,
    QV = QU + STAGES * WG_TILE,
    DO = QV + STAGES * WG_TILE,
    KEY = DO + STAGES * WG_TILE,
    VALUE = KEY + SLOTS * WG_TILE,
    DS = VALUE + SLOTS * WG_TILE,
    LSE2 = DS + WG_GROUPS * WG_TILE,
    DELTA = LSE2 + STAGES * WG_ROWS * 4,
    BARS = DELTA + STAGES * WG_ROWS * 4,
    BYTES = BARS + 8 * (2 * STAGES + 1)
};

struct walk {
    int h, stream, first; /* the first stream, the first owned place */
    int tile_lo, tiles;   /* of queries, in every stream */
    int steps;
};

/* A step of the walk: which tile of which stream, and where its chunks of keys begin in the ring. */
struct step {
    int b, tile, slot;
};

static __device__ __forceinline__ walk walk_of(const attn_call &c)
{
    const lam_attn &a = c.a;
    walk w;
    const int tile = c.e_hi == 0 ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    w.h = (int)blockIdx.y;
    w.stream = (int)((long)blockIdx.z * a.B / c.groups);
    const int streams = (int)((long)(blockIdx.z + 1) * a.B / c.groups) - w.stream;
    w.first = c.e_first + tile * OWN;
    const int lo = max(w.first, c.e_lo), hi = min(w.first + OWN - 1, c.e_hi);
    const int i_hi = lo > hi ? -1 : min(a.queries - 1, a.keys - 1 - a.shift - lo);
    w.tile_lo = max(0, -a.shift - hi) / WG_ROWS;
    w.tiles = i_hi < 0 ? 0 : max(0, i_hi / WG_ROWS - w.tile_lo + 1);
    w.steps = w.tiles * streams;
    return w;
}

/* The next tile, or the first of the next stream, whose chunks follow all of the last tile's. */
static __device__ __forceinline__ void go_on(step &s, const walk &w)
{
    const bool over = s.tile + 1 >= w.tiles;
    s.tile = over ? 0 : s.tile + 1;
    s.b += over;
    s.slot += over ? CHUNKS : 1;
    s.slot -= s.slot >= SLOTS ? SLOTS : 0;
}

/* Asks for one more tile.  All of its chunks are new when the stream is.  They replace chunks of the
 * tile but one before at the latest, which is done with when the stage is. */
template <int K>
static __device__ __forceinline__ void ask(const attn_call &c, const attn_maps &maps, const walk &w,
                                           uint32_t room, attn_asked &asked, step &s)
{
    const lam_attn &a = c.a;
    if (asked.tile >= w.steps)
        return;
    const uint32_t bars = room + BARS, bar = attn_full<STAGES>(bars, asked.turn.stage);
    const uint32_t stage = (uint32_t)asked.turn.stage;
    const int i0 = (w.tile_lo + s.tile) * WG_ROWS, line = (s.b * a.H + w.h) * c.q_pad + i0;
    const int key = w.first + a.shift + i0, x = w.h * K;
    if (asked.tile >= STAGES)
        attn_bar_wait(attn_empty<STAGES>(bars, asked.turn.stage), asked.turn.phase ^ 1);
    attn_bar_expect(bar, (uint32_t)(s.tile == 0 ? 3 + 2 * CHUNKS : 5) * WG_TILE + 2 * WG_ROWS * 4);
    attn_tma_tile(room + QV + stage * WG_TILE, &maps.qv, 0, line, 0, bar);
    attn_tma_tile(room + QU + stage * WG_TILE, &maps.qu, 0, line, 0, bar);
    for (int chunk = s.tile == 0 ? 0 : CHUNKS - 1; chunk < CHUNKS; chunk++) {
        const int slot = s.slot + chunk >= SLOTS ? s.slot + chunk - SLOTS : s.slot + chunk;
        attn_tma_tile(room + KEY + (uint32_t)(slot * WG_TILE), &maps.k, x, key + chunk * WG_ROWS,
                      s.b, bar);
        attn_tma_tile(room + VALUE + (uint32_t)(slot * WG_TILE), &maps.value, x,
                      key + chunk * WG_ROWS, s.b, bar);
    }
    attn_tma_tile(room + DO + stage * WG_TILE, &maps.d_o, x, i0, s.b, bar);
    attn_tma_line(room + LSE2 + stage * WG_ROWS * 4, c.lse2 + line, WG_ROWS * 4, bar);
    attn_tma_line(room + DELTA + stage * WG_ROWS * 4, c.delta + line, WG_ROWS * 4, bar);
    asked.tile++;
    attn_advance<STAGES>(asked.turn);
    go_on(s, w);
}

/* Columns are distances lo .. hi, and key + row + column must be one of the keys. */
static __device__ __forceinline__ void hide(float (&p)[8][4], int lo, int hi, int key, int keys,
                                            int t)
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            const int place = 8 * n + 2 * t + x % 2, j = key + x / 2 * 8 + place;
            if (place < lo || place > hi || j < 0 || j >= keys)
                p[n][x] = 0.0f;
        }
}

/* Asks for all that the block needs. */
template <int K>
static __device__ __forceinline__ void copy(const attn_call &c, const attn_maps &maps,
                                            const walk &w, uint32_t room)
{
    const uint32_t once = attn_once<STAGES>(room + BARS);
    attn_asked asked = {};
    step s = {w.stream, 0, 0};
    attn_bar_expect(once, WG_GROUPS * WG_TILE);
    for (int x = 0; x < WG_GROUPS; x++)
        attn_tma_tile(room + MINE + (uint32_t)(x * WG_TILE), &maps.r, w.h * K,
                      w.first - c.e_first + x * WG_ROWS, 0, once);
    while (asked.tile < w.steps)
        ask<K>(c, maps, w, room, asked, s);
}

template <int K>
static __device__ __forceinline__ void compute(const attn_call &c, const walk &w)
{
    const lam_attn &a = c.a;
    const int group = attn_uniform((int)threadIdx.x / WG_THREADS);
    const int warp = attn_uniform((int)threadIdx.x / LAM_WARP % 4);
    const int lane = (int)threadIdx.x % LAM_WARP;
    const attn_lanes lanes = attn_lanes_of<K>(lane);
    const attn_skew skew = attn_skew_by(LEFT, lane);
    const uint32_t room = attn_address(attn_room()), bars = room + BARS;
    const float *floats = (const float *)(attn_room() + LSE2) + 16 * warp + lanes.g;
    const float scale2 = (float)a.scale * CUDART_L2E_F;

    step st = {w.stream, 0, 0};
    attn_bar_wait(attn_once<STAGES>(bars), 0);

    float dr[K / 8][4] = {};
    const uint32_t mine = room + (uint32_t)(group * WG_TILE);
    const int e0 = w.first + WG_ROWS * group;
    attn_turn turn = {};
    for (int n = 0; n < w.steps; n++) {
        /* the key of the first row and column */
        const int key = e0 + a.shift + (w.tile_lo + st.tile) * WG_ROWS, stage = turn.stage;
        const uint32_t qu = room + QU + (uint32_t)(stage * WG_TILE);
        const uint32_t qv = room + QV + (uint32_t)(stage * WG_TILE);
        const uint32_t d_o = room + DO + (uint32_t)(stage * WG_TILE);
        const int slot = st.slot + group >= SLOTS ? st.slot + group - SLOTS : st.slot + group;
        const uint32_t slot0 = (uint32_t)(slot * WG_TILE);
        const uint32_t slot1 = (uint32_t)(attn_next<SLOTS>(slot) * WG_TILE);
        attn_bar_wait(attn_full<STAGES>(bars, stage), turn.phase);
        attn_advance<STAGES>(turn);
        go_on(st, w);
        if (e0 <= c.e_hi && e0 + WG_ROWS - 1 >= c.e_lo && key + 2 * WG_ROWS - 2 >= 0 &&
            key < a.keys) {
            float s[8][4], band[16][4], last[4], lse2[2], delta[2];
            attn_wg_hold(s);
            attn_wg_hold(band);
            attn_wg_begin();
            attn_wg_rows<K, 64>(s, qv, mine + MINE);
            attn_wg_halves<K>(band, qu, room + KEY + slot0, room + KEY + slot1);
            attn_wg_close();
#pragma unroll
            for (int half = 0; half < 2; half++) {
                lse2[half] = floats[stage * WG_ROWS + 8 * half];
                delta[half] = floats[(STAGES + stage) * WG_ROWS + 8 * half];
            }
            attn_wg_wait<0>();
            attn_wg_hold(s);
            attn_wg_hold(band);
            attn_add_skewed<LEFT>(s, band, warp, skew);
            attn_wg_hold(band);
            attn_wg_begin();
            attn_wg_halves<K>(band, d_o, room + VALUE + slot0, room + VALUE + slot1); /* dP */
            attn_wg_close();
#pragma unroll
            for (int y = 0; y < 8; y++)
#pragma unroll
                for (int x = 0; x < 4; x++)
                    s[y][x] = attn_exp2(fmaf(s[y][x], scale2, -lse2[x / 2]));
            if (e0 < c.e_lo || e0 + WG_ROWS - 1 > c.e_hi || key < 0 ||
                key + 2 * WG_ROWS - 2 >= a.keys)
                hide(s, c.e_lo - e0, c.e_hi - e0, key + 16 * warp + lanes.g, a.keys, lanes.t);
            attn_wg_wait<0>();
            attn_wg_hold(band);
            attn_skew_band<LEFT, 0>(band, last, warp, skew, [&](int tile, int x, float value) {
                s[tile][x] *= value - delta[x / 2];
            });
            attn_wg_barrier(group); /* all warps are done with the sum of the tile before */
            attn_store_left(mine + DS + (uint32_t)(16 * warp * 128), s, lanes);
            attn_wg_publish();
            attn_wg_barrier(group);
            attn_wg_hold(dr);
            attn_wg_begin();
            attn_wg_columns<K>(dr, mine + DS, qv);
            attn_wg_close();
            attn_wg_wait<0>();
            attn_wg_hold(dr);
        }
        attn_leave(attn_empty<STAGES>(bars, stage));
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = a.r_zero + a.r_sign * (e0 + 16 * warp + lanes.g + 8 * half);
        if (row < 0 || row >= a.r_rows)
            continue;
        float *out = c.dr_part + ((size_t)blockIdx.z * a.r_rows + row) * a.H * K + (size_t)w.h * K;
#pragma unroll
        for (int y = 0; y < K / 8; y++)
            *(float2 *)(out + 8 * y + 2 * lanes.t) =
                make_float2(dr[y][2 * half] * (float)a.scale, dr[y][2 * half + 1] * (float)a.scale);
    }
}

template <int K>
static __global__ void __launch_bounds__(WG_ALL, 1)
    sm90_bwd_r(const attn_call c, const __grid_constant__ attn_maps maps)
{
    const walk w = walk_of(c);
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
    const dim3 grid((unsigned)lam_cuda_ceil(c->a.r_rows, OWN), (unsigned)c->a.H,
                    (unsigned)c->groups);
    attn_launch(dev, "attn_bwd", sm90_bwd_r<K>, grid, WG_ALL, BYTES, *c, *maps);
    lam_cuda_attn_sum_groups(dev, c);
}

void lam_cuda_attn_sm90_bwd_r(lam_cuda_dev *dev, const attn_call *c, const attn_maps *maps)
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
