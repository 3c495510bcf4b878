/* cuda/exact.cuh -- what the kernels of exact arithmetic share (specified in ops/exact.h and ref/exact_*.c).
 *
 * Sums are integers, so that blocks may add them in any order; floats are computed by the operations that core/exact.h
 * names, because nvcc would fuse a product and a sum.  Simple kernels: one block a row, or a query of a head. */
#ifndef LAM_OPS_CUDA_EXACT_CUH
#define LAM_OPS_CUDA_EXACT_CUH

#include "ops/cuda/cuda_int.cuh"

extern "C" {
#include "ops/exact.h"
}

enum { LAM_EXACT_THREADS = 128 }; /* of every block */

/* The largest x, or the sum, of a block, to all of its threads. */
template <typename T>
static inline __device__ T lam_exact_most(T x, T *smem)
{
    __syncthreads();
    smem[threadIdx.x] = x;
    for (unsigned step = LAM_EXACT_THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step && smem[threadIdx.x + step] > smem[threadIdx.x])
            smem[threadIdx.x] = smem[threadIdx.x + step];
    }
    __syncthreads();
    return smem[0];
}

static inline __device__ int64_t lam_exact_total(int64_t x, int64_t *smem)
{
    __syncthreads();
    smem[threadIdx.x] = x;
    for (unsigned step = LAM_EXACT_THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            smem[threadIdx.x] += smem[threadIdx.x + step];
    }
    __syncthreads();
    return smem[0];
}

static inline __device__ int32_t lam_exact_level(lam_exact_grid grid, float x)
{
    return grid.up > 0.0f ? lam_exact_round(LAM_MUL(x, grid.up)) : 0;
}

/* A block quantises n floats to 8 bits. */
static inline __device__ void lam_exact_pack(int8_t *q, float *scale, const float *x, int n,
                                             int32_t *smem)
{
    int32_t size = 0;
    for (int i = (int)threadIdx.x; i < n; i += LAM_EXACT_THREADS)
        size = lam_exact_size(x[i]) > size ? lam_exact_size(x[i]) : size;
    const lam_exact_grid grid =
        lam_exact_grid_of(lam_exact_most(size, smem), (float)LAM_EXACT_HEAD);
    for (int i = (int)threadIdx.x; i < n; i += LAM_EXACT_THREADS)
        q[i] = (int8_t)lam_exact_level(grid, x[i]);
    if (threadIdx.x == 0)
        *scale = grid.scale;
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
