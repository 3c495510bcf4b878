/* cuda/exact_rows.cu -- everything else in exact arithmetic on the GPU (specified in ref/exact_rows.c). */
#include "ops/cuda/exact.cuh"

enum { TOGETHER = 4 }; /* columns that a thread of norm_rows loads before it stores any */

struct norm_row {
    const float *x, *add, *bias; /* the latter two may be NULL */
    int width;
};

static __device__ float norm_element(const norm_row *row, int c)
{
    if (c >= row->width)
        return 0.0f;
    if (!row->add)
        return row->x[c];
    return LAM_ADD(row->x[c], row->bias ? LAM_ADD(row->add[c], row->bias[c]) : row->add[c]);
}

/* Keeps the row's sums in `out`, unless that is NULL, and returns their largest size to all threads. */
static __device__ int32_t keep_sums(float *out, const norm_row *row, int ld, int32_t *smem)
{
    int32_t size = 0;
    for (int first = (int)threadIdx.x; first < ld; first += TOGETHER * LAM_EXACT_THREADS) {
        float s[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            s[i] = norm_element(row, first + i * LAM_EXACT_THREADS);
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int c = first + i * LAM_EXACT_THREADS;
            if (out && c < ld)
                out[c] = s[i];
            size = lam_exact_size(s[i]) > size ? lam_exact_size(s[i]) : size;
        }
    }
    return lam_exact_most(size, smem);
}

/* A block: one row. */
static __global__ void norm_rows(const __grid_constant__ lam_norm a)
{
    lam_chain();
    __shared__ int32_t most[LAM_EXACT_WARPS];
    __shared__ int64_t total[LAM_EXACT_WARPS];
    const size_t row = blockIdx.x, b = row / a.rows, r = row % a.rows, ld = (size_t)a.ld;
    const float *gain = (const float *)a.gain, *shift = (const float *)a.shift;
    const norm_row in = {(const float *)a.x.p + b * a.x.step + r * ld,
                         a.add ? (const float *)a.add + row * ld : NULL, (const float *)a.bias,
                         a.width};
    float *y = (float *)a.y.p + b * a.y.step + r * ld;
    float *sum = !gain ? y : a.add ? (float *)a.sum + row * ld : NULL;
    const int32_t size = keep_sums(sum, &in, a.ld, most);
    if (!gain)
        return; /* the whole block */
    const float *from = sum ? sum : in.x;
    const lam_exact_grid grid = lam_exact_grid_of(size, (float)LAM_EXACT_NORM);
    int64_t linear = 0, squares = 0;
    for (int c = (int)threadIdx.x; c < a.width; c += LAM_EXACT_THREADS) {
        const int64_t q = lam_exact_level(grid, from[c]);
        linear += q;
        squares += q * q;
    }
    linear = lam_exact_total(linear, total);
    squares = lam_exact_total(squares, total);
    const lam_exact_moments m = lam_exact_norm(linear, squares, a.width, grid.scale, a.eps);
    for (int first = (int)threadIdx.x; first < a.ld; first += TOGETHER * LAM_EXACT_THREADS) {
        float out[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int c = first + i * LAM_EXACT_THREADS;
            out[i] = c < a.width
                         ? LAM_ADD(LAM_MUL(LAM_MUL(LAM_ADD(from[c], -m.mean), m.rstd), gain[c]),
                                   shift[c])
                         : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            if (first + i * LAM_EXACT_THREADS < a.ld)
                y[first + i * LAM_EXACT_THREADS] = out[i];
    }
    if (threadIdx.x == 0) {
        ((float *)a.mean)[row] = m.mean;
        ((float *)a.rstd)[row] = m.rstd;
    }
}

extern "C" void lam_cuda_exact_norm_fwd(lam_dev *base, const lam_norm *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const unsigned rows = (unsigned)a->blocks * (unsigned)a->rows;
    assert(a->drop.p == 0.0);
    if (rows == 0)
        return;
    lam_cuda_launch(dev, "norm_fwd", norm_rows, {dim3(rows), dim3(LAM_EXACT_THREADS), 0, true}, *a);
}

/* A block: one memory slot; a thread takes whole heads' weights and every column in turn. */
static __global__ void interp_slots(const __grid_constant__ lam_interp a)
{
    const size_t b = blockIdx.y, r = blockIdx.x, H = (size_t)a.H, K = (size_t)a.K, HK = H * K;
    const float *lse_old = (const float *)a.lse_old.p + b * a.lse_old.step + r * H;
    const float *lse_new = (const float *)a.lse_new.p + b * a.lse_new.step + r * H;
    float *lse_out = (float *)a.lse_out.p + b * a.lse_out.step + r * H;
    float *alpha = (float *)a.alpha.p + b * a.alpha.step + r * H;
    const float *c_old = (const float *)a.c_old.p + b * a.c_old.step + r * HK;
    const float *c_new = (const float *)a.c_new.p + b * a.c_new.step + r * HK;
    float *c_out = (float *)a.c_out.p + b * a.c_out.step + r * HK;
    for (size_t c = threadIdx.x; c < HK; c += LAM_EXACT_THREADS) {
        const lam_exact_blend mix = lam_exact_blend_of(lse_old[c / K], lse_new[c / K], a.eps);
        c_out[c] = LAM_ADD(LAM_MUL(mix.alpha, c_old[c]), LAM_MUL(mix.rest, c_new[c]));
    }
    __syncthreads(); /* lse_out may be lse_new */
    for (size_t h = threadIdx.x; h < H; h += LAM_EXACT_THREADS) {
        const lam_exact_blend mix = lam_exact_blend_of(lse_old[h], lse_new[h], a.eps);
        alpha[h] = mix.alpha;
        lse_out[h] = mix.lse;
    }
}

extern "C" void lam_cuda_exact_interp_fwd(lam_dev *base, const lam_interp *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const dim3 slots((unsigned)a->rows, (unsigned)a->B);
    lam_cuda_launch(dev, "interp_fwd", interp_slots, {slots, dim3(LAM_EXACT_THREADS)}, *a);
}

static __global__ void embed_rows(const __grid_constant__ lam_embed a)
{
    const long row = (long)((const int32_t *)a.ids)[blockIdx.x] - a.first;
    const int known = row >= 0 && row < a.count;
    float *out = (float *)a.out + (size_t)blockIdx.x * a.ld;
    const int8_t *in = (const int8_t *)a.table + (size_t)(known ? row : 0) * a.ld;
    const double own = known ? (double)((const float *)a.table_scale)[row] : 0.0;
    const float scale = (float)LAM_DMUL(a.scale, own);
    for (int c = (int)threadIdx.x; c < a.ld; c += LAM_EXACT_THREADS)
        out[c] = known && c < a.width ? LAM_MUL((float)in[c], scale) : 0.0f;
}

extern "C" void lam_cuda_exact_embed_fwd(lam_dev *base, const lam_embed *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    assert(a->table_class == LAM_BYTE);
    lam_cuda_launch(dev, "embed_fwd", embed_rows,
                    {dim3((unsigned)a->rows), dim3(LAM_EXACT_THREADS)}, *a);
}

/* A block: the loss of one row of logits. */
static __global__ void loss_rows(const __grid_constant__ lam_xent a)
{
    __shared__ int32_t most[LAM_EXACT_WARPS];
    __shared__ int64_t total[LAM_EXACT_WARPS];
    const float *logits = (const float *)a.logits + (size_t)blockIdx.x * a.ld;
    const int32_t target = ((const int32_t *)a.target)[blockIdx.x];
    float *nll =
        (float *)a.nll + (a.index ? ((const int32_t *)a.index)[blockIdx.x] : (int)blockIdx.x);
    int32_t rank = INT32_MIN;
    int64_t n = 0;
    for (int c = (int)threadIdx.x; c < a.cols; c += LAM_EXACT_THREADS)
        rank = lam_exact_rank(logits[c]) > rank ? lam_exact_rank(logits[c]) : rank;
    const float top = lam_exact_unrank(lam_exact_most(rank, most));
    for (int c = (int)threadIdx.x; c < a.cols; c += LAM_EXACT_THREADS)
        n += lam_exact_round64(
            LAM_DMUL((double)lam_exact_expf(LAM_ADD(logits[c], -top)), LAM_EXACT_XENT));
    n = lam_exact_total(n, total);
    if (threadIdx.x != 0)
        return;
    const float now = target < 0 ? 0.0f : lam_exact_nll(top, n, logits[target]);
    *nll = a.add ? LAM_ADD(*nll, now) : now;
}

extern "C" void lam_cuda_exact_xent(lam_dev *base, const lam_xent *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    assert(a->grad_scale == 0.0);
    lam_cuda_launch(dev, "xent", loss_rows, {dim3((unsigned)a->rows), dim3(LAM_EXACT_THREADS)}, *a);
}

/* What only moves floats is the same in every arithmetic. */
extern "C" void lam_cuda_exact_dropout(lam_dev *dev, const lam_dropout *a)
{
    assert(a->drop.p == 0.0);
    lam_cuda_dropout(dev, a);
}

extern "C" void lam_cuda_exact_copy(lam_dev *dev, const lam_copy *a)
{
    lam_cuda_copy(dev, a);
}

extern "C" void lam_cuda_exact_gather(lam_dev *dev, const lam_pick *a)
{
    lam_cuda_gather(dev, a);
}
