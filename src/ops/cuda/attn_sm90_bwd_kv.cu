/* cuda/attn_sm90_bwd_kv.cu -- dk and dvalue of relative-position attention for Hopper.
 *
 * fwd was S = scale (qu . k + qv . r), P = exp(S - lse), o = P value; with dS = P (do . value - delta)
 *   dvalue_j = sum_i P_ij do_i        dk_j = scale sum_i dS_ij qu_i.
 * A block owns 128 keys, a warpgroup 64; tiles of 64 queries come by from the last to the first, so
 * that the places of the ring of r grow.  P and dS pass through shared memory once, as bf16, to be
 * read by columns: the left operands of the two sums. */
#include "ops/cuda/attn_sm90.cuh"

enum {
    OWN = WG_GROUPS * WG_ROWS,
    STAGES = 3, /* of qu and do: this tile, one to come, the one whose sums may still run */
    EARLY = 2,  /* of qv, which those sums do not read */
    SLOTS = 4,  /* chunks of r: three for this tile, one to come */
    KEY = 0,
    VALUE = KEY + WG_GROUPS * WG_TILE,
    QU = VALUE + WG_GROUPS * WG_TILE,
    DO = QU + STAGES * WG_TILE,
    QV = DO + STAGES * WG_TILE,
    BAND = QV + EARLY * WG_TILE,
    P = BAND + SLOTS * WG_TILE, /* [2][WG_GROUPS] */
    DS = P + 2 * WG_GROUPS * WG_TILE,
    LSE2 = DS + 2 * WG_GROUPS * WG_TILE,
    DELTA = LSE2 + EARLY * WG_ROWS * 4,
    BYTES = DELTA + EARLY * WG_ROWS * 4
};

struct walk {
    int b, h, first; /* the first owned key */
    int tile_hi, steps;
};

static __device__ __forceinline__ walk walk_of(const attn_call &c)
{
    const lam_attn &a = c.a;
    walk w;
    w.h = (int)blockIdx.y;
    w.b = (int)blockIdx.z;
    w.first = (int)blockIdx.x * OWN;
    const int last = min(w.first + OWN, a.keys) - 1;
    const int i_hi = min(a.queries - 1, last - a.shift - c.e_lo);
    const int tile_lo = max(0, w.first - a.shift - c.e_hi) / WG_ROWS;
    w.tile_hi = i_hi < 0 ? -1 : i_hi / WG_ROWS;
    w.steps = max(0, w.tile_hi - tile_lo + 1);
    return w;
}

template <int K>
static __device__ __forceinline__ void fetch(const attn_call &c, const walk &w, int n,
                                             uint32_t room)
{
    const lam_attn &a = c.a;
    const int i0 = (w.tile_hi - n) * WG_ROWS;
    const size_t stat = ((size_t)w.b * a.H + w.h) * c.q_pad;
    const uint32_t late = (uint32_t)(n % STAGES), early = (uint32_t)(n % EARLY);
    if (n >= w.steps)
        return;
    attn_fetch<K>(room + QU + late * WG_TILE, c.qu + stat * K, K, i0, c.q_pad);
    attn_fetch<K>(room + QV + early * WG_TILE, c.qv + stat * K, K, i0, c.q_pad);
    attn_fetch<K>(room + DO + late * WG_TILE,
                  attn_row<const lam_bf16>(a.d_o, a.ldo, w.b, 0, (size_t)w.h * K), a.ldo, i0,
                  a.queries);
    attn_load_floats<WG_ROWS>(room + LSE2 + early * WG_ROWS * 4, c.lse2 + stat, i0, 1, c.q_pad);
    attn_load_floats<WG_ROWS>(room + DELTA + early * WG_ROWS * 4, c.delta + stat, i0, 1, c.q_pad);
    for (int x = n == 0 ? 0 : 2; x < 3; x++)
        attn_load_band<K, WG_ROWS, WG_BLOCK>(room + BAND + (uint32_t)((n + x) % SLOTS * WG_TILE), c,
                                             w.h,
                                             w.first - a.shift - (i0 + WG_ROWS - 1) + x * WG_ROWS);
}

/* s becomes P; 0 where it is not visible. */
static __device__ __forceinline__ void weigh(float (&s)[8][4], float scale2, const float (&lse2)[2])
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            s[n][x] = attn_exp2(fmaf(s[n][x], scale2, -lse2[x / 2]));
}

static __device__ __forceinline__ void hide(float (&p)[8][4], int lo, int hi, int end, int t)
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            const int key = 8 * n + 2 * t + x % 2, row = x / 2 * 8;
            if (key < lo + row || key > hi + row || key >= end)
                p[n][x] = 0.0f;
        }
}

template <int K>
static __global__ void __launch_bounds__(WG_BLOCK, 1) sm90_bwd_kv(const attn_call c)
{
    const lam_attn &a = c.a;
    const walk w = walk_of(c);
    const int group = (int)threadIdx.x / WG_THREADS, warp = (int)threadIdx.x / LAM_WARP % 4;
    const int lane = (int)threadIdx.x % LAM_WARP;
    const attn_lanes lanes = attn_lanes_of<K>(lane);
    const attn_skew skew = attn_skew_by(RIGHT, lane);
    const uint32_t room = attn_address(attn_room());
    const float *floats = (const float *)(attn_room() + LSE2);
    const float scale2 = (float)a.scale * CUDART_L2E_F;
    const size_t col = (size_t)w.h * K;

    attn_load_rows<K, OWN, WG_BLOCK>(room + KEY, attn_row<const lam_bf16>(a.k, a.ldk, w.b, 0, col),
                                     a.ldk, w.first, 1, a.keys);
    attn_load_rows<K, OWN, WG_BLOCK>(room + VALUE,
                                     attn_row<const lam_bf16>(a.value, a.ldk, w.b, 0, col), a.ldk,
                                     w.first, 1, a.keys);
    fetch<K>(c, w, 0, room);
    attn_copy_close();
    float dk[K / 8][4] = {}, dv[K / 8][4] = {};
    const uint32_t mine = room + (uint32_t)(group * WG_TILE);
    const int j0 = w.first + WG_ROWS * group;
    for (int n = 0; n == 0 || n < w.steps; n++) {
        attn_copy_wait<0>();
        attn_wg_publish();
        __syncthreads(); /* all have tile n, and none reads tile n - 2 any more */
        fetch<K>(c, w, n + 1, room);
        attn_copy_close();
        const int at = a.shift + (w.tile_hi - n) * WG_ROWS; /* where the first query stands */
        const int low = j0 - (at + WG_ROWS - 1), high = j0 + WG_ROWS - 1 - at;
        if (high < c.e_lo || low > c.e_hi || j0 >= a.keys || w.steps == 0) {
            attn_wg_wait<0>(); /* tile n - 1 may be overwritten after the next barrier */
            attn_wg_hold(dk);
            attn_wg_hold(dv);
            continue;
        }
        const uint32_t late = (uint32_t)(n % STAGES * WG_TILE), early = (uint32_t)(n % EARLY);
        const uint32_t band0 = room + BAND + (uint32_t)((n + group) % SLOTS * WG_TILE);
        const uint32_t band1 = room + BAND + (uint32_t)((n + group + 1) % SLOTS * WG_TILE);
        const uint32_t p_tile = mine + P + (uint32_t)(n % 2 * WG_GROUPS * WG_TILE);
        const uint32_t ds_tile = mine + DS + (uint32_t)(n % 2 * WG_GROUPS * WG_TILE);
        float s[8][4], dp[8][4], band[2][8][4], lse2[2], delta[2];
        attn_wg_hold(s);
        attn_wg_hold(dp);
        attn_wg_hold(band[0]);
        attn_wg_hold(band[1]);
        attn_wg_begin();
        attn_wg_rows<K>(s, room + QU + late, mine + KEY);
        attn_wg_rows<K>(band[0], room + QV + early * WG_TILE, band0);
        attn_wg_rows<K>(band[1], room + QV + early * WG_TILE, band1);
        attn_wg_close();
        attn_wg_rows<K>(dp, room + DO + late, mine + VALUE);
        attn_wg_close();
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = (int)early * WG_ROWS + 16 * warp + lanes.g + 8 * half;
            lse2[half] = floats[row];
            delta[half] = floats[EARLY * WG_ROWS + row];
        }
        attn_wg_wait<1>(); /* and the sums of the tile before */
        attn_wg_hold(s);
        attn_wg_hold(band[0]);
        attn_wg_hold(band[1]);
        attn_add_skewed<RIGHT>(s, band, warp, skew);
        weigh(s, scale2, lse2);
        if (low < c.e_lo || high > c.e_hi || j0 + WG_ROWS > a.keys) {
            const int from = at + 16 * warp + lanes.g - j0;
            hide(s, from + c.e_lo, from + c.e_hi, a.keys - j0, lanes.t);
        }
        attn_store_left(p_tile + (uint32_t)(16 * warp * 128), s, lanes);
        attn_wg_wait<0>();
        attn_wg_hold(dp);
        attn_wg_hold(dk);
        attn_wg_hold(dv);
#pragma unroll
        for (int y = 0; y < 8; y++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                s[y][x] *= dp[y][x] - delta[x / 2];
        attn_store_left(ds_tile + (uint32_t)(16 * warp * 128), s, lanes);
        attn_wg_publish();
        attn_wg_barrier(group);
        attn_wg_begin();
        attn_wg_columns<K>(dv, p_tile, room + DO + late);
        attn_wg_columns<K>(dk, ds_tile, room + QU + late);
        attn_wg_close();
    }
    attn_wg_wait<0>();
    attn_wg_hold(dk);
    attn_wg_hold(dv);
    attn_copy_wait<0>();
    __syncthreads(); /* the tiles are free */
    unsigned char *out = attn_room() + group * WG_TILE + 16 * warp * 128;
    attn_store_tile<K>(out + KEY, dk, (float)a.scale, (float)a.scale, lanes);
    attn_store_tile<K>(out + VALUE, dv, 1.0f, 1.0f, lanes);
    __syncwarp();
    const int row = j0 + 16 * warp;
    attn_write_rows<K>(attn_row<lam_bf16>(a.dk, a.ldk, w.b, row, col), a.ldk, out + KEY,
                       a.keys - row, a.kv_add);
    attn_write_rows<K>(attn_row<lam_bf16>(a.dvalue, a.ldk, w.b, row, col), a.ldk, out + VALUE,
                       a.keys - row, a.kv_add);
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    const dim3 grid((unsigned)lam_cuda_ceil(c->a.keys, OWN), (unsigned)c->a.H, (unsigned)c->a.B);
    attn_launch(dev, "attn_bwd", sm90_bwd_kv<K>, grid, WG_BLOCK, BYTES, *c);
}

void lam_cuda_attn_sm90_bwd_kv(lam_cuda_dev *dev, const attn_call *c)
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
