/* cuda/attn_fwd.cu -- relative-position attention forward on tensor cores (Eq. 2, 6, 9, 12).
 *
 * One block owns QUERIES queries of one stream and head and walks over tiles of KEYS keys: content
 * scores, positional scores of the tile's band (attn_tile.cuh), online softmax in base 2, weighted
 * sum; the next tiles are copied meanwhile.  Scores never leave registers.  When the keys move on by
 * a tile the band of distances does too, so r is a ring: each of its rows is copied once per block.
 *
 * A warp owns 16 * MT queries.  q + u and q + v are formed once, rounded to bf16, and kept as left
 * operands.  Every mode is an interval of offsets (attn_int.cuh); tiles inside it need no masks. */
#include "ops/cuda/attn_tile.cuh"

enum { WARPS = 4, KEYS = 64 };

template <int K>
struct plan {
    enum {
        THREADS = WARPS * LAM_WARP,
        MT = K <= 64 ? 2 : 1,
        ROWS = 16 * MT, /* queries of a warp */
        QUERIES = ROWS * WARPS,
        KEYS = ::KEYS,
        RING = 256, /* >= QUERIES + 2 * KEYS */
        PITCH = attn_tile<K>::PITCH,
        Q = 0,
        KEY = Q + QUERIES * PITCH,
        VALUE = KEY + 2 * KEYS * PITCH,
        BAND = VALUE + 2 * KEYS * PITCH,
        BYTES = BAND + RING * PITCH
    };
};

/* The running softmax of a warp's rows: row g of row-tile m at [m][0], row g + 8 at [m][1]. */
template <int K>
struct state {
    float o[plan<K>::MT][K / 8][4];
    float top[plan<K>::MT][2];   /* largest score so far, before the scale */
    float total[plan<K>::MT][2]; /* this lane's share of the sum */
};

/* One tile's step of the online softmax; leaves the weights in s. */
template <int K>
static __device__ __forceinline__ void
softmax_step(state<K> &st, float (&s)[plan<K>::MT][KEYS / 8][4], float scale2)
{
#pragma unroll
    for (int m = 0; m < plan<K>::MT; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float top = st.top[m][half];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
                top = fmaxf(top, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
            top = attn_quad_max(top);
            /* A row that has seen nothing yet: 2^(-infinity - 0) = 0, not 2^(inf - inf). */
            const float base = top == -CUDART_INF_F ? 0.0f : top * scale2;
            const float shrink = lam_exp2(st.top[m][half] * scale2 - base);
            float sum = 0.0f;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int x = 2 * half; x < 2 * half + 2; x++) {
                    s[m][n][x] = lam_exp2(fmaf(s[m][n][x], scale2, -base));
                    sum += s[m][n][x];
                }
            st.total[m][half] = st.total[m][half] * shrink + sum;
            st.top[m][half] = top;
#pragma unroll
            for (int n = 0; n < K / 8; n++) {
                st.o[m][n][2 * half] *= shrink;
                st.o[m][n][2 * half + 1] *= shrink;
            }
        }
}

/* o += P value. */
template <int K>
static __device__ __forceinline__ void add_values(state<K> &st,
                                                  const float (&s)[plan<K>::MT][KEYS / 8][4],
                                                  uint32_t values, const attn_lanes &lanes)
{
    enum { MT = plan<K>::MT };
#pragma unroll
    for (int kk = 0; kk < KEYS / 16; kk++) {
        uint32_t p[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                p[m][x] =
                    lam_pack(s[m][2 * kk + x / 2][x % 2 * 2], s[m][2 * kk + x / 2][x % 2 * 2 + 1]);
#pragma unroll
        for (int pair = 0; pair < K / 16; pair++) {
            uint32_t v[4];
            lam_load4_t(v, values + (uint32_t)(16 * kk * attn_tile<K>::PITCH) +
                               (lanes.a ^ (uint32_t)(pair << 5)));
#pragma unroll
            for (int m = 0; m < MT; m++) {
                lam_mma(st.o[m][2 * pair], p[m], v[0], v[1]);
                lam_mma(st.o[m][2 * pair + 1], p[m], v[2], v[3]);
            }
        }
    }
}

/* Divides by the sums and writes o and lse. */
template <int K>
static __device__ __forceinline__ void finish(const attn_call &c, state<K> &st, int b, int h,
                                              int first, unsigned char *smem,
                                              const attn_lanes &lanes)
{
    const lam_attn &a = c.a;
#pragma unroll
    for (int m = 0; m < plan<K>::MT; m++) {
        const int row = first + 16 * m;
        float inv_sum[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float total = attn_quad_sum(st.total[m][half]);
            inv_sum[half] = total > 0.0f ? 1.0f / total : 0.0f;
            const int i = row + lanes.g + 8 * half;
            if (lanes.t == 0 && i < a.queries)
                *attn_row<float>(a.lse, (size_t)a.H, b, i, (size_t)h) =
                    total > 0.0f ? st.top[m][half] * (float)a.scale + logf(total) : -CUDART_INF_F;
        }
        attn_store_tile<K>(smem + 16 * m * attn_tile<K>::PITCH, st.o[m], inv_sum[0], inv_sum[1],
                           lanes);
        __syncwarp();
        attn_write_rows<K>(attn_row<lam_bf16>(a.o, a.ldo, b, row, (size_t)h * K), a.ldo,
                           smem + 16 * m * attn_tile<K>::PITCH, a.queries - row, false);
    }
}

template <int K, bool PARTLY>
static __global__ void __launch_bounds__(plan<K>::THREADS) tile_fwd(const attn_call c)
{
    typedef plan<K> P;
    const lam_attn &a = c.a;
    /* Later queries of a causal call see more keys: longest work first. */
    const int tile = c.e_hi == 0 ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z, i0 = tile * P::QUERIES;
    const int warp = (int)threadIdx.x / LAM_WARP, lane = (int)threadIdx.x % LAM_WARP;
    const attn_lanes lanes = attn_lanes_of<K>(lane);
    const attn_skew skew = attn_skew_by(RIGHT, lane);
    const uint32_t smem = lam_address(lam_shared_memory());
    const lam_bf16 *k = attn_row<const lam_bf16>(a.k, a.ldk, b, 0, (size_t)h * K);
    const lam_bf16 *value = attn_row<const lam_bf16>(a.value, a.ldk, b, 0, (size_t)h * K);
    const float scale2 = (float)a.scale * CUDART_L2E_F;
    const int oldest = attn_oldest<PARTLY>(c, b);

    const attn_tile_walk walk = attn_tile_walk_of<P::QUERIES, KEYS>(c, i0);
    const int key_lo = walk.key_lo, tiles = walk.tiles, e0 = walk.e0;

    attn_load_rows<K, P::QUERIES, P::THREADS>(
        smem + P::Q, attn_row<const lam_bf16>(a.q, a.ldq, b, 0, (size_t)h * K), a.ldq, i0, 1,
        a.queries);
    if (tiles > 0)
        attn_load_first_tile<K, P>(c, smem, k, value, h, key_lo, e0);
    lam_copy_close();
    lam_copy_wait<0>();
    __syncthreads();

    uint32_t qu[P::MT][K / 16][4], qv[P::MT][K / 16][4];
    const int row0 = warp * P::ROWS;
#pragma unroll
    for (int m = 0; m < P::MT; m++) {
        const uint32_t rows = smem + P::Q + (uint32_t)((row0 + 16 * m) * P::PITCH);
        attn_load_biased<K>(qu[m], rows, a.u ? (const float *)a.u + h * K : NULL, lanes);
        attn_load_biased<K>(qv[m], rows, a.v ? (const float *)a.v + h * K : NULL, lanes);
    }
    state<K> st = {};
#pragma unroll
    for (int m = 0; m < P::MT; m++)
        st.top[m][0] = st.top[m][1] = -CUDART_INF_F;

    for (int t = 0; t < tiles; t++) {
        const int j0 = key_lo + t * KEYS;
        const uint32_t stage = (uint32_t)(t % 2 * KEYS * P::PITCH);
        if (t > 0) {
            lam_copy_wait<0>();
            __syncthreads(); /* all have this tile, and none reads the one before it any more */
        }
        if (t + 1 < tiles)
            attn_load_next_tile<K, P>(c, smem, k, value, h, t, j0, e0);
        lam_copy_close();

        const int at = a.shift + i0 + row0; /* where the warp's first query stands */
        if (j0 + KEYS - 1 - at < c.e_lo || j0 - (at + P::ROWS - 1) > c.e_hi)
            continue;
        float s[P::MT][KEYS / 8][4] = {};
        if (a.r)
            attn_band_scores<K, P::MT, KEYS, P::RING>(
                s, qv, smem + P::BAND, t * KEYS + P::QUERIES - P::ROWS - row0, lanes, skew);
        attn_scores<K, P::MT, KEYS>(s, qu, smem + P::KEY + stage, lanes);
        if (j0 - (at + P::ROWS - 1) < c.e_lo || j0 + KEYS - 1 - at > c.e_hi || j0 + KEYS > a.keys ||
            (PARTLY && j0 < oldest))
#pragma unroll
            for (int m = 0; m < P::MT; m++)
                attn_hide(s[m], at + lanes.g + c.e_lo - j0, at + lanes.g + c.e_hi - j0,
                          PARTLY ? oldest - j0 : 0, a.keys - j0, lanes.t, 16 * m);
        softmax_step<K>(st, s, scale2);
        add_values<K>(st, s, smem + P::VALUE + stage, lanes);
    }
    finish<K>(c, st, b, h, i0 + row0, lam_shared_memory() + P::Q + row0 * P::PITCH, lanes);
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    const int tiles = lam_cuda_ceil(c->a.queries, plan<K>::QUERIES);
    const dim3 grid((unsigned)tiles, (unsigned)c->a.H, (unsigned)c->a.B);
    const auto kernel = c->a.valid ? tile_fwd<K, true> : tile_fwd<K, false>;
    lam_cuda_launch(dev, "attn_fwd", kernel, {grid, plan<K>::THREADS, plan<K>::BYTES}, *c);
}

void lam_cuda_attn_tile_fwd(lam_cuda_dev *dev, const attn_call *c)
{
    attn_by_tiled_width(c->a.K, [&](auto width) { launch<width>(dev, c); });
}
