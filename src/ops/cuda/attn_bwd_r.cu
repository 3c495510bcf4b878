/* cuda/attn_bwd_r.cu -- dr and dv of relative-position attention on tensor cores.
 *
 * With dS and its sums (attn_own.cuh), along the diagonal j - shift - i = e,
 *   dr_e = scale ( sum_{b,i} dS q_i + (sum dS) v )           dv = scale sum_e (sum dS) r_e */
#include "ops/cuda/attn_own.cuh"

/* Distances nearest to the query have most pairs, and they come last in the order of offsets when causal. */
template <int K, bool PARTLY>
static __global__ void __launch_bounds__(attn_own_plan<K, DISTANCES>::THREADS)
    tile_bwd_r(const attn_call c)
{
    typedef attn_own_plan<K, DISTANCES> P;
    const lam_attn &a = c.a;
    const int warp = (int)threadIdx.x / LAM_WARP, group = (int)blockIdx.z;
    const attn_lanes lanes = attn_lanes_of<K>((int)threadIdx.x % LAM_WARP);
    const int tile = c.e_hi == 0 ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    attn_own_task w;
    w.h = (int)blockIdx.y;
    w.stream = (int)((long)group * a.B / c.groups);
    const int streams = (int)((long)(group + 1) * a.B / c.groups) - w.stream;
    w.first = c.e_first + tile * P::OWN;
    const int lo = max(w.first, c.e_lo), hi = min(w.first + P::OWN - 1, c.e_hi);
    w.tile_lo = max(0, -a.shift - hi) / P::QUERIES;
    const int i_hi = lo > hi ? -1 : min(a.queries - 1, a.keys - 1 - a.shift - lo);
    w.tile_hi = i_hi < 0 ? -1 : i_hi / P::QUERIES;
    w.steps = max(0, w.tile_hi - w.tile_lo + 1) * streams;

    const size_t col = (size_t)w.h * K;
    attn_load_band<K, P::OWN, P::THREADS>(lam_address(lam_shared_memory()) + P::MINE, c, w.h,
                                          w.first);
    attn_owned<K, DISTANCES> m = {};
    int row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half] = a.r_zero + a.r_sign * (w.first + 16 * warp + lanes.g + 8 * half);
        if (row[half] >= 0 && row[half] < a.r_rows)
            m.bias[half] = c.r_bias[(size_t)w.h * a.r_rows + row[half]];
    }
    attn_own_walk<K, DISTANCES, PARTLY>(c, w, m, lanes);

    attn_own_share((float *)(lam_shared_memory() + P::SUMS), m.sum, warp, lanes);
    __syncthreads();
    if (a.v)
        attn_own_sum_rows<K, DISTANCES>(
            c.dv_part + (((size_t)group * gridDim.x + blockIdx.x) * a.H + w.h) * K, (float)a.scale);
    attn_own_add_bias<K, DISTANCES>(m, a.v ? (const float *)a.v + col : NULL, lanes);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (row[half] < 0 || row[half] >= a.r_rows)
            continue;
        float *out = c.dr_part + ((size_t)group * a.r_rows + row[half]) * a.H * K + col;
#pragma unroll
        for (int n = 0; n < K / 8; n++)
            *(float2 *)(out + 8 * n + 2 * lanes.t) = make_float2(
                m.d[n][2 * half] * (float)a.scale, m.d[n][2 * half + 1] * (float)a.scale);
    }
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    typedef attn_own_plan<K, DISTANCES> P;
    const lam_attn *a = &c->a;
    const int tiles = lam_cuda_ceil(a->r_rows, P::OWN), width = a->H * K;
    const dim3 grid((unsigned)tiles, (unsigned)a->H, (unsigned)c->groups);
    const auto kernel = a->valid ? tile_bwd_r<K, true> : tile_bwd_r<K, false>;
    lam_cuda_launch(dev, "attn_bwd", kernel, {grid, P::THREADS, P::BYTES}, *c);
    lam_cuda_attn_sum_groups(dev, c);
    if (a->v && a->dv)
        lam_cuda_attn_fold(dev, (float *)a->dv, c->dv_part, c->groups * tiles, width);
}

void lam_cuda_attn_tile_bwd_r(lam_cuda_dev *dev, const attn_call *c)
{
    attn_by_tiled_width(c->a.K, [&](auto width) { launch<width>(dev, c); });
}
