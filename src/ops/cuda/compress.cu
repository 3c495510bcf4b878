/* cuda/compress.cu -- pooling and the reconstruction loss of a compressed memory on the GPU.
 *
 * ref/compress.c says what is computed.  Both are bandwidth: pooling gives a thread eight columns of one
 * output row, the distance gives a warp one row, whose sum stays inside the warp. */
#include "ops/cuda/cuda_int.cuh"

#include <math_constants.h>

enum { WARPS = 8 };

template <typename T>
static __global__ void pool(lam_pool a, bool aligned)
{
    const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x) * 8, n = a.ld - c;
    if (n <= 0)
        return;
    for (int r = (int)(blockIdx.y * blockDim.y + threadIdx.y); r < a.rows;
         r += (int)(gridDim.y * blockDim.y)) {
        const T *in = (const T *)a.in + (size_t)r * a.group * a.ld + c;
        lam_f8 out;
#pragma unroll
        for (int i = 0; i < 8; i++)
            out.v[i] = a.kind == LAM_MEAN ? 0.0f : -CUDART_INF_F;
        for (int g = 0; g < a.group; g++) {
            const lam_f8 x = lam_load8_n(in + (size_t)g * a.ld, n, aligned);
#pragma unroll
            for (int i = 0; i < 8; i++)
                out.v[i] = a.kind == LAM_MEAN ? out.v[i] + x.v[i] : fmaxf(out.v[i], x.v[i]);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            out.v[i] = a.kind == LAM_MEAN ? out.v[i] / (float)a.group : out.v[i];
            out.v[i] = c + i < a.width ? out.v[i] : 0.0f;
        }
        lam_store8_n((T *)a.out + (size_t)r * a.ld + c, out, n, aligned);
    }
}

extern "C" void lam_cuda_pool(lam_dev *dev, const lam_pool *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    const bool aligned = a->ld % 8 == 0;
    if (a->rows == 0 || a->ld == 0)
        return;
    const lam_cuda_grid g = lam_cuda_grid_of(cuda, (size_t)lam_cuda_ceil(a->ld, 8), a->rows, 1);
    lam_cuda_launch(cuda, "pool", cuda->bf16 ? pool<lam_bf16> : pool<float>, g, *a, aligned);
}

template <typename T>
static __global__ void distance(lam_distance a)
{
    const int row = (int)(blockIdx.x * WARPS + threadIdx.y);
    if (row >= a.rows)
        return; /* whole warps leave together */
    const T *x = (const T *)a.a + (size_t)row * a.ld, *y = (const T *)a.b + (size_t)row * a.ld;
    T *d = (T *)a.d + (size_t)row * a.ld;
    const float slope = (float)(2.0 * a.weight * a.scale);
    float sum = 0.0f;
    for (int c = (int)threadIdx.x; c < a.ld; c += LAM_WARP) {
        const float apart = c < a.width ? lam_float(x[c]) - lam_float(y[c]) : 0.0f;
        sum += apart * apart;
        d[c] = lam_act<T>(slope * apart);
    }
    sum = lam_warp_sum(sum);
    if (threadIdx.x == 0)
        ((float *)a.sum)[row] = (float)a.weight * sum;
}

extern "C" void lam_cuda_distance(lam_dev *dev, const lam_distance *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    if (a->rows == 0)
        return;
    lam_cuda_launch(cuda, "distance", cuda->bf16 ? distance<lam_bf16> : distance<float>,
                    {lam_cuda_ceil(a->rows, WARPS), dim3(LAM_WARP, WARPS)}, *a);
}
