/* cuda/attn_sm90_bwd_q.cu -- dq, du and dv of relative-position attention for Hopper.
 *
 * fwd was S = scale (qu . k + qv . r) with qu = q + u, qv = q + v; with dS = P (do . value - delta)
 *   dq_i = scale ( sum_j dS_ij k_j + sum_j dS_ij r[row(i,j)] );  du, dv: the sums over i of the two.
 * The walk of attn_sm90_fwd.cu.  For the second sum dS is skewed back to the band's
 * columns (attn_bwd_q.cu explains how), as left operands of its eight steps of depth 16; a warp's
 * window covers five of them, the others are zero. */
#include "ops/cuda/attn_sm90.cuh"

enum {
    QUERIES = WG_GROUPS * WG_ROWS,
    STAGES = 3, /* this tile and two to come */
    SLOTS = 5,  /* chunks of r: three for this tile, two to come */
    QU = 0,
    QV = QU + WG_GROUPS * WG_TILE,
    DO = QV + WG_GROUPS * WG_TILE,
    KEY = DO + WG_GROUPS * WG_TILE,
    VALUE = KEY + STAGES * WG_TILE,
    BAND = VALUE + STAGES * WG_TILE,
    BYTES = BAND + SLOTS * WG_TILE
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

/* dS from scores and dP; what is not visible becomes 0. */
static __device__ __forceinline__ void grade(float (&s)[8][4], const float (&dp)[8][4],
                                             float scale2, const float (&lse2)[2],
                                             const float (&delta)[2])
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            s[n][x] = attn_exp2(fmaf(s[n][x], scale2, -lse2[x / 2])) * (dp[n][x] - delta[x / 2]);
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
    __syncthreads();
    for (int x = (int)threadIdx.x; x < K; x += WG_BLOCK) {
        float sum = 0.0f;
        for (int w = 0; w < WG_BLOCK / LAM_WARP; w++)
            sum += sums[w * K + x];
        part[x] = sum * scale;
    }
    __syncthreads();
}

template <int K>
static __global__ void __launch_bounds__(WG_BLOCK, 1) sm90_bwd_q(const attn_call c)
{
    const lam_attn &a = c.a;
    const walk w = walk_of(c);
    const int group = (int)threadIdx.x / WG_THREADS, warp = (int)threadIdx.x / LAM_WARP % 4;
    const int lane = (int)threadIdx.x % LAM_WARP, row0 = WG_ROWS * group + 16 * warp;
    const attn_lanes lanes = attn_lanes_of<K>(lane);
    const attn_skew skew = attn_skew_by(RIGHT, lane);
    const attn_unskew back = attn_unskew_of(lane);
    const uint32_t room = attn_address(attn_room());
    const float scale2 = (float)a.scale * CUDART_L2E_F;
    const size_t stat = ((size_t)w.b * a.H + w.h) * c.q_pad, col = (size_t)w.h * K;

    attn_load_rows<K, QUERIES, WG_BLOCK>(room + QU, c.qu + stat * K, K, w.i0, 1, c.q_pad);
    attn_load_rows<K, QUERIES, WG_BLOCK>(room + QV, c.qv + stat * K, K, w.i0, 1, c.q_pad);
    attn_load_rows<K, QUERIES, WG_BLOCK>(
        room + DO, attn_row<const lam_bf16>(a.d_o, a.ldo, w.b, 0, col), a.ldo, w.i0, 1, a.queries);
    fetch<K>(c, w, 0, room);
    attn_copy_close();
    fetch<K>(c, w, 1, room);
    attn_copy_close();
    float lse2[2] = {CUDART_INF_F, CUDART_INF_F}, delta[2] = {0.0f, 0.0f};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int i = w.i0 + row0 + lanes.g + 8 * half;
        if (i < a.queries) {
            lse2[half] = c.lse2[stat + i];
            delta[half] = c.delta[stat + i];
        }
    }
    float dq_k[K / 8][4] = {}, dq_r[K / 8][4] = {};
    for (int t = 0; t < w.tiles; t++) {
        attn_copy_wait<1>();
        attn_wg_publish();
        __syncthreads(); /* all have tile t, and none reads tile t - 1 any more */
        fetch<K>(c, w, t + 2, room);
        attn_copy_close();
        const int j0 = w.key_lo + t * WG_ROWS, at = a.shift + w.i0 + WG_ROWS * group;
        const int low = j0 - (at + WG_ROWS - 1), high = j0 + WG_ROWS - 1 - at;
        if (high < c.e_lo || low > c.e_hi)
            continue;
        const uint32_t stage = (uint32_t)(t % STAGES * WG_TILE);
        const uint32_t mine = room + (uint32_t)(group * WG_TILE);
        const uint32_t chunk[2] = {room + BAND + (uint32_t)((t + 1 - group) % SLOTS * WG_TILE),
                                   room + BAND + (uint32_t)((t + 2 - group) % SLOTS * WG_TILE)};
        float s[8][4], dp[8][4], band[2][8][4];
        attn_wg_hold(s);
        attn_wg_hold(dp);
        attn_wg_hold(band[0]);
        attn_wg_hold(band[1]);
        attn_wg_begin();
        attn_wg_rows<K>(s, mine + QU, room + KEY + stage);
        attn_wg_rows<K>(band[0], mine + QV, chunk[0]);
        attn_wg_rows<K>(band[1], mine + QV, chunk[1]);
        attn_wg_close();
        attn_wg_rows<K>(dp, mine + DO, room + VALUE + stage);
        attn_wg_close();
        attn_wg_wait<1>();
        attn_wg_hold(s);
        attn_wg_hold(band[0]);
        attn_wg_hold(band[1]);
        attn_add_skewed<RIGHT>(s, band, warp, skew);
        if (low < c.e_lo || high > c.e_hi || j0 + WG_ROWS > a.keys) {
            const int from = at + 16 * warp + lanes.g - j0;
            hide(s, from + c.e_lo, from + c.e_hi, a.keys - j0, lanes.t);
        }
        attn_wg_wait<0>();
        attn_wg_hold(dp);
        grade(s, dp, scale2, lse2, delta);
        uint32_t left[4][4], left_band[8][4];
        attn_pack_left(left, s);
        unskew(left_band, s, warp, back);
        attn_wg_hold(dq_k);
        attn_wg_hold(dq_r);
        attn_wg_begin();
#pragma unroll
        for (int kk = 0; kk < 4; kk++)
            attn_wg_mma<K, BY_COLUMNS>(dq_k, left[kk],
                                       attn_operand(room + KEY + stage + WG_STEP_COLS * kk), true);
#pragma unroll
        for (int kk = 0; kk < 8; kk++)
            attn_wg_mma<K, BY_COLUMNS>(dq_r, left_band[kk],
                                       attn_operand(chunk[kk / 4] + WG_STEP_COLS * (kk % 4)), true);
        attn_wg_close();
        attn_wg_wait<0>(); /* registers do not suffice to begin the next tile meanwhile */
        attn_wg_hold(dq_k);
        attn_wg_hold(dq_r);
    }
    attn_copy_wait<0>();
    __syncthreads(); /* the tiles are free */
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
    attn_write_rows<K>(attn_row<lam_bf16>(a.dq, a.ldq, w.b, w.i0 + row0, col), a.ldq, out,
                       a.queries - w.i0 - row0, false);
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    const lam_attn *a = &c->a;
    const int tiles = lam_cuda_ceil(a->queries, QUERIES), width = a->H * K;
    const dim3 grid((unsigned)tiles, (unsigned)a->H, (unsigned)a->B);
    attn_launch(dev, "attn_bwd", sm90_bwd_q<K>, grid, WG_BLOCK, BYTES, *c);
    if (a->u && a->du)
        lam_cuda_attn_fold(dev, (float *)a->du, c->du_part, a->B * tiles, width);
    if (a->v && a->dv)
        lam_cuda_attn_fold(dev, (float *)a->dv, c->dv_part, a->B * tiles, width);
}

void lam_cuda_attn_sm90_bwd_q(lam_cuda_dev *dev, const attn_call *c)
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
