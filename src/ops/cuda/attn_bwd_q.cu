/* cuda/attn_bwd_q.cu -- dq of relative-position attention on tensor cores.
 *
 * fwd was S = scale ((q + u) . k + (q + v) . r), P = exp(S - lse), o = P value.  With
 * dS = P (do . value - delta), delta from attn_prepare.cu,
 *   dq_i = scale ( sum_j dS_ij k_j  +  sum_j dS_ij r[row(i,j)] ).
 * Same walk as attn_fwd.cu: a block owns queries, a warp 16 of them, tiles of keys and the ring of r
 * come by.  The second sum is a product with the same band of r once dS is skewed back from keys to
 * distances: two rows at a time, packed, so a tile costs two shuffles. */
#include "ops/cuda/attn_tile.cuh"

template <int K>
struct plan {
    enum {
        WARPS = K <= 64 ? 8 : 4,
        THREADS = WARPS * LAM_WARP,
        KEYS = K <= 64 ? 64 : 32,
        QUERIES = 16 * WARPS,
        RING = QUERIES + 2 * KEYS,
        PITCH = attn_tile<K>::PITCH,
        Q = 0,
        DO = Q + QUERIES * PITCH,
        KEY = DO + QUERIES * PITCH,
        VALUE = KEY + 2 * KEYS * PITCH,
        BAND = VALUE + 2 * KEYS * PITCH,
        BYTES = BAND + RING * PITCH
    };
};

/* dq += dS k and dq += (dS skewed back) r. */
template <int K>
static __device__ __forceinline__ void add_keys(float (&dq)[K / 8][4],
                                                const float (&ds)[plan<K>::KEYS / 8][4],
                                                uint32_t keys, const attn_lanes &lanes)
{
#pragma unroll
    for (int kk = 0; kk < plan<K>::KEYS / 16; kk++) {
        uint32_t a[4];
#pragma unroll
        for (int x = 0; x < 4; x++)
            a[x] = lam_pack(ds[2 * kk + x / 2][x % 2 * 2], ds[2 * kk + x / 2][x % 2 * 2 + 1]);
        attn_add_rows<K>(dq, a, keys + (uint32_t)(16 * kk * plan<K>::PITCH), lanes);
    }
}

template <int K>
static __device__ __forceinline__ void
add_band(float (&dq)[K / 8][4], const float (&ds)[plan<K>::KEYS / 8][4], uint32_t ring, int first,
         const attn_lanes &lanes, const attn_unskew &back)
{
    enum { TILES = plan<K>::KEYS / 8 };
    /* Shuffled tiles of keys, row g in the lower half, row g + 8 in the upper; before and after
     * them there is nothing. */
    uint32_t even[2] = {0, 0}, odd[2] = {0, 0}; /* tile n - 1 and n */
    uint32_t x_last = 0, y_last = 0;            /* what row g takes in the next tile */
    uint32_t a[4];
#pragma unroll
    for (int n = 0; n < TILES + 2; n++) {
        even[0] = even[1];
        odd[0] = odd[1];
        even[1] = odd[1] = 0;
        if (n < TILES) {
            even[1] = __shfl_sync(ATTN_FULL_WARP, lam_pack(ds[n][0], ds[n][2]), back.even);
            odd[1] = __shfl_sync(ATTN_FULL_WARP, lam_pack(ds[n][1], ds[n][3]), back.odd);
        }
        const uint32_t x = back.even_same ? even[1] : even[0], y = back.odd_same ? odd[1] : odd[0];
        a[n % 2 * 2] = lam_bytes(x_last, y_last, back.upper);
        a[n % 2 * 2 + 1] = lam_bytes(x, y, back.lower);
        x_last = x;
        y_last = y;
        if (n % 2 == 1) {
            const int row = (first + 8 * (n - 1)) & (plan<K>::RING - 1);
            attn_add_rows<K>(dq, a, ring + (uint32_t)(row * plan<K>::PITCH), lanes);
        }
    }
}

/* dS = P (dP - delta) from the scores, in their place; what is not visible becomes 0. */
template <int TILES>
static __device__ __forceinline__ void score_gradient(float (&s)[TILES][4],
                                                      const float (&dp)[TILES][4], float scale2,
                                                      const float (&lse2)[2])
{
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            s[n][x] = lam_exp2(fmaf(s[n][x], scale2, -lse2[x / 2])) * dp[n][x];
}

template <int K, bool PARTLY>
static __global__ void __launch_bounds__(plan<K>::THREADS) tile_bwd_q(const attn_call c)
{
    typedef plan<K> P;
    const lam_attn &a = c.a;
    const int tile = c.e_hi == 0 ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z, i0 = tile * P::QUERIES;
    const int warp = (int)threadIdx.x / LAM_WARP, lane = (int)threadIdx.x % LAM_WARP;
    const attn_lanes lanes = attn_lanes_of<K>(lane);
    const attn_skew skew = attn_skew_by(RIGHT, lane);
    const attn_unskew back = attn_unskew_of(lane);
    const uint32_t smem = lam_address(lam_shared_memory());
    const size_t col = (size_t)h * K;
    const lam_bf16 *k = attn_row<const lam_bf16>(a.k, a.ldk, b, 0, col);
    const lam_bf16 *value = attn_row<const lam_bf16>(a.value, a.ldk, b, 0, col);
    const float scale2 = (float)a.scale * CUDART_L2E_F;
    const int oldest = attn_oldest<PARTLY>(c, b);

    const attn_tile_walk walk = attn_tile_walk_of<P::QUERIES, P::KEYS>(c, i0);
    const int key_lo = walk.key_lo, tiles = walk.tiles, e0 = walk.e0;

    attn_load_rows<K, P::QUERIES, P::THREADS>(
        smem + P::Q, attn_row<const lam_bf16>(a.q, a.ldq, b, 0, col), a.ldq, i0, 1, a.queries);
    attn_load_rows<K, P::QUERIES, P::THREADS>(
        smem + P::DO, attn_row<const lam_bf16>(a.d_o, a.ldo, b, 0, col), a.ldo, i0, 1, a.queries);
    if (tiles > 0)
        attn_load_first_tile<K, P>(c, smem, k, value, h, key_lo, e0);
    lam_copy_close();
    lam_copy_wait<0>();
    __syncthreads();

    const int row0 = warp * 16;
    uint32_t qu[1][K / 16][4], qv[1][K / 16][4], d_o[1][K / 16][4];
    const uint32_t rows = smem + (uint32_t)(row0 * P::PITCH);
    attn_load_biased<K>(qu[0], rows + P::Q, a.u ? (const float *)a.u + col : NULL, lanes);
    attn_load_biased<K>(qv[0], rows + P::Q, a.v ? (const float *)a.v + col : NULL, lanes);
    attn_load_left<K>(d_o[0], rows + P::DO, lanes);
    float lse2[2] = {CUDART_INF_F, CUDART_INF_F}, delta[2] = {0.0f, 0.0f}, dq[K / 8][4] = {};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int i = i0 + row0 + lanes.g + 8 * half;
        if (i < a.queries) {
            lse2[half] = c.lse2[((size_t)b * a.H + h) * c.q_pad + i];
            delta[half] = c.delta[((size_t)b * a.H + h) * c.q_pad + i];
        }
    }

    for (int t = 0; t < tiles; t++) {
        const int j0 = key_lo + t * P::KEYS;
        const uint32_t stage = (uint32_t)(t % 2 * P::KEYS * P::PITCH);
        if (t > 0) {
            lam_copy_wait<0>();
            __syncthreads(); /* all have this tile, and none reads the one before it any more */
        }
        if (t + 1 < tiles)
            attn_load_next_tile<K, P>(c, smem, k, value, h, t, j0, e0);
        lam_copy_close();

        const int at = a.shift + i0 + row0; /* where the warp's first query stands */
        const int first = t * P::KEYS + P::QUERIES - 16 - row0;
        if (j0 + P::KEYS - 1 - at < c.e_lo || j0 - (at + 15) > c.e_hi)
            continue;
        float s[1][P::KEYS / 8][4] = {}, dp[1][P::KEYS / 8][4];
        if (a.r)
            attn_band_scores<K, 1, P::KEYS, P::RING>(s, qv, smem + P::BAND, first, lanes, skew);
        attn_scores<K, 1, P::KEYS>(s, qu, smem + P::KEY + stage, lanes);
#pragma unroll
        for (int n = 0; n < P::KEYS / 8; n++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                dp[0][n][x] = -delta[x / 2];
        attn_scores<K, 1, P::KEYS>(dp, d_o, smem + P::VALUE + stage, lanes);
        if (j0 - (at + 15) < c.e_lo || j0 + P::KEYS - 1 - at > c.e_hi || j0 + P::KEYS > a.keys ||
            (PARTLY && j0 < oldest))
            attn_hide(s[0], at + lanes.g + c.e_lo - j0, at + lanes.g + c.e_hi - j0,
                      PARTLY ? oldest - j0 : 0, a.keys - j0, lanes.t);
        score_gradient(s[0], dp[0], scale2, lse2);
        add_keys<K>(dq, s[0], smem + P::KEY + stage, lanes);
        if (a.r)
            add_band<K>(dq, s[0], smem + P::BAND, first, lanes, back);
    }
    unsigned char *out = lam_shared_memory() + P::Q + row0 * P::PITCH;
    attn_store_tile<K>(out, dq, (float)a.scale, (float)a.scale, lanes);
    __syncwarp();
    attn_write_rows<K>(attn_row<lam_bf16>(a.dq, a.ldq, b, i0 + row0, col), a.ldq, out,
                       a.queries - i0 - row0, false);
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    const int tiles = lam_cuda_ceil(c->a.queries, plan<K>::QUERIES);
    const dim3 grid((unsigned)tiles, (unsigned)c->a.H, (unsigned)c->a.B);
    const auto kernel = c->a.valid ? tile_bwd_q<K, true> : tile_bwd_q<K, false>;
    lam_cuda_launch(dev, "attn_bwd", kernel, {grid, plan<K>::THREADS, plan<K>::BYTES}, *c);
}

void lam_cuda_attn_tile_bwd_q(lam_cuda_dev *dev, const attn_call *c)
{
    attn_by_tiled_width(c->a.K, [&](auto width) { launch<width>(dev, c); });
}
