/* cuda/attn_stats.cu -- where attention goes, on the GPU (specified in ref/attn_stats.c).
 *
 * One block a row of P.  A thread owns every BLOCK-th interval of distances and walks its keys, so a
 * peak is one thread's and needs no exchange; entropy and shares are added over the block in a fixed
 * order.  Scores are those of the plain attention, whichever kernel made the log-sum-exp. */
#include "ops/cuda/attn_simt.cuh"

enum { BLOCK = 128 };

struct attn_stats_call {
    attn_call c;
    lam_attn_stats x;
};

template <typename T>
static __global__ void attn_stats_rows(const attn_stats_call call)
{
    const lam_attn_stats &x = call.x;
    const lam_attn &a = call.c.a;
    const int i = (int)blockIdx.x, h = (int)blockIdx.y, b = (int)blockIdx.z;
    const size_t row = ((size_t)b * a.queries + i) * a.H + h;
    const simt_shared smem = simt_open(call.c, h);
    const int at = a.shift + i, left = min(at + 1, a.reach > 0 ? a.reach : at + 1);
    const float lse = *attn_row<const float>(a.lse, (size_t)a.H, b, i, (size_t)h);
    float *peak = (float *)x.peak + row * x.bins;
    float sum[LAM_ATTN_STATS] = {};

    for (int c = (int)threadIdx.x; c < x.bins || c * x.interval < left; c += BLOCK) {
        float most = 0.0f;
        const int end = min(left, (c + 1) * x.interval);
        for (int d = c * x.interval; d < end; d++) {
            const int j = at - d;
            const float s = simt_score(call.c, smem, simt_pair_at<T>(call.c, b, h, i, j)) - lse;
            const float p = expf(s);
            most = fmaxf(most, p);
            sum[LAM_ENTROPY] -= p > 0.0f ? p * s : 0.0f;
            for (int k = 0; k < LAM_CUTS; k++)
                sum[LAM_SHARE + k] += j < x.cut[k] ? p : 0.0f;
        }
        if (c < x.bins)
            peak[c] = (c + 1) * x.interval <= left ? most : 0.0f;
    }
    for (int k = 0; k < LAM_ATTN_STATS; k++) {
        __syncthreads(); /* `sums` is read by the round before */
        const float all = lam_block_sum(sum[k], smem.sums);
        if (threadIdx.x == 0)
            ((float *)x.stats)[row * LAM_ATTN_STATS + k] = all;
    }
}

void lam_cuda_attn_stats_run(lam_cuda_dev *dev, const attn_call *c, const lam_attn_stats *x)
{
    const lam_attn *a = &c->a;
    const dim3 grid((unsigned)a->queries, (unsigned)a->H, (unsigned)a->B);
    const size_t shared = simt_floats(a->K, BLOCK) * sizeof(float);
    const attn_stats_call call = {*c, *x};
    assert(a->mode == LAM_CAUSAL && x->interval >= 1 && x->bins >= 1);
    const auto kernel = dev->bf16 ? attn_stats_rows<lam_bf16> : attn_stats_rows<float>;
    lam_cuda_launch(dev, "attn_stats", kernel, {grid, BLOCK, shared}, call);
}
