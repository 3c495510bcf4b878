/* cuda/gemv.cu -- y = x W^T for a few rows x: decoding a few streams.
 *
 * The time is that of reading W once; what counts is that many loads are under way at once and that there is
 * one launch.  A warp owns one column of y, which is one row of W: its lanes read it in pieces of
 * sixteen bytes.  Bias and ReLU are applied on the way out. */
#include "ops/cuda/gemm_int.cuh"
#include "ops/cuda/ptx.cuh"

enum { WARPS = 8, MOST_ROWS = 4, PIECES = 4 };

template <typename T, typename C, int M>
static __global__ void __launch_bounds__(WARPS *LAM_WARP) gemv(const __grid_constant__ lam_gemm a)
{
    lam_chain();
    const int lane = (int)threadIdx.x % LAM_WARP;
    const int col = (int)blockIdx.x * WARPS + (int)threadIdx.x / LAM_WARP;
    if (col >= a.n)
        return; /* whole warps leave together */
    const T *w = (const T *)a.b + (size_t)col * a.ldb, *x = (const T *)a.a;
    float sum[M] = {};
    for (int first = 8 * lane; first < a.k; first += PIECES * 8 * LAM_WARP) {
        lam_raw8<T> raw[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            raw[p] = lam_fetch8(w + first + p * 8 * LAM_WARP, first + p * 8 * LAM_WARP < a.k);
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const int at = first + p * 8 * LAM_WARP;
            const lam_f8 f = lam_unpack8(raw[p]);
#pragma unroll
            for (int m = 0; m < M; m++) {
                const lam_f8 g = lam_unpack8(lam_fetch8(x + (size_t)m * a.lda + at, at < a.k));
#pragma unroll
                for (int i = 0; i < 8; i++)
                    sum[m] += f.v[i] * g.v[i];
            }
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++) {
        float y = lam_warp_sum(sum[m]);
        C *to = (C *)a.c + (size_t)m * a.ldc + col;
        if (lane != 0)
            continue;
        y += a.beta != 0.0 ? lam_float(*to) : 0.0f;
        y += a.bias ? ((const float *)a.bias)[col] : 0.0f;
        *to = lam_act<C>(a.relu && y < 0.0f ? 0.0f : y); /* a NaN stays one */
    }
}

template <typename T, typename C>
static void launch(lam_cuda_dev *dev, const lam_gemm *a)
{
    const auto kernel = a->m == 1   ? gemv<T, C, 1>
                        : a->m == 2 ? gemv<T, C, 2>
                        : a->m == 3 ? gemv<T, C, 3>
                                    : gemv<T, C, 4>;
    lam_cuda_launch(dev, "gemm", kernel, {lam_cuda_ceil(a->n, WARPS), WARPS * LAM_WARP, 0, true},
                    *a);
}

bool lam_cuda_gemv(lam_cuda_dev *dev, const lam_gemm *a)
{
    if (a->m > MOST_ROWS || a->batch != 1 || a->ta != LAM_KEEP || a->tb != LAM_FLIP ||
        a->drop.p != 0.0 || (a->k | a->lda | a->ldb) % 8 != 0 || a->k < 8 ||
        ((uintptr_t)a->a | (uintptr_t)a->b) % 16 != 0)
        return false;
    if (!dev->bf16)
        launch<float, float>(dev, a);
    else if (a->c_class == LAM_WIDE)
        launch<lam_bf16, float>(dev, a);
    else
        launch<lam_bf16, lam_bf16>(dev, a);
    return true;
}
