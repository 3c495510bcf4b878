/* cuda/attn_sm90_bwd_r.cu -- dr of relative-position attention for Hopper.
 *
 * fwd was S = scale (qu . k + qv . r); with dS = P (do . value - delta), along the diagonal
 * j - shift - i = e and over all streams
 *   dr_e = scale sum_{b,i} dS qv_i.
 * A block owns 128 distances, a warpgroup 64, for a group of streams; tiles of 64 queries come by, one
 * stream after the other, with the keys and values that stand at these distances from them: a band of
 * 128 for a warpgroup, 192 for a block, moving on by 64 a tile.  So here the positional part is the
 * direct product and content and dP are skewed.  Groups of streams are summed in order at the end. */
#include "ops/cuda/attn_sm90.cuh"

enum {
    OWN = WG_GROUPS * WG_ROWS,
    STAGES = 3, /* of qv: this tile, one to come, the one whose sum may still run */
    EARLY = 2,  /* of qu and do, which that sum does not read */
    SLOTS = 6,  /* chunks of keys and values: three for this tile, up to three to come */
    MINE = 0,
    QV = MINE + WG_GROUPS * WG_TILE,
    QU = QV + STAGES * WG_TILE,
    DO = QU + EARLY * WG_TILE,
    KEY = DO + EARLY * WG_TILE,
    VALUE = KEY + SLOTS * WG_TILE,
    DS = VALUE + SLOTS * WG_TILE, /* [2][WG_GROUPS] */
    LSE2 = DS + 2 * WG_GROUPS * WG_TILE,
    DELTA = LSE2 + EARLY * WG_ROWS * 4,
    BYTES = DELTA + EARLY * WG_ROWS * 4
};

struct walk {
    int h, stream, first; /* the first stream, the first owned place */
    int tile_lo, tiles;   /* of queries, in every stream */
    int steps;
};

struct step {
    int b, i0, chunk; /* stream, first query, first chunk of keys */
    bool fresh;       /* first of its stream */
};

static __device__ __forceinline__ walk walk_of(const attn_call &c)
{
    const lam_attn &a = c.a;
    walk w;
    const int tile = c.e_hi == 0 ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    const int e_first = a.r_sign > 0 ? -a.r_zero : a.r_zero - (a.r_rows - 1);
    w.h = (int)blockIdx.y;
    w.stream = (int)((long)blockIdx.z * a.B / c.groups);
    const int streams = (int)((long)(blockIdx.z + 1) * a.B / c.groups) - w.stream;
    w.first = e_first + tile * OWN;
    const int lo = max(w.first, c.e_lo), hi = min(w.first + OWN - 1, c.e_hi);
    const int i_hi = lo > hi ? -1 : min(a.queries - 1, a.keys - 1 - a.shift - lo);
    w.tile_lo = max(0, -a.shift - hi) / WG_ROWS;
    const int tiles = i_hi < 0 ? 0 : max(0, i_hi / WG_ROWS - w.tile_lo + 1);
    w.tiles = max(1, tiles);
    w.steps = tiles * streams;
    return w;
}

static __device__ __forceinline__ step step_of(const walk &w, int n)
{
    const int stream = n / w.tiles, tile = n % w.tiles;
    return {w.stream + stream, (w.tile_lo + tile) * WG_ROWS, stream * (w.tiles + 2) + tile,
            tile == 0};
}

template <int K>
static __device__ __forceinline__ void fetch(const attn_call &c, const walk &w, int n,
                                             uint32_t room)
{
    const lam_attn &a = c.a;
    if (n >= w.steps)
        return;
    const step s = step_of(w, n);
    const size_t stat = ((size_t)s.b * a.H + w.h) * c.q_pad, col = (size_t)w.h * K;
    const uint32_t late = (uint32_t)(n % STAGES), early = (uint32_t)(n % EARLY);
    attn_fetch<K>(room + QV + late * WG_TILE, c.qv + stat * K, K, s.i0, c.q_pad);
    attn_fetch<K>(room + QU + early * WG_TILE, c.qu + stat * K, K, s.i0, c.q_pad);
    attn_fetch<K>(room + DO + early * WG_TILE, attn_row<const lam_bf16>(a.d_o, a.ldo, s.b, 0, col),
                  a.ldo, s.i0, a.queries);
    attn_load_floats<WG_ROWS>(room + LSE2 + early * WG_ROWS * 4, c.lse2 + stat, s.i0, 1, c.q_pad);
    attn_load_floats<WG_ROWS>(room + DELTA + early * WG_ROWS * 4, c.delta + stat, s.i0, 1, c.q_pad);
    for (int x = s.fresh ? 0 : 2; x < 3; x++) {
        const uint32_t slot = (uint32_t)((s.chunk + x) % SLOTS * WG_TILE);
        const int key = w.first + a.shift + s.i0 + x * WG_ROWS;
        attn_fetch<K>(room + KEY + slot, attn_row<const lam_bf16>(a.k, a.ldk, s.b, 0, col), a.ldk,
                      key, a.keys);
        attn_fetch<K>(room + VALUE + slot, attn_row<const lam_bf16>(a.value, a.ldk, s.b, 0, col),
                      a.ldk, key, a.keys);
    }
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

template <int K>
static __global__ void __launch_bounds__(WG_BLOCK, 1) sm90_bwd_r(const attn_call c)
{
    const lam_attn &a = c.a;
    const walk w = walk_of(c);
    const int group = (int)threadIdx.x / WG_THREADS, warp = (int)threadIdx.x / LAM_WARP % 4;
    const int lane = (int)threadIdx.x % LAM_WARP;
    const attn_lanes lanes = attn_lanes_of<K>(lane);
    const attn_skew skew = attn_skew_by(LEFT, lane);
    const uint32_t room = attn_address(attn_room());
    const float *floats = (const float *)(attn_room() + LSE2);
    const float scale2 = (float)a.scale * CUDART_L2E_F;

    attn_load_band<K, OWN, WG_BLOCK>(room + MINE, c, w.h, w.first);
    fetch<K>(c, w, 0, room);
    attn_copy_close();
    float dr[K / 8][4] = {};
    const uint32_t mine = room + (uint32_t)(group * WG_TILE);
    const int e0 = w.first + WG_ROWS * group;
    for (int n = 0; n == 0 || n < w.steps; n++) {
        attn_copy_wait<0>();
        attn_wg_publish();
        __syncthreads(); /* all have tile n, and none reads tile n - 2 any more */
        fetch<K>(c, w, n + 1, room);
        attn_copy_close();
        const step st = step_of(w, n);
        const int key = e0 + a.shift + st.i0; /* of the first row and column */
        if (e0 > c.e_hi || e0 + WG_ROWS - 1 < c.e_lo || key + 2 * WG_ROWS - 2 < 0 ||
            key >= a.keys || w.steps == 0) {
            attn_wg_wait<0>(); /* tile n - 1 may be overwritten after the next barrier */
            attn_wg_hold(dr);
            continue;
        }
        const uint32_t late = (uint32_t)(n % STAGES * WG_TILE), early = (uint32_t)(n % EARLY);
        const uint32_t slot0 = (uint32_t)((st.chunk + group) % SLOTS * WG_TILE);
        const uint32_t slot1 = (uint32_t)((st.chunk + group + 1) % SLOTS * WG_TILE);
        const uint32_t ds_tile = mine + DS + (uint32_t)(n % 2 * WG_GROUPS * WG_TILE);
        float s[8][4], band[2][8][4], dp_band[2][8][4], lse2[2], delta[2];
        attn_wg_hold(s);
        attn_wg_hold(band[0]);
        attn_wg_hold(band[1]);
        attn_wg_hold(dp_band[0]);
        attn_wg_hold(dp_band[1]);
        attn_wg_begin();
        attn_wg_rows<K>(s, room + QV + late, mine + MINE);
        attn_wg_rows<K>(band[0], room + QU + early * WG_TILE, room + KEY + slot0);
        attn_wg_rows<K>(band[1], room + QU + early * WG_TILE, room + KEY + slot1);
        attn_wg_close();
        attn_wg_rows<K>(dp_band[0], room + DO + early * WG_TILE, room + VALUE + slot0);
        attn_wg_rows<K>(dp_band[1], room + DO + early * WG_TILE, room + VALUE + slot1);
        attn_wg_close();
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = (int)early * WG_ROWS + 16 * warp + lanes.g + 8 * half;
            lse2[half] = floats[row];
            delta[half] = floats[EARLY * WG_ROWS + row];
        }
        attn_wg_wait<1>(); /* and the sum of the tile before */
        attn_wg_hold(s);
        attn_wg_hold(band[0]);
        attn_wg_hold(band[1]);
        attn_add_skewed<LEFT>(s, band, warp, skew);
#pragma unroll
        for (int y = 0; y < 8; y++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                s[y][x] = attn_exp2(fmaf(s[y][x], scale2, -lse2[x / 2]));
        if (e0 < c.e_lo || e0 + WG_ROWS - 1 > c.e_hi || key < 0 || key + 2 * WG_ROWS - 2 >= a.keys)
            hide(s, c.e_lo - e0, c.e_hi - e0, key + 16 * warp + lanes.g, a.keys, lanes.t);
        attn_wg_wait<0>();
        attn_wg_hold(dp_band[0]);
        attn_wg_hold(dp_band[1]);
        attn_wg_hold(dr);
        float dp[8][4];
#pragma unroll
        for (int y = 0; y < 8; y++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                dp[y][x] = -delta[x / 2];
        attn_add_skewed<LEFT>(dp, dp_band, warp, skew);
#pragma unroll
        for (int y = 0; y < 8; y++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                s[y][x] *= dp[y][x];
        attn_store_left(ds_tile + (uint32_t)(16 * warp * 128), s, lanes);
        attn_wg_publish();
        attn_wg_barrier(group);
        attn_wg_begin();
        attn_wg_columns<K>(dr, ds_tile, room + QV + late);
        attn_wg_close();
    }
    attn_wg_wait<0>();
    attn_wg_hold(dr);
    attn_copy_wait<0>();
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
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    const dim3 grid((unsigned)lam_cuda_ceil(c->a.r_rows, OWN), (unsigned)c->a.H,
                    (unsigned)c->groups);
    attn_launch(dev, "attn_bwd", sm90_bwd_r<K>, grid, WG_BLOCK, BYTES, *c);
    lam_cuda_attn_sum_groups(dev, c);
}

void lam_cuda_attn_sm90_bwd_r(lam_cuda_dev *dev, const attn_call *c)
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
