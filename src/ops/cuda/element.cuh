/* cuda/element.cuh -- elements of ACT and WIDE as kernels read, round, write and add them.
 *
 * Whatever the type, kernels compute in float, eight neighbours at a time where they can. */
#ifndef LAM_OPS_CUDA_ELEMENT_CUH
#define LAM_OPS_CUDA_ELEMENT_CUH

#include <stdint.h>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

typedef __nv_bfloat16 lam_bf16;

enum { LAM_WARP = 32 };

static __device__ __forceinline__ float lam_float(float x)
{
    return x;
}

static __device__ __forceinline__ float lam_float(lam_bf16 x)
{
    return __bfloat162float(x);
}

template <typename T>
static __device__ __forceinline__ T lam_act(float x); /* rounds to nearest even */

template <>
__device__ __forceinline__ float lam_act<float>(float x)
{
    return x;
}

template <>
__device__ __forceinline__ lam_bf16 lam_act<lam_bf16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* Eight neighbours at a time: one 16-byte access of bf16, two of float, one Philox block.  The
 * address must be a multiple of 16 bytes. */
struct lam_f8 {
    float v[8];
};

static __device__ __forceinline__ lam_f8 lam_load8(const float *p)
{
    const float4 a = ((const float4 *)p)[0], b = ((const float4 *)p)[1];
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

static __device__ __forceinline__ lam_f8 lam_load8(const lam_bf16 *p)
{
    const uint4 raw = *(const uint4 *)p; /* a bf16 is the upper half of a float */
    const uint32_t w[4] = {raw.x, raw.y, raw.z, raw.w};
    lam_f8 out;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        out.v[2 * i] = __uint_as_float(w[i] << 16);
        out.v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
    }
    return out;
}

static __device__ __forceinline__ void lam_store8(float *p, const lam_f8 &x)
{
    ((float4 *)p)[0] = make_float4(x.v[0], x.v[1], x.v[2], x.v[3]);
    ((float4 *)p)[1] = make_float4(x.v[4], x.v[5], x.v[6], x.v[7]);
}

static __device__ __forceinline__ void lam_store8(lam_bf16 *p, const lam_f8 &x)
{
    uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x.v[2 * i], x.v[2 * i + 1]);
        w[i] = *(const uint32_t *)&pair;
    }
    *(uint4 *)p = make_uint4(w[0], w[1], w[2], w[3]);
}

/* Eight neighbours as they lie in memory: fetched early, unpacked late.  Unpacking waits for the data,
 * so whoever wants several fetches in flight keeps them raw.  What is not `in` reads as zero. */
template <typename T>
struct lam_raw8 {
    uint4 v[sizeof(T) / 2];
};

template <typename T>
static __device__ __forceinline__ lam_raw8<T> lam_fetch8(const T *p, bool in)
{
    lam_raw8<T> x;
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 2; i++)
        x.v[i] = in ? ((const uint4 *)p)[i] : make_uint4(0, 0, 0, 0);
    return x;
}

template <typename T>
static __device__ __forceinline__ lam_f8 lam_unpack8(const lam_raw8<T> &x)
{
    return lam_load8((const T *)&x);
}

/* The same for the last n <= 8 of a row: what lies beyond reads as zero and is not written.
 * `aligned` says whether the rows begin on 16-byte borders. */
template <typename T>
static __device__ __forceinline__ lam_f8 lam_load8_n(const T *p, int n, bool aligned)
{
    if (n >= 8 && aligned)
        return lam_load8(p);
    lam_f8 out;
#pragma unroll
    for (int i = 0; i < 8; i++)
        out.v[i] = i < n ? lam_float(p[i]) : 0.0f;
    return out;
}

template <typename T>
static __device__ __forceinline__ void lam_store8_n(T *p, const lam_f8 &x, int n, bool aligned)
{
    if (n >= 8 && aligned) {
        lam_store8(p, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < n)
            p[i] = lam_act<T>(x.v[i]);
}

/* ---- sums over a warp and a block ------------------------------------------------------------ */

/* The sum over LANES neighbouring lanes, in each of them; the lanes of `mask` take part, whole groups of LANES. */
template <int LANES>
static __device__ __forceinline__ float lam_lanes_sum(float x, unsigned mask = 0xffffffffu)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(mask, x, step);
    return x;
}

/* Every lane receives the result; all 32 lanes must take part. */
static __device__ __forceinline__ float lam_warp_sum(float x)
{
#pragma unroll
    for (int step = LAM_WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ __forceinline__ double lam_warp_sum(double x)
{
#pragma unroll
    for (int step = LAM_WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ __forceinline__ float lam_warp_max(float x)
{
#pragma unroll
    for (int step = LAM_WARP / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* Sum over a one-dimensional block of whole warps; every thread receives it.  `smem` is shared
 * memory for 32 elements; it may be used again after the next barrier. */
template <typename T>
static __device__ __forceinline__ T lam_block_sum(T x, T *smem)
{
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    const int warps = (int)blockDim.x / LAM_WARP;
    x = lam_warp_sum(x);
    if (lane == 0)
        smem[warp] = x;
    __syncthreads();
    return lam_warp_sum(lane < warps ? smem[lane] : (T)0);
}

#endif
