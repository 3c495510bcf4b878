/* cuda/gemm_plain.cu -- what cuBLASLt leaves to us: a pass over C that finishes a product with dropout,
 * and a plain loop.
 *
 * The loop is for what the library declines (addresses that are not even 4-byte aligned, k = 0):
 * correct, slow, and not met by any model of ours but in three columns of a softmax. */
#include "ops/cuda/gemm_int.cuh"

/* ---- after the product: drop(relu(c + bias)) ------------------------------------------------- */

struct finish_args {
    void *c;
    const float *bias;
    size_t ldc, step_c;
    int m, n, relu;
    bool aligned;
    lam_cuda_mask mask;
};

/* A thread owns eight columns, one Philox block, of every so many rows of product blockIdx.z.  ALIGNED:
 * all eight exist and lie on a 16-byte border; the next row is fetched while this one is worked on. */
template <typename C, bool ALIGNED>
static __device__ __forceinline__ void finish_rows(const finish_args &a, int group, int n)
{
    const int groups = lam_cuda_ceil(a.n, 8), stride = (int)(gridDim.y * blockDim.y);
    const lam_f8 bias = lam_load8_n(a.bias + group * 8, a.bias ? n : 0, false);
    C *c = (C *)a.c + blockIdx.z * a.step_c + group * 8;
    int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    lam_raw8<C> ahead = lam_fetch8(c + (size_t)row * a.ldc, ALIGNED && row < a.m);
    for (; row < a.m; row += stride) {
        C *at = c + (size_t)row * a.ldc;
        lam_f8 x = ALIGNED ? lam_unpack8(ahead) : lam_load8_n(at, n, false);
        ahead = lam_fetch8(c + (size_t)(row + stride) * a.ldc, ALIGNED && row + stride < a.m);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            x.v[j] += bias.v[j];
            if (a.relu)
                x.v[j] = x.v[j] < 0.0f ? 0.0f : x.v[j]; /* a NaN stays one */
        }
        const uint64_t above = blockIdx.z * (uint64_t)a.m + (uint64_t)row;
        lam_mask8(x, a.mask, above * (uint64_t)groups + (uint64_t)group);
        lam_store8_n(at, x, ALIGNED ? 8 : n, ALIGNED);
    }
}

template <typename C>
static __global__ void finish(finish_args a)
{
    const int group = (int)(blockIdx.x * blockDim.x + threadIdx.x), n = min(a.n - group * 8, 8);
    if (n == 8 && a.aligned)
        finish_rows<C, true>(a, group, n);
    else if (n > 0)
        finish_rows<C, false>(a, group, n);
}

void lam_cuda_gemm_finish(lam_cuda_dev *dev, const lam_gemm *a)
{
    finish_args args = {a->c,  (const float *)a->bias,    a->ldc, a->step_c, a->m, a->n, a->relu,
                        false, lam_cuda_mask_of(&a->drop)};
    args.aligned = (uintptr_t)a->c % 16 == 0 && a->ldc % 8 == 0 && a->step_c % 8 == 0;
    const lam_cuda_grid g = lam_cuda_grid_of(dev, lam_cuda_ceil(a->n, 8), a->m, a->batch);
    const bool narrow = dev->bf16 && a->c_class == LAM_ACT;
    lam_cuda_launch(dev, "gemm", narrow ? finish<lam_bf16> : finish<float>, g, args);
}

/* ---- the plain loop -------------------------------------------------------------------------- */

template <typename T, typename C>
static __global__ void multiply(lam_gemm a)
{
    const int col = (int)(blockIdx.x * 32 + threadIdx.x), row = (int)(blockIdx.y * 8 + threadIdx.y);
    if (row >= a.m || col >= a.n)
        return;
    for (size_t i = blockIdx.z; i < (size_t)a.batch; i += gridDim.z) {
        const T *x = (const T *)a.a + i * a.step_a, *y = (const T *)a.b + i * a.step_b;
        C *c = (C *)a.c + i * a.step_c + (size_t)row * a.ldc + col;
        const size_t x_row = a.ta == LAM_KEEP ? a.lda : 1, x_k = a.ta == LAM_KEEP ? 1 : a.lda;
        const size_t y_col = a.tb == LAM_KEEP ? 1 : a.ldb, y_k = a.tb == LAM_KEEP ? a.ldb : 1;
        float sum = a.beta == 0.0 ? 0.0f : lam_float(*c);
        for (size_t t = 0; t < (size_t)a.k; t++)
            sum += lam_float(x[(size_t)row * x_row + t * x_k]) *
                   lam_float(y[(size_t)col * y_col + t * y_k]);
        *c = lam_act<C>(sum);
    }
}

void lam_cuda_gemm_multiply(lam_cuda_dev *dev, const lam_gemm *a)
{
    const dim3 grid((unsigned)lam_cuda_ceil(a->n, 32), (unsigned)lam_cuda_ceil(a->m, 8),
                    (unsigned)(a->batch < 1024 ? a->batch : 1024));
    const auto kernel = !dev->bf16              ? multiply<float, float>
                        : a->c_class == LAM_ACT ? multiply<lam_bf16, lam_bf16>
                                                : multiply<lam_bf16, float>;
    lam_cuda_launch(dev, "gemm", kernel, {grid, dim3(32, 8)}, *a);
}
