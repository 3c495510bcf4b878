/* cuda/attn_bwd_kv.cu -- dk, dvalue and du of relative-position attention on tensor cores.
 *
 * With dS and its sums over queries (attn_own.cuh)
 *   dk_j = scale ( sum_i dS_ij q_i + (sum_i dS_ij) u )       dvalue_j = sum_i P_ij do_i
 *   du = scale sum_j (sum_i dS_ij) k_j */
#include "ops/cuda/attn_own.cuh"

template <int K, bool PARTLY>
static __global__ void __launch_bounds__(attn_own_plan<K, KEYS>::THREADS)
    tile_bwd_kv(const attn_call c)
{
    typedef attn_own_plan<K, KEYS> P;
    const lam_attn &a = c.a;
    const int warp = (int)threadIdx.x / LAM_WARP, b = (int)blockIdx.z;
    const attn_lanes lanes = attn_lanes_of<K>((int)threadIdx.x % LAM_WARP);
    attn_own_task w;
    w.h = (int)blockIdx.y;
    w.stream = b;
    w.first = (int)blockIdx.x * P::OWN;
    const int last = min(w.first + P::OWN, a.keys) - 1;
    w.tile_lo = max(0, w.first - a.shift - c.e_hi) / P::QUERIES;
    const int i_hi = min(a.queries - 1, last - a.shift - c.e_lo);
    w.tile_hi = i_hi < 0 ? -1 : i_hi / P::QUERIES;
    w.steps = max(0, w.tile_hi - w.tile_lo + 1);

    const size_t col = (size_t)w.h * K, stat = (size_t)b * a.H + w.h;
    const uint32_t smem = lam_address(lam_shared_memory());
    attn_load_rows<K, P::OWN, P::THREADS>(
        smem + P::MINE, attn_row<const lam_bf16>(a.k, a.ldk, b, 0, col), a.ldk, w.first, 1, a.keys);
    attn_load_rows<K, P::OWN, P::THREADS>(smem + P::MINE2,
                                          attn_row<const lam_bf16>(a.value, a.ldk, b, 0, col),
                                          a.ldk, w.first, 1, a.keys);
    attn_owned<K, KEYS> m = {};
    const int row0 = w.first + 16 * warp;
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row0 + lanes.g + 8 * half < a.keys)
            m.bias[half] = c.k_bias[stat * a.keys + row0 + lanes.g + 8 * half];
    attn_own_walk<K, KEYS, PARTLY>(c, w, m, lanes);

    attn_own_share((float *)(lam_shared_memory() + P::SUMS), m.sum, warp, lanes);
    __syncthreads();
    if (a.u)
        attn_own_sum_rows<K, KEYS>(
            c.du_part + (((size_t)b * gridDim.x + blockIdx.x) * a.H + w.h) * K, (float)a.scale);
    __syncthreads();
    attn_own_add_bias<K, KEYS>(m, a.u ? (const float *)a.u + col : NULL, lanes);
    unsigned char *out = lam_shared_memory() + 16 * warp * P::PITCH;
    attn_store_tile<K>(out + P::MINE, m.d, (float)a.scale, (float)a.scale, lanes);
    attn_store_tile<K>(out + P::MINE2, m.d2, 1.0f, 1.0f, lanes);
    __syncwarp();
    attn_write_rows<K>(attn_row<lam_bf16>(a.dk, a.ldk, b, row0, col), a.ldk, out + P::MINE,
                       a.keys - row0, a.kv_add);
    attn_write_rows<K>(attn_row<lam_bf16>(a.dvalue, a.ldk, b, row0, col), a.ldk, out + P::MINE2,
                       a.keys - row0, a.kv_add);
}

template <int K>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    typedef attn_own_plan<K, KEYS> P;
    const lam_attn *a = &c->a;
    const int tiles = lam_cuda_ceil(a->keys, P::OWN), width = a->H * K;
    const dim3 grid((unsigned)tiles, (unsigned)a->H, (unsigned)a->B);
    const auto kernel = a->valid ? tile_bwd_kv<K, true> : tile_bwd_kv<K, false>;
    lam_cuda_launch(dev, "attn_bwd", kernel, {grid, P::THREADS, P::BYTES}, *c);
    if (a->u && a->du)
        lam_cuda_attn_fold(dev, (float *)a->du, c->du_part, a->B * tiles, width);
}

void lam_cuda_attn_tile_bwd_kv(lam_cuda_dev *dev, const attn_call *c)
{
    attn_by_tiled_width(c->a.K, [&](auto width) { launch<width>(dev, c); });
}
