/* cuda/memory.cu -- memory interpolation (Eq. 10-11) on the GPU.
 *
 * The maths, the stop-gradients and the meaning of eps are specified in ref/memory.c; this file
 * explains only what differs.  The op is bandwidth-bound, so a thread owns eight columns of one head
 * (16 bytes of bf16): neighbours in x are neighbours in memory, also from head to head.  alpha is
 * computed by every thread of a head, which is cheaper than a broadcast; the one reduction, dalpha
 * in bwd, goes through shared memory and is added in order. */
#include "ops/cuda/cuda_int.cuh"

#include <math_constants.h>

enum { BLOCK = 256 };

struct mix {
    float alpha, rest; /* rest is 1 - alpha, without the cancellation */
    float slope;       /* d(alpha) / d(log s<-) */
    float lse;         /* log(s-> + s<-), without eps */
};

static __device__ mix mix_of(float lse_old, float lse_new, float eps)
{
    const float top = fmaxf(lse_old, lse_new);
    if (top == -CUDART_INF_F)
        return {0.0f, 1.0f, 0.0f, -CUDART_INF_F}; /* a slot that never attended to anything */
    const float s_old = expf(lse_old - top), s_new = expf(lse_new - top);
    const float sum = s_old + s_new + eps;
    const float moved = s_new + (lse_new >= lse_old ? eps : 0.0f);
    return {s_old / sum, (s_new + eps) / sum, -s_old * moved / (sum * sum),
            top + logf(s_old + s_new)};
}

/* Which head of which slot of which stream this thread works on; threadIdx.y counts heads. */
struct slot_index {
    bool in;
    size_t b, r, h;
};

static __device__ __forceinline__ slot_index slot_index_of(const lam_interp &a)
{
    const size_t at = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
    const size_t H = (size_t)a.H, rows = (size_t)a.rows;
    return {at < (size_t)a.B * rows * H, at / H / rows, at / H % rows, at % H};
}

static __device__ __forceinline__ float *stat_at(const lam_interp &a, lam_view v,
                                                 const slot_index &p)
{
    return (float *)v.p + p.b * v.step + p.r * (size_t)a.H + p.h;
}

template <typename T>
static __device__ __forceinline__ T *context_at(const lam_interp &a, lam_view v,
                                                const slot_index &p)
{
    return (T *)v.p + p.b * v.step + (p.r * (size_t)a.H + p.h) * (size_t)a.K + threadIdx.x * 8;
}

template <typename T>
static __global__ void interp_fwd(lam_interp a)
{
    const slot_index p = slot_index_of(a);
    mix w = {};
    if (p.in) {
        w = mix_of(*stat_at(a, a.lse_old, p), *stat_at(a, a.lse_new, p), (float)a.eps);
        const lam_f8 c_old = lam_load8(context_at<const T>(a, a.c_old, p));
        lam_f8 c = lam_load8(context_at<const T>(a, a.c_new, p));
#pragma unroll
        for (int i = 0; i < 8; i++)
            c.v[i] = w.alpha * c_old.v[i] + w.rest * c.v[i];
        lam_store8(context_at<T>(a, a.c_out, p), c);
    }
    __syncthreads(); /* lse_out may be lse_new, which the other threads of the head read */
    if (p.in && threadIdx.x == 0) {
        *stat_at(a, a.alpha, p) = w.alpha;
        *stat_at(a, a.lse_out, p) = w.lse;
    }
}

/* fwd was c_out = alpha c_old + (1 - alpha) c_new, with alpha a function of log s<-; so
 *   dc_new   = (1 - alpha) dc_out
 *   dlse_new = alpha' <dc_out, c_old - c_new>. */
template <typename T>
static __global__ void interp_bwd(lam_interp a)
{
    __shared__ float smem[BLOCK];
    const slot_index p = slot_index_of(a);
    const int at = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    mix w = {};
    if (p.in) {
        w = mix_of(*stat_at(a, a.lse_old, p), *stat_at(a, a.lse_new, p), (float)a.eps);
        const lam_f8 c_old = lam_load8(context_at<const T>(a, a.c_old, p));
        const lam_f8 c_new = lam_load8(context_at<const T>(a, a.c_new, p));
        lam_f8 d = lam_load8(context_at<const T>(a, a.dc_out, p));
        float dalpha = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            dalpha += d.v[i] * (c_old.v[i] - c_new.v[i]);
            d.v[i] *= w.rest;
        }
        lam_store8(context_at<T>(a, a.dc_new, p), d);
        smem[at] = dalpha;
    }
    __syncthreads();
    if (!p.in || threadIdx.x != 0)
        return;
    float dalpha = 0.0f;
    for (int i = 0; i < (int)blockDim.x; i++)
        dalpha += smem[at + i];
    *stat_at(a, a.dlse_new, p) = w.slope * dalpha;
}

typedef void kernel(lam_interp);

static void launch(lam_dev *dev, const lam_interp *a, kernel *run, const char *op)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    static_assert(8 * BLOCK >= LAM_CUDA_HEAD, "a head is shared by the threads of one block");
    assert(a->K % 8 == 0 && a->K <= LAM_CUDA_HEAD);
    const size_t heads = (size_t)a->B * (size_t)a->rows * (size_t)a->H;
    const unsigned x = (unsigned)a->K / 8, y = BLOCK / x;
    if (heads == 0)
        return;
    lam_cuda_launch(cuda, op, run, {(unsigned)((heads + y - 1) / y), dim3(x, y)}, *a);
}

extern "C" void lam_cuda_interp_fwd(lam_dev *dev, const lam_interp *a)
{
    launch(dev, a, lam_cuda(dev)->bf16 ? interp_fwd<lam_bf16> : interp_fwd<float>, "interp_fwd");
}

extern "C" void lam_cuda_interp_bwd(lam_dev *dev, const lam_interp *a)
{
    launch(dev, a, lam_cuda(dev)->bf16 ? interp_bwd<lam_bf16> : interp_bwd<float>, "interp_bwd");
}
