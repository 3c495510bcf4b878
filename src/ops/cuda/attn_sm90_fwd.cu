/* cuda/attn_sm90_fwd.cu -- relative-position attention forward for Hopper (Eq. 2, 6, 9, 12).
 *
 * The walk of attn_fwd.cu with products of whole warpgroups: a block owns 128 queries, a warpgroup 64,
 * tiles of 64 keys and chunks of 64 rows of r come by, two tiles ahead.  q + u and q + v stay in
 * registers; the weighted sum of a tile runs while the scores of the next one are being asked for. */
#include "ops/cuda/attn_sm90.cuh"

enum {
    QUERIES = WG_GROUPS * WG_ROWS,
    STAGES = 4, /* of keys and values: this tile, two to come, the one whose sum may still run */
    SLOTS = 5,  /* chunks of r: three for this tile, two to come */
    Q = 0,
    KEY = Q + WG_GROUPS * WG_TILE,
    VALUE = KEY + STAGES * WG_TILE,
    BAND = VALUE + STAGES * WG_TILE,
    BYTES = BAND + SLOTS * WG_TILE
};

template <int K>
struct state {
    float o[K / 8][4];
    float top[2], total[2]; /* rows g and g + 8 */
};

struct walk {
    int b, h, i0;
    int key_lo, tiles;
    int e0; /* the place of the first row of chunk 0 */
};

static __device__ __forceinline__ walk walk_of(const attn_call &c)
{
    const lam_attn &a = c.a;
    walk w;
    const int tile = c.e_hi == 0 ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    w.h = (int)blockIdx.y;
    w.b = (int)blockIdx.z;
    w.i0 = tile * QUERIES;
    const int i_end = min(w.i0 + QUERIES, a.queries);
    const int key_hi = min(a.keys - 1, a.shift + i_end - 1 + c.e_hi);
    w.key_lo = max(0, a.shift + w.i0 + c.e_lo) / WG_ROWS * WG_ROWS;
    w.tiles = key_hi < w.key_lo ? 0 : (key_hi - w.key_lo) / WG_ROWS + 1;
    w.e0 = w.key_lo - a.shift - (w.i0 + QUERIES - 1);
    return w;
}

/* Copies tile t: its keys and values, and the chunks of r no tile before it brought. */
template <int K>
static __device__ __forceinline__ void fetch(const attn_call &c, const walk &w, int t,
                                             uint32_t room)
{
    const lam_attn &a = c.a;
    const uint32_t stage = (uint32_t)(t % STAGES * WG_TILE);
    const int key = w.key_lo + t * WG_ROWS;
    const size_t col = (size_t)w.h * K;
    if (t >= w.tiles)
        return;
    attn_fetch<K>(room + KEY + stage, attn_row<const lam_bf16>(a.k, a.ldk, w.b, 0, col), a.ldk, key,
                  a.keys);
    attn_fetch<K>(room + VALUE + stage, attn_row<const lam_bf16>(a.value, a.ldk, w.b, 0, col),
                  a.ldk, key, a.keys);
    for (int x = t == 0 ? 0 : 2; x < 3; x++)
        attn_load_band<K, WG_ROWS, WG_BLOCK>(room + BAND + (uint32_t)((t + x) % SLOTS * WG_TILE), c,
                                             w.h, w.e0 + (t + x) * WG_ROWS);
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

/* One tile's step of the online softmax; leaves the weights in s. */
template <int K>
static __device__ __forceinline__ void soften(state<K> &st, float (&s)[8][4], float scale2)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = st.top[half];
#pragma unroll
        for (int n = 0; n < 8; n++)
            top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top = fmaxf(top, __shfl_xor_sync(ATTN_FULL_WARP, top, 1));
        top = fmaxf(top, __shfl_xor_sync(ATTN_FULL_WARP, top, 2));
        const float base = top == -CUDART_INF_F ? 0.0f : top * scale2;
        const float shrink = attn_exp2(st.top[half] * scale2 - base);
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int x = 2 * half; x < 2 * half + 2; x++) {
                s[n][x] = attn_exp2(fmaf(s[n][x], scale2, -base));
                sum += s[n][x];
            }
        st.total[half] = st.total[half] * shrink + sum;
        st.top[half] = top;
#pragma unroll
        for (int n = 0; n < K / 8; n++) {
            st.o[n][2 * half] *= shrink;
            st.o[n][2 * half + 1] *= shrink;
        }
    }
}

/* Divides by the sums and writes o and lse of a warp's sixteen rows. */
template <int K>
static __device__ __forceinline__ void finish(const attn_call &c, const state<K> &st, const walk &w,
                                              int row, unsigned char *room, const attn_lanes &lanes)
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
                total > 0.0f ? st.top[half] * (float)a.scale + logf(total) : -CUDART_INF_F;
    }
    attn_store_tile<K>(room, st.o, over[0], over[1], lanes);
    __syncwarp();
    attn_write_rows<K>(attn_row<lam_bf16>(a.o, a.ldo, w.b, row, (size_t)w.h * K), a.ldo, room,
                       a.queries - row, false);
}

template <int K>
static __global__ void __launch_bounds__(WG_BLOCK, 1) sm90_fwd(const attn_call c)
{
    const lam_attn &a = c.a;
    const walk w = walk_of(c);
    const int group = (int)threadIdx.x / WG_THREADS, warp = (int)threadIdx.x / LAM_WARP % 4;
    const int lane = (int)threadIdx.x % LAM_WARP, row0 = WG_ROWS * group + 16 * warp;
    const attn_lanes lanes = attn_lanes_of<K>(lane);
    const attn_skew skew = attn_skew_by(RIGHT, lane);
    const uint32_t room = attn_address(attn_room());
    const float scale2 = (float)a.scale * CUDART_L2E_F;

    attn_load_rows<K, QUERIES, WG_BLOCK>(
        room + Q, attn_row<const lam_bf16>(a.q, a.ldq, w.b, 0, (size_t)w.h * K), a.ldq, w.i0, 1,
        a.queries);
    fetch<K>(c, w, 0, room);
    attn_copy_close();
    fetch<K>(c, w, 1, room);
    attn_copy_close();

    uint32_t qu[K / 16][4], qv[K / 16][4];
    state<K> st = {};
    st.top[0] = st.top[1] = -CUDART_INF_F;
    for (int t = 0; t < w.tiles || t == 0; t++) {
        attn_copy_wait<1>();
        attn_wg_publish();
        __syncthreads(); /* all have tile t, and none reads tile t - 2 any more */
        fetch<K>(c, w, t + 2, room);
        attn_copy_close();
        if (t == 0) {
            const uint32_t rows = room + Q + (uint32_t)(row0 * 128);
            attn_load_biased<K>(qu, rows, a.u ? (const float *)a.u + w.h * K : NULL, lanes);
            attn_load_biased<K>(qv, rows, a.v ? (const float *)a.v + w.h * K : NULL, lanes);
        }
        const int j0 = w.key_lo + t * WG_ROWS, at = a.shift + w.i0 + WG_ROWS * group;
        const int low = j0 - (at + WG_ROWS - 1), high = j0 + WG_ROWS - 1 - at;
        if (high < c.e_lo || low > c.e_hi || w.tiles == 0) {
            attn_wg_wait<0>(); /* tile t - 1 may be overwritten after the next barrier */
            attn_wg_hold(st.o);
            continue;
        }

        const uint32_t stage = (uint32_t)(t % STAGES * WG_TILE);
        const uint32_t chunk = room + BAND + (uint32_t)((t + 1 - group) % SLOTS * WG_TILE);
        const uint32_t next = room + BAND + (uint32_t)((t + 2 - group) % SLOTS * WG_TILE);
        float s[8][4], band[2][8][4];
        attn_wg_hold(s);
        attn_wg_hold(band[0]);
        attn_wg_hold(band[1]);
        attn_wg_begin();
        attn_wg_rows<K>(s, qu, room + KEY + stage);
        attn_wg_rows<K>(band[0], qv, chunk);
        attn_wg_rows<K>(band[1], qv, next);
        attn_wg_close();
        attn_wg_wait<0>(); /* and the sum of the tile before */
        attn_wg_hold(s);
        attn_wg_hold(band[0]);
        attn_wg_hold(band[1]);
        attn_wg_hold(st.o);
        attn_add_skewed<RIGHT>(s, band, warp, skew);
        if (low < c.e_lo || high > c.e_hi || j0 + WG_ROWS > a.keys) {
            const int mine = at + 16 * warp + lanes.g - j0;
            hide(s, mine + c.e_lo, mine + c.e_hi, a.keys - j0, lanes.t);
        }
        soften<K>(st, s, scale2);
        uint32_t p[4][4];
        attn_pack_left(p, s);
        attn_wg_hold(st.o);
        attn_wg_begin();
#pragma unroll
        for (int kk = 0; kk < 4; kk++)
            attn_wg_mma<K, BY_COLUMNS>(
                st.o, p[kk], attn_operand(room + VALUE + stage + WG_STEP_COLS * kk), true);
        attn_wg_close();
    }
    attn_wg_wait<0>();
    attn_wg_hold(st.o);
    finish<K>(c, st, w, w.i0 + row0, attn_room() + Q + row0 * 128, lanes);
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    const dim3 grid((unsigned)lam_cuda_ceil(c->a.queries, QUERIES), (unsigned)c->a.H,
                    (unsigned)c->a.B);
    attn_launch(dev, "attn_fwd", sm90_fwd<K>, grid, WG_BLOCK, BYTES, *c);
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
