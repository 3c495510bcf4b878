/* cuda/attn_sm90_fwd.cu -- relative-position attention forward for Hopper (Eq. 2, 6, 9, 12).
 *
 * The walk of attn_fwd.cu with products of whole warpgroups: a block owns 128 queries, a warpgroup 64,
 * tiles of 64 keys and chunks of 64 rows of r come by, two tiles ahead.  q + u and q + v stay in
 * registers; the weighted sum of a tile runs while the scores of the next one are being asked for.
 *
 * The softmax is online with a lazy base: weights are 2^(S - base), and the base only moves when a
 * score passes it by more than 8 (in base 2), so the sums hardly ever have to be scaled again. */
#define ATTN_GROUPS 3
#include "ops/cuda/attn_sm90.cuh"

enum {
    STAGES = 4, /* this tile, two to come, the one whose sum may still run */
    QU = 0,     /* q first */
    QV = QU + WG_GROUPS * WG_TILE,
    KEY = QV + WG_GROUPS * WG_TILE,
    VALUE = KEY + STAGES * WG_TILE,
    BAND = VALUE + STAGES * WG_TILE,
    BARS = BAND + (STAGES + WG_GROUPS + 1) * WG_TILE,
    BYTES = BARS + 8 * (2 * STAGES + 1)
};

template <int K>
struct state {
    float o[K / 8][4];
    float base[2], total[2]; /* rows g and g + 8 */
};

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

/* Moves the base of rows that passed it. */
template <int K>
static __device__ __forceinline__ void rebase(state<K> &st, const float (&top)[2])
{
    const float slack = 8.0f;
    if (!__any_sync(ATTN_FULL_WARP, top[0] > st.base[0] + slack || top[1] > st.base[1] + slack))
        return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float base = top[half] > st.base[half] + slack ? top[half] : st.base[half];
        const float shrink = base == st.base[half] ? 1.0f : attn_exp2(st.base[half] - base);
        st.base[half] = base;
        st.total[half] *= shrink;
#pragma unroll
        for (int n = 0; n < K / 8; n++) {
            st.o[n][2 * half] *= shrink;
            st.o[n][2 * half + 1] *= shrink;
        }
    }
}

/* One tile's step of the online softmax; leaves the weights in s. */
template <int K>
static __device__ __forceinline__ void soften(state<K> &st, float (&s)[8][4], float scale2)
{
    float top[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        top[half] = s[0][2 * half];
#pragma unroll
        for (int n = 0; n < 8; n++)
            top[half] = fmaxf(top[half], fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top[half] = fmaxf(top[half], __shfl_xor_sync(ATTN_FULL_WARP, top[half], 1));
        top[half] = fmaxf(top[half], __shfl_xor_sync(ATTN_FULL_WARP, top[half], 2)) * scale2;
    }
    rebase<K>(st, top);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        /* A row that has seen nothing yet: 2^(-infinity - 0) = 0, not 2^(inf - inf). */
        const float base = st.base[half] == -CUDART_INF_F ? 0.0f : st.base[half];
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int x = 2 * half; x < 2 * half + 2; x++) {
                s[n][x] = attn_exp2(fmaf(s[n][x], scale2, -base));
                st.total[half] += s[n][x];
            }
    }
}

/* Divides by the sums and writes o and lse of a warp's sixteen rows. */
template <int K>
static __device__ __forceinline__ void finish(const attn_call &c, const state<K> &st,
                                              const attn_walk &w, int row, unsigned char *room,
                                              const attn_lanes &lanes)
{
    const lam_attn &a = c.a;
    float over[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float total = st.total[half];
        total += __shfl_xor_sync(ATTN_FULL_WARP, total, 1);
        total += __shfl_xor_sync(ATTN_FULL_WARP, total, 2);
        over[half] = total > 0.0f ? 1.0f / total : 0.0f;
        const int i = row + lanes.g + 8 * half;
        if (lanes.t == 0 && i < a.queries)
            *attn_row<float>(a.lse, (size_t)a.H, w.b, i, (size_t)w.h) =
                total > 0.0f ? st.base[half] * CUDART_LN2_F + logf(total) : -CUDART_INF_F;
    }
    attn_store_tile<K>(room, st.o, over[0], over[1], lanes);
    __syncwarp();
    attn_write_rows<K>(attn_row<lam_bf16>(a.o, a.ldo, w.b, row, (size_t)w.h * K), a.ldo, room,
                       a.queries - row, false);
}

/* Asks for all that the block needs. */
template <int K>
static __device__ __forceinline__ void copy(const attn_maps &maps, const attn_walk &w,
                                            uint32_t room)
{
    const attn_rooms rooms = {room + KEY, room + VALUE, room + BAND, room + BARS};
    const uint32_t once = attn_once<STAGES>(room + BARS);
    attn_asked asked = {};
    attn_bar_expect(once, WG_GROUPS * WG_TILE);
    for (int x = 0; x < WG_GROUPS; x++)
        attn_tma_tile(room + QU + (uint32_t)(x * WG_TILE), &maps.q, w.h * K, w.i0 + x * WG_ROWS,
                      w.b, once);
    while (asked.tile < w.tiles)
        attn_ask<K, STAGES>(maps, w, rooms, asked);
}

/* q becomes q + u and q + v, rounded once, in this warp's sixteen rows. */
template <int K>
static __device__ __forceinline__ void add_biases(const attn_call &c, const attn_walk &w,
                                                  uint32_t rows, const attn_lanes &lanes)
{
    const lam_attn &a = c.a;
    uint32_t qu[K / 16][4], qv[K / 16][4];
    attn_load_biased<K>(qu, rows + QU, a.u ? (const float *)a.u + w.h * K : NULL, lanes);
    attn_load_biased<K>(qv, rows + QU, a.v ? (const float *)a.v + w.h * K : NULL, lanes);
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++) {
        attn_store4(rows + QU + (lanes.a ^ (uint32_t)(kk << 5)), qu[kk]);
        attn_store4(rows + QV + (lanes.a ^ (uint32_t)(kk << 5)), qv[kk]);
    }
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
    const uint32_t room = attn_address(attn_room()), bars = room + BARS;
    const attn_rooms rooms = {room + KEY, room + VALUE, room + BAND, bars};
    const float scale2 = (float)a.scale * CUDART_L2E_F;
    const int at = a.shift + w.i0 + WG_ROWS * group; /* where the group's first query stands */

    attn_bar_wait(attn_once<STAGES>(bars), 0);
    add_biases<K>(c, w, room + (uint32_t)(row0 * 128), lanes);
    attn_wg_publish();
    attn_wg_barrier(group);
    const uint32_t mine = room + (uint32_t)(group * WG_TILE);
    state<K> st = {};
    st.base[0] = st.base[1] = -CUDART_INF_F;

    attn_turn turn = {};
    int slot = WG_GROUPS - 1 - group; /* the first chunk of the group's band */
    for (int t = 0; t < w.tiles; t++) {
        attn_bar_wait(attn_full<STAGES>(bars, turn.stage), turn.phase);
        const int j0 = w.key_lo + t * WG_ROWS;
        const int low = j0 - (at + WG_ROWS - 1), high = j0 + WG_ROWS - 1 - at;
        const uint32_t stage = (uint32_t)(turn.stage * WG_TILE);
        const uint32_t empty = attn_empty<STAGES>(bars, turn.stage);
        if (high >= c.e_lo && low <= c.e_hi) {
            float s[8][4], band[16][4];
            attn_wg_hold(s);
            attn_wg_hold(band);
            attn_wg_begin();
            attn_wg_rows<K, 64>(s, mine + QU, rooms.key + stage);
            attn_wg_rows<K, 128>(band, mine + QV, rooms.band + (uint32_t)(slot * WG_TILE));
            attn_wg_close();
            attn_wg_wait<0>();
            attn_wg_hold(s);
            attn_wg_hold(band);
            attn_add_skewed<RIGHT>(s, band, warp, skew);
            if (low < c.e_lo || high > c.e_hi || j0 + WG_ROWS > a.keys) {
                const int from = at + 16 * warp + lanes.g - j0;
                hide(s, from + c.e_lo, from + c.e_hi, a.keys - j0, lanes.t);
            }
            soften<K>(st, s, scale2);
            uint32_t p[4][4];
            attn_pack_left(p, s);
            attn_wg_hold(st.o);
            attn_wg_begin();
#pragma unroll
            for (int kk = 0; kk < 4; kk++)
                attn_wg_mma<K, BY_COLUMNS>(
                    st.o, p[kk], attn_operand(rooms.value + stage + WG_STEP_COLS * kk), true);
            attn_wg_close();
            attn_wg_wait<0>();
            attn_wg_hold(st.o);
        }
        attn_leave(empty);
        attn_advance<STAGES>(turn);
        slot = attn_next<STAGES + WG_GROUPS>(slot);
    }
    finish<K>(c, st, w, w.i0 + row0, attn_room() + QU + row0 * 128, lanes);
}

template <int K>
static __global__ void __launch_bounds__(WG_ALL, 1)
    sm90_fwd(const attn_call c, const __grid_constant__ attn_maps maps)
{
    const attn_walk w = attn_walk_of(c);
    const uint32_t room = attn_address(attn_room());
    attn_open_bars<STAGES>(room + BARS);
    if (threadIdx.x >= WG_BLOCK) {
        attn_give_registers();
        if (threadIdx.x == WG_BLOCK)
            copy<K>(maps, w, room);
    } else {
        attn_take_registers<WG_REGISTERS>();
        compute<K>(c, w);
    }
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    const dim3 grid((unsigned)lam_cuda_ceil(c->a.queries, WG_GROUPS * WG_ROWS), (unsigned)c->a.H,
                    (unsigned)c->a.B);
    attn_maps maps;
    if (lam_cuda_attn_maps(dev, "attn_fwd", &maps, c))
        attn_launch(dev, "attn_fwd", sm90_fwd<K>, grid, WG_ALL, BYTES, *c, maps);
}

void lam_cuda_attn_sm90_fwd(lam_cuda_dev *dev, const attn_call *c)
{
    switch (c->a.K) {
    case 32:
        return launch<32>(dev, c);
    case 48:
        return launch<48>(dev, c);
    case 64:
        return launch<64>(dev, c);
    }
}
