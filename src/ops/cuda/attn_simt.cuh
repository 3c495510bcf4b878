/* cuda/attn_simt.cuh -- what forward and backward of the plain attention share: one pair at a time.
 *
 * A block owns one row of the result (a query, a key or a distance) and walks over its pairs in
 * chunks: first a thread takes a pair and leaves its weight in shared memory, then a warp takes every
 * WARPS-th pair and its lanes the columns.  Sums of the warps are added in order. */
#ifndef LAM_OPS_CUDA_ATTN_SIMT_CUH
#define LAM_OPS_CUDA_ATTN_SIMT_CUH

#include "ops/cuda/attn_int.cuh"
#include "ops/cuda/ptx.cuh"

#include <math_constants.h>

enum { SIMT_CHUNK = 1024 };

/* Shared memory of a block, in floats. */
struct simt_shared {
    float *u, *v;          /* [wide] this head's, zeros where the call has none */
    float *weight, *other; /* [SIMT_CHUNK] */
    float *part, *part2;   /* [warps][wide] */
    float *sums;           /* [2 * LAM_WARP] */
    int wide;              /* K rounded up to 8 */
};

static inline __host__ __device__ size_t simt_floats(int K, int threads)
{
    const size_t wide = (size_t)lam_cuda_ceil(K, 8) * 8;
    return 2 * wide + 2 * SIMT_CHUNK + 2 * LAM_WARP + 2 * wide * (size_t)(threads / LAM_WARP);
}

static __device__ __forceinline__ simt_shared simt_open(const attn_call &c, int h)
{
    const int K = c.a.K, warps = (int)blockDim.x / LAM_WARP;
    simt_shared r;
    r.wide = lam_cuda_ceil(K, 8) * 8;
    r.u = (float *)lam_shared_memory();
    r.v = r.u + r.wide;
    r.weight = r.v + r.wide;
    r.other = r.weight + SIMT_CHUNK;
    r.sums = r.other + SIMT_CHUNK;
    r.part = r.sums + 2 * LAM_WARP;
    r.part2 = r.part + warps * r.wide;
    for (int x = (int)threadIdx.x; x < r.wide; x += (int)blockDim.x) {
        r.u[x] = c.a.u && x < K ? ((const float *)c.a.u)[(size_t)h * K + x] : 0.0f;
        r.v[x] = c.a.v && x < K ? ((const float *)c.a.v)[(size_t)h * K + x] : 0.0f;
    }
    for (int x = (int)threadIdx.x; x < 2 * warps * r.wide; x += (int)blockDim.x)
        r.part[x] = 0.0f;
    __syncthreads();
    return r;
}

/* The largest x of a block; `sums` is free again after the next barrier. */
static __device__ __forceinline__ float simt_max(float x, float *sums)
{
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    x = lam_warp_max(x);
    if (lane == 0)
        sums[warp] = x;
    __syncthreads();
    return lam_warp_max(lane < (int)blockDim.x / LAM_WARP ? sums[lane] : -CUDART_INF_F);
}

/* One pair: its rows, at the head. */
template <typename T>
struct simt_pair {
    const T *q, *k, *r;
    float bias; /* rbias */
};

template <typename T>
static __device__ __forceinline__ simt_pair<T> simt_pair_at(const attn_call &c, int b, int h, int i,
                                                            int j)
{
    const lam_attn &a = c.a;
    const size_t col = (size_t)h * a.K;
    const int row = a.r_zero + a.r_sign * (j - a.shift - i);
    return {attn_row<const T>(a.q, a.ldq, b, i, col), attn_row<const T>(a.k, a.ldk, b, j, col),
            a.r ? (const T *)a.r + (size_t)row * a.ldr + col : NULL,
            a.rbias ? ((const float *)a.rbias)[(size_t)row * a.H + h] : 0.0f};
}

/* scale * ((q + u) . k + (q + v) . r + rbias) */
template <typename T>
static __device__ __forceinline__ float simt_score(const attn_call &c, const simt_shared &smem,
                                                   const simt_pair<T> &p)
{
    const int K = c.a.K;
    float sum = 0.0f, sum_r = 0.0f; /* apart: smaller sums round less */
    for (int x = 0; x < K; x += 8) {
        const lam_f8 q = lam_load8_n(p.q + x, K - x, c.aligned);
        const lam_f8 k = lam_load8_n(p.k + x, K - x, c.aligned);
#pragma unroll
        for (int y = 0; y < 8; y++)
            sum += (q.v[y] + smem.u[x + y]) * k.v[y];
        if (p.r) {
            const lam_f8 r = lam_load8_n(p.r + x, K - x, c.aligned);
#pragma unroll
            for (int y = 0; y < 8; y++)
                sum_r += (q.v[y] + smem.v[x + y]) * r.v[y];
        }
    }
    return (float)c.a.scale * (sum + sum_r + p.bias);
}

template <typename T>
static __device__ __forceinline__ float simt_dot(const attn_call &c, const T *x, const T *y)
{
    const int K = c.a.K;
    float sum = 0.0f;
    for (int n = 0; n < K; n += 8) {
        const lam_f8 f = lam_load8_n(x + n, K - n, c.aligned);
        const lam_f8 g = lam_load8_n(y + n, K - n, c.aligned);
#pragma unroll
        for (int m = 0; m < 8; m++)
            sum += f.v[m] * g.v[m];
    }
    return sum;
}

/* The factor of P[i][j] under dropout. */
static __device__ __forceinline__ float simt_keep(const attn_call &c, int b, int h, int i, int j)
{
    if (c.mask.threshold == 0)
        return 1.0f;
    const uint64_t row = ((uint64_t)b * c.a.H + h) * c.a.queries + i;
    const uint64_t index = row * (lam_cuda_ceil(c.a.keys, 8) * 8) + j;
    return lam_mask_keep(c.mask, lam_mask_bits(c.mask, lam_mask_step(c.mask), index / 8),
                         (int)(index % 8))
               ? c.mask.scale
               : 0.0f;
}

#endif
