/* cuda/norm_fwd.cu -- residual + dropout + bias + LayerNorm in one pass; norm_bwd.cu is its backward.
 *
 * ref/rowwise.c says what is computed, norm_team.cuh how rows are shared; the other row-wise work is in
 * rowwise.cu.  Statistics are taken in two passes over the registers, from the sum before it is rounded to
 * bf16. */
#include "ops/cuda/norm_team.cuh"

/* What one row of the forward pass reads, NG groups of it. */
template <typename T, int NG>
struct row_fwd {
    lam_raw8<T> x[NG], add[NG];
};

template <typename T, int NG, bool FULL>
static __device__ __forceinline__ row_fwd<T, NG> fetch_fwd(const lam_norm &a, const cursor &c,
                                                           int col, int apart)
{
    row_fwd<T, NG> r;
    const T *x = row_of<const T>(a.x, a, c) + col;
    const T *add = flat_row<const T>(a.add, a, c) + col;
#pragma unroll
    for (int i = 0; i < NG; i++) {
        const bool in = FULL || col + i * apart < a.ld;
        r.x[i] = lam_fetch8(x + i * apart, in);
        r.add[i] = lam_fetch8(add + i * apart, in && a.add);
    }
    return r;
}

template <typename T, int NG, int W, bool FULL>
static __global__ void __launch_bounds__(team<W>::BLOCK, W <= 8 ? BLOCKS_PER_SM : 1)
    norm_fwd(lam_norm a, lam_cuda_mask mask)
{
    enum { APART = team<W>::LANES * 8 }; /* columns from one group to the next */
    __shared__ float2 smem[team<W>::TEAMS][2][W];
    team<W> t(smem);
    const int rows = a.blocks * a.rows, groups = lam_cuda_ceil(a.width, 8), col = t.col;
    const float share = 1.0f / (float)a.width;
    const stride step(a, t.rows);
    cursor next = {t.row, t.row / a.rows, t.row % a.rows};
    row_fwd<T, NG> ahead = {};
    lam_chain();
    if (next.row < rows)
        ahead = fetch_fwd<T, NG, FULL>(a, next, col, APART);

    while (next.row < rows) {
        const cursor at = next;
        const row_fwd<T, NG> now = ahead;
        next = next_of(a, at, step);
        if (next.row < rows)
            ahead = fetch_fwd<T, NG, FULL>(a, next, col, APART);
        T *y = row_of<T>(a.y, a, at) + col;
        T *sum = flat_row<T>(a.sum, a, at) + col;
        lam_f8 s[NG];
        float total = 0.0f, squares = 0.0f;
#pragma unroll
        for (int i = 0; i < NG; i++) {
            s[i] = lam_unpack8(now.x[i]);
            if (a.add) {
                lam_f8 more = lam_unpack8(now.add[i]);
                const lam_f8 bias = vector8<FULL>(a.bias, col + i * APART, a.width);
#pragma unroll
                for (int j = 0; j < 8; j++)
                    more.v[j] += bias.v[j];
                lam_mask8(more, mask,
                          (size_t)at.row * (size_t)groups + (size_t)((col + i * APART) / 8));
#pragma unroll
                for (int j = 0; j < 8; j++)
                    s[i].v[j] += more.v[j]; /* padding: 0 + 0 */
                if (a.gain && (FULL || col + i * APART < a.ld))
                    lam_store8(sum + i * APART, s[i]);
            }
#pragma unroll
            for (int j = 0; j < 8; j++)
                total += s[i].v[j];
        }
        if (a.gain) {
            const float mean = t.sum(total) * share;
#pragma unroll
            for (int i = 0; i < NG; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    s[i].v[j] -= mean;
                    if (FULL || col + i * APART + j < a.width)
                        squares += s[i].v[j] * s[i].v[j];
                }
            const float rstd = 1.0f / sqrtf(t.sum(squares) * share + (float)a.eps);
#pragma unroll
            for (int i = 0; i < NG; i++) {
                const lam_f8 gain = vector8<FULL>(a.gain, col + i * APART, a.width);
                const lam_f8 shift = vector8<FULL>(a.shift, col + i * APART, a.width);
#pragma unroll
                for (int j = 0; j < 8; j++) /* padding: gain and shift are 0 there */
                    s[i].v[j] = s[i].v[j] * rstd * gain.v[j] + shift.v[j];
            }
            if (t.lane == 0) {
                ((float *)a.mean)[at.row] = mean;
                ((float *)a.rstd)[at.row] = rstd;
            }
        }
#pragma unroll
        for (int i = 0; i < NG; i++)
            if (FULL || col + i * APART < a.ld)
                lam_store8(y + i * APART, s[i]);
    }
}

template <typename T, int NG, int W, bool FULL>
static void launch_fwd(lam_cuda_dev *dev, const lam_norm *a)
{
    lam_cuda_launch(dev, "norm_fwd", norm_fwd<T, NG, W, FULL>,
                    {blocks_of<W>(dev, a), team<W>::BLOCK, 0, true}, *a,
                    lam_cuda_mask_of(&a->drop));
}

template <typename T>
static void dispatch_fwd(lam_cuda_dev *dev, const lam_norm *a)
{
    if (is_full(a, 256))
        launch_fwd<T, 1, 1, true>(dev, a);
    else if (is_full(a, 512))
        launch_fwd<T, 2, 1, true>(dev, a);
    else if (is_full(a, 1024))
        launch_fwd<T, 2, 2, true>(dev, a);
    else if (a->ld <= 512)
        launch_fwd<T, 2, 1, false>(dev, a);
    else if (a->ld <= 2048)
        launch_fwd<T, 2, 4, false>(dev, a);
    else
        launch_fwd<T, 2, 16, false>(dev, a);
}

extern "C" void lam_cuda_norm_fwd(lam_dev *dev, const lam_norm *a)
{
    if (!is_possible(lam_cuda(dev), "norm_fwd", a))
        return;
    if (lam_cuda(dev)->bf16)
        dispatch_fwd<lam_bf16>(lam_cuda(dev), a);
    else
        dispatch_fwd<float>(lam_cuda(dev), a);
}
