/* cuda/attn_simt.cu -- relative-position attention forward in plain loops, any shape and option.
 *
 * The specification is ref/attn.c.  This serves the float32 mode that verifies the rest, whatever the
 * tiles of attn_fwd.cu do not cover (dropout on P, rbias, odd widths), and decoding, where there is
 * one query and the keys are what can be divided.  One block a query; scores live in shared memory,
 * SIMT_CHUNK at a time, under an online softmax. */
#include "ops/cuda/attn_simt.cuh"

static __device__ __forceinline__ int first_key(const attn_call &c, int b, int i)
{
    return max(attn_oldest<true>(c, b), c.a.shift + i + c.e_lo);
}

static __device__ __forceinline__ int last_key(const attn_call &c, int i)
{
    return min(c.a.keys - 1, c.a.shift + i + c.e_hi);
}

template <typename T>
static __global__ void simt_fwd(const attn_call c)
{
    const lam_attn &a = c.a;
    const int i = (int)blockIdx.x, h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int thread = (int)threadIdx.x, threads = (int)blockDim.x;
    const int lane = thread % LAM_WARP, warp = thread / LAM_WARP, warps = threads / LAM_WARP;
    const size_t col = (size_t)h * a.K;
    const simt_shared smem = simt_open(c, h);
    float *part = smem.part + warp * smem.wide;
    float top = -CUDART_INF_F, total = 0.0f;

    const int last = last_key(c, i);
    for (int from = first_key(c, b, i); from <= last; from += SIMT_CHUNK) {
        const int n = min(SIMT_CHUNK, last - from + 1);
        float above = -CUDART_INF_F, sum = 0.0f;
        for (int x = thread; x < n; x += threads) {
            smem.weight[x] = simt_score(c, smem, simt_pair_at<T>(c, b, h, i, from + x));
            above = fmaxf(above, smem.weight[x]);
        }
        above = fmaxf(top, simt_max(above, smem.sums));
        for (int x = thread; x < n; x += threads) {
            const float e = expf(smem.weight[x] - above);
            sum += e;
            smem.weight[x] = e * simt_keep(c, b, h, i, from + x);
        }
        const float shrink = expf(top - above);
        total = total * shrink + lam_block_sum(sum, smem.sums + LAM_WARP);
        top = above;
        for (int x = lane; x < a.K; x += LAM_WARP) {
            float o = part[x] * shrink;
            for (int y = warp; y < n; y += warps)
                o += smem.weight[y] *
                     lam_float(*attn_row<const T>(a.value, a.ldk, b, from + y, col + x));
            part[x] = o;
        }
        __syncthreads();
    }
    __syncthreads();
    for (int x = thread; x < a.K; x += threads) {
        float o = 0.0f;
        for (int w = 0; w < warps; w++)
            o += smem.part[w * smem.wide + x];
        *attn_row<T>(a.o, a.ldo, b, i, col + x) = lam_act<T>(total > 0.0f ? o / total : 0.0f);
    }
    if (thread == 0)
        *attn_row<float>(a.lse, (size_t)a.H, b, i, (size_t)h) =
            total > 0.0f ? top + logf(total) : -CUDART_INF_F;
}

void lam_cuda_attn_simt_fwd(lam_cuda_dev *dev, const attn_call *c)
{
    const lam_attn *a = &c->a;
    const dim3 grid((unsigned)a->queries, (unsigned)a->H, (unsigned)a->B);
    /* Few rows: more threads each, for the sake of latency, where shared memory suffices. */
    const size_t rows = (size_t)a->queries * (size_t)a->H * (size_t)a->B;
    const int threads = rows <= 4 * (size_t)dev->sms && a->K <= 512 ? 512 : 128;
    const size_t shared = simt_floats(a->K, threads) * sizeof(float);
    lam_cuda_launch(dev, "attn_fwd", dev->bf16 ? simt_fwd<lam_bf16> : simt_fwd<float>,
                    {grid, threads, shared}, *c);
}
