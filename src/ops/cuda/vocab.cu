/* cuda/vocab.cu -- embedding rows, softmax cross-entropy, row lists.
 *
 * ref/vocab.c says what is computed; the embedding's gradient, which has to bring equal ids together
 * first, is in embed_bwd.cu.  A row of logits is read twice and written once.  The second read comes from a cache
 * where rows are short; with 267,735 columns the rows that are worked on at a time exceed the L2 cache. */
#include "ops/cuda/ptx.cuh"

#include <math_constants.h>

enum { WIDE_ROW = 1024, WARPS = 8, WIDE_WARPS = 16 }; /* columns from which a block shares a row */

template <typename T>
static __global__ void embed_fwd(lam_embed a)
{
    const int col = (int)(blockIdx.x * blockDim.x + threadIdx.x) * 8;
    lam_chain();
    if (col >= a.ld)
        return;
    for (int row = (int)(blockIdx.y * blockDim.y + threadIdx.y); row < a.rows;
         row += (int)(gridDim.y * blockDim.y)) {
        const int id = ((const int32_t *)a.ids)[row] - a.first;
        lam_f8 x = {};
        if (id >= 0 && id < a.count && col < a.width) {
            x = lam_load8((const T *)a.table + (size_t)id * (size_t)a.ld + (size_t)col);
#pragma unroll
            for (int i = 0; i < 8; i++)
                x.v[i] *= (float)a.scale;
        }
        lam_store8((T *)a.out + (size_t)row * (size_t)a.ld + (size_t)col, x);
    }
}

extern "C" void lam_cuda_embed_fwd(lam_dev *dev, const lam_embed *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    assert(a->ld % 8 == 0);
    if (a->rows == 0)
        return;
    lam_cuda_grid g = lam_cuda_grid_of(cuda, (size_t)a->ld / 8, a->rows, 1);
    g.chained = true;
    lam_cuda_launch(cuda, "embed_fwd", cuda->bf16 ? embed_fwd<lam_bf16> : embed_fwd<float>, g, *a);
}

/* ---- cross-entropy --------------------------------------------------------------------------- */

/* The card's own exponential is off by up to |x| 2^-22: nothing beside bf16 logits, too much beside
 * float ones. */
template <typename T>
static __device__ __forceinline__ float exp_of(float x);

template <>
__device__ __forceinline__ float exp_of<float>(float x)
{
    return expf(x);
}

template <>
__device__ __forceinline__ float exp_of<lam_bf16>(float x)
{
    return __expf(x);
}

/* The running state of a softmax denominator: sum of exp(x - top). */
struct softmax_sum {
    float top, sum;
};

template <typename T>
static __device__ __forceinline__ void softmax_add(softmax_sum &t, const lam_f8 &x, int n)
{
    float top = t.top;
#pragma unroll
    for (int i = 0; i < 8; i++)
        top = i < n ? fmaxf(top, x.v[i]) : top;
    if (top == -CUDART_INF_F)
        return;
    t.sum *= exp_of<T>(t.top - top);
#pragma unroll
    for (int i = 0; i < 8; i++)
        t.sum += i < n ? exp_of<T>(x.v[i] - top) : 0.0f;
    t.top = top;
}

/* That of a whole row; every thread receives it. */
template <int W>
static __device__ __forceinline__ softmax_sum softmax_join(softmax_sum t, float *smem)
{
    float top = lam_warp_max(t.top);
    if (W > 1) {
        const int lane = (int)threadIdx.x % LAM_WARP;
        if (lane == 0)
            smem[threadIdx.x / LAM_WARP] = top;
        __syncthreads();
        top = lam_warp_max(lane < W ? smem[lane] : -CUDART_INF_F);
    }
    const float sum = t.top == -CUDART_INF_F ? 0.0f : t.sum * expf(t.top - top);
    return {top, W > 1 ? lam_block_sum(sum, smem + LAM_WARP) : lam_warp_sum(sum)};
}

/* nll = lse - logit[target], whose gradient with respect to the logits is softmax - onehot.  A row
 * belongs to W warps: one of the eight of a block, or all of it. */
template <typename T, int W>
static __global__ void xent(lam_xent a, bool aligned)
{
    __shared__ float smem[2 * LAM_WARP];
    const int lane = (int)threadIdx.x % (W * LAM_WARP);
    const int row = W > 1 ? (int)blockIdx.x : (int)blockIdx.x * WARPS + (int)threadIdx.x / LAM_WARP;
    if (row >= a.rows)
        return; /* whole teams leave together */
    T *logits = (T *)a.logits + (size_t)row * a.ld;
    const int target = ((const int32_t *)a.target)[row];
    const float wanted = lam_float(logits[max(target, 0)]);
    softmax_sum mine = {-CUDART_INF_F, 0.0f};
#pragma unroll 4
    for (int col = lane * 8; col < a.cols; col += W * LAM_WARP * 8) {
        const int n = min(a.cols - col, 8);
        softmax_add<T>(mine, lam_load8_n(logits + col, n, aligned), n);
    }
    const softmax_sum all = softmax_join<W>(mine, smem);
    if (lane == 0) {
        float *nll = (float *)a.nll + (a.index ? ((const int32_t *)a.index)[row] : row);
        const float loss = target < 0 ? 0.0f : logf(all.sum) + (all.top - wanted);
        *nll = a.add ? *nll + loss : loss;
    }
    if (a.grad_scale == 0.0)
        return;
    __syncwarp(); /* every lane has read `wanted` */
    const float scale = target < 0 ? 0.0f : (float)a.grad_scale, factor = scale / all.sum;
    for (int col = lane * 8; col < a.cols; col += W * LAM_WARP * 8) {
        const int n = min(a.cols - col, 8);
        lam_f8 x = lam_load8_n(logits + col, n, aligned);
#pragma unroll
        for (int i = 0; i < 8; i++)
            x.v[i] = factor * exp_of<T>(x.v[i] - all.top) - (col + i == target ? scale : 0.0f);
        lam_store8_n(logits + col, x, n, aligned);
    }
}

template <typename T>
static void launch_xent(lam_cuda_dev *dev, const lam_xent *a)
{
    const bool aligned = (uintptr_t)a->logits % 16 == 0 && a->ld % 8 == 0;
    if (a->rows == 0)
        return;
    if (a->cols < WIDE_ROW)
        lam_cuda_launch(dev, "xent", xent<T, 1>, {lam_cuda_ceil(a->rows, WARPS), WARPS * LAM_WARP},
                        *a, aligned);
    else
        lam_cuda_launch(dev, "xent", xent<T, WIDE_WARPS>, {a->rows, WIDE_WARPS * LAM_WARP}, *a,
                        aligned);
}

extern "C" void lam_cuda_xent(lam_dev *dev, const lam_xent *a)
{
    if (lam_cuda(dev)->bf16)
        launch_xent<lam_bf16>(lam_cuda(dev), a);
    else
        launch_xent<float>(lam_cuda(dev), a);
}

/* ---- row lists ------------------------------------------------------------------------------- */

template <typename T, bool ADD>
static __global__ void pick(lam_pick a, bool aligned)
{
    const int col = (int)(blockIdx.x * blockDim.x + threadIdx.x) * 8, n = min(a.width - col, 8);
    if (n <= 0)
        return;
    for (int row = (int)(blockIdx.y * blockDim.y + threadIdx.y); row < a.rows;
         row += (int)(gridDim.y * blockDim.y)) {
        const size_t other = (size_t)((const int32_t *)a.index)[row];
        const T *in = (const T *)a.in + (ADD ? (size_t)row : other) * a.ld_in + col;
        T *out = (T *)a.out + (ADD ? other : (size_t)row) * a.ld_out + col;
        lam_f8 x = lam_load8_n(in, n, aligned);
        if (ADD) {
            const lam_f8 y = lam_load8_n((const T *)out, n, aligned);
#pragma unroll
            for (int i = 0; i < 8; i++)
                x.v[i] += y.v[i];
        }
        lam_store8_n(out, x, n, aligned);
    }
}

template <bool ADD>
static void launch_pick(lam_cuda_dev *dev, const lam_pick *a, const char *op)
{
    const bool aligned =
        ((uintptr_t)a->in | (uintptr_t)a->out) % 16 == 0 && (a->ld_in | a->ld_out) % 8 == 0;
    if (a->rows == 0 || a->width == 0)
        return;
    const lam_cuda_grid g = lam_cuda_grid_of(dev, (size_t)lam_cuda_ceil(a->width, 8), a->rows, 1);
    lam_cuda_launch(dev, op, dev->bf16 ? pick<lam_bf16, ADD> : pick<float, ADD>, g, *a, aligned);
}

extern "C" void lam_cuda_gather(lam_dev *dev, const lam_pick *a)
{
    launch_pick<false>(lam_cuda(dev), a, "gather");
}

extern "C" void lam_cuda_scatter(lam_dev *dev, const lam_pick *a)
{
    launch_pick<true>(lam_cuda(dev), a, "scatter");
}
