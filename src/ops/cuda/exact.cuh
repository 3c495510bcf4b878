/* cuda/exact.cuh -- what the kernels of exact arithmetic share (specified in ops/exact.h and ref/exact_*.c).
 *
 * Sums are integers, so that lanes and blocks may add them in any order; floats are computed by the operations that
 * core/exact.h names, because nvcc would fuse a product and a sum.
 *
 * Products run on tensor cores, which multiply 8-bit numbers.  A 15-bit number q is two of them,
 *     q = 128 high + low,   -128 <= high < 128,   0 <= low < 128,
 * so that a row of them is two planes of bytes, and sum q w = 128 sum high w + sum low w.  Lane 4 g + t takes the
 * terms 16 t .. 16 t + 15 of every 64 in one load, from both operands alike: which term stands where in the
 * instruction does not matter. */
#ifndef LAM_OPS_CUDA_EXACT_CUH
#define LAM_OPS_CUDA_EXACT_CUH

#include "ops/cuda/cuda_int.cuh"
#include "ops/cuda/ptx.cuh"

extern "C" {
#include "ops/exact.h"
}

enum {
    LAM_EXACT_THREADS = 128, /* of every block, but where a kernel says otherwise */
    LAM_EXACT_WARPS = LAM_EXACT_THREADS / LAM_WARP,
    LAM_EXACT_CHUNK = 64, /* terms of a product that a warp takes at a time */
    LAM_EXACT_PLANE =
        1 << 16 /* terms of a plane whose sum 32 bits surely hold: each is at most 2^14 */
};

static inline __host__ __device__ int lam_exact_whole(int n)
{
    return (n + LAM_EXACT_CHUNK - 1) / LAM_EXACT_CHUNK * LAM_EXACT_CHUNK;
}

/* ---- the largest, and sums ------------------------------------------------------------------------- */

/* Of a warp, to all of its lanes. */
static inline __device__ int32_t lam_exact_warp_most(int32_t x)
{
    for (int step = LAM_WARP / 2; step > 0; step /= 2) {
        const int32_t other = __shfl_xor_sync(0xffffffffu, x, step);
        x = other > x ? other : x;
    }
    return x;
}

static inline __device__ int64_t lam_exact_warp_total(int64_t x)
{
    for (int step = LAM_WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* Of a block of LAM_EXACT_THREADS, to all of its threads; smem has a place for each warp. */
static inline __device__ int32_t lam_exact_most(int32_t x, int32_t *smem)
{
    x = lam_exact_warp_most(x);
    __syncthreads();
    if (threadIdx.x % LAM_WARP == 0)
        smem[threadIdx.x / LAM_WARP] = x;
    __syncthreads();
    for (int w = 0; w < LAM_EXACT_WARPS; w++)
        x = smem[w] > x ? smem[w] : x;
    return x;
}

static inline __device__ int64_t lam_exact_total(int64_t x, int64_t *smem)
{
    x = lam_exact_warp_total(x);
    __syncthreads();
    if (threadIdx.x % LAM_WARP == 0)
        smem[threadIdx.x / LAM_WARP] = x;
    __syncthreads();
    x = 0;
    for (int w = 0; w < LAM_EXACT_WARPS; w++)
        x += smem[w];
    return x;
}

/* ---- quantised rows ---------------------------------------------------------------------------------- */

static inline __device__ int32_t lam_exact_level(lam_exact_grid grid, float x)
{
    return grid.up > 0.0f ? lam_exact_round(LAM_MUL(x, grid.up)) : 0;
}

/* Four numbers of 15 bits: their high bytes in x, their low ones in y. */
static inline __device__ uint2 lam_exact_split(lam_exact_grid grid, const float x[4])
{
    uint2 planes = make_uint2(0, 0);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int32_t level = lam_exact_level(grid, x[i]);
        planes.x |= (uint32_t)(level >> 7 & 0xff) << (8 * i);
        planes.y |= (uint32_t)(level & 127) << (8 * i);
    }
    return planes;
}

/* A warp quantises n floats to 8 bits. */
static inline __device__ void lam_exact_pack(int8_t *q, float *scale, const float *x, int n)
{
    const int lane = (int)threadIdx.x % LAM_WARP;
    int32_t size = 0;
    for (int i = lane; i < n; i += LAM_WARP)
        size = lam_exact_size(x[i]) > size ? lam_exact_size(x[i]) : size;
    const lam_exact_grid grid = lam_exact_grid_of(lam_exact_warp_most(size), (float)LAM_EXACT_HEAD);
    for (int i = lane; i < n; i += LAM_WARP)
        q[i] = (int8_t)lam_exact_level(grid, x[i]);
    if (lane == 0)
        *scale = grid.scale;
}

/* ---- products ------------------------------------------------------------------------------------------ */

/* Rows of 15-bit numbers: `terms` bytes of the high plane, then as many of the low one; a multiple of a chunk, and
 * zeros behind the last number. */
struct lam_exact_planes {
    const int8_t *p;
    int rows, terms;
};

/* Of 64 terms, what a lane holds of rows g and g + 8. */
struct lam_exact_left {
    uint4 high[2], low[2];
};

/* A warp's products of 16 rows with 8 of 8-bit numbers: rows g, g, g + 8, g + 8, columns 2 t, 2 t + 1, 2 t, 2 t + 1. */
struct lam_exact_sums {
    int32_t high[4], low[4];
};

/* The 16 rows from `first` on; behind the last one there is the last one again, whose results nobody asks for. */
static inline __device__ lam_exact_left lam_exact_left_at(lam_exact_planes x, int first, int at)
{
    const int lane = (int)threadIdx.x % LAM_WARP, last = x.rows - 1;
    lam_exact_left a;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = first + lane / 4 + 8 * i;
        const int8_t *p =
            x.p + (size_t)(row < last ? row : last) * 2 * x.terms + at + lane % 4 * 16;
        a.high[i] = *(const uint4 *)p;
        a.low[i] = *(const uint4 *)(p + x.terms);
    }
    return a;
}

/* Terms t .. t + 15 of a row of k numbers of 8 bits that lie `step` apart, zeros behind its end.  WHOLE: rows begin on
 * 16-byte borders, step is 1 and k a multiple of 16. */
template <bool WHOLE>
static inline __device__ uint4 lam_exact_right_at(const int8_t *row, size_t step, int t, int k)
{
    if (WHOLE)
        return t < k ? *(const uint4 *)(row + t) : make_uint4(0, 0, 0, 0);
    uint32_t w[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 16; i++)
        if (t + i < k)
            w[i / 4] |= (uint32_t)(uint8_t)row[(size_t)(t + i) * step] << (8 * (i % 4));
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* 64 terms more, with one of the planes: sums += plane b. */
static inline __device__ void lam_exact_multiply_plane(int32_t sums[4], const uint4 plane[2],
                                                       uint4 b)
{
    const uint32_t first[4] = {plane[0].x, plane[1].x, plane[0].y, plane[1].y};
    const uint32_t second[4] = {plane[0].z, plane[1].z, plane[0].w, plane[1].w};
    lam_mma8(sums, first, b.x, b.y);
    lam_mma8(sums, second, b.z, b.w);
}

static inline __device__ void lam_exact_multiply(lam_exact_sums *sums, const lam_exact_left *a,
                                                 uint4 b)
{
    lam_exact_multiply_plane(sums->high, a->high, b);
    lam_exact_multiply_plane(sums->low, a->low, b);
}

/* The same with half the registers, for sums of no more than LAM_EXACT_TERMS. */
static inline __device__ void lam_exact_multiply_few(int32_t sums[4], const lam_exact_left *a,
                                                     uint4 b)
{
    int32_t high[4] = {0, 0, 0, 0};
    lam_exact_multiply_plane(high, a->high, b);
#pragma unroll
    for (int i = 0; i < 4; i++)
        sums[i] += 128 * high[i];
    lam_exact_multiply_plane(sums, a->low, b);
}

static inline __device__ int64_t lam_exact_sum(const lam_exact_sums *sums, int i)
{
    return 128 * (int64_t)sums->high[i] + sums->low[i];
}

size_t lam_cuda_exact_scratch(const lam_work *largest);
size_t lam_cuda_exact_gemm_scratch(void);

extern "C" {
#define LAM_CUDA_EXACT_OP(name, argument)                                                          \
    void lam_cuda_exact_##name(lam_dev *dev, const argument *a);
LAM_EXACT_OPS(LAM_CUDA_EXACT_OP)
#undef LAM_CUDA_EXACT_OP
}

#endif
