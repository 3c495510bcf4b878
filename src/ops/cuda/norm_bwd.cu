/* cuda/norm_bwd.cu -- the backward pass of norm_fwd.cu, in one pass too.
 *
 * Column sums (dgain, dshift, dbias) stay in registers while a team walks its rows; teams of a block
 * meet in shared memory, blocks leave one line each in scratch, and fold() adds the lines in order. */
#include "ops/cuda/norm_team.cuh"

/* One column sum of a block: the teams' parts are added in order and become a line in scratch. */
template <int W>
static __device__ void leave_line(float *line, const lam_f8 &part, const team<W> &t, int ld)
{
    typedef team<W> shape;
    __shared__ __align__(16) float smem[shape::TEAMS][shape::LANES * 8];
    lam_store8(&smem[t.number][t.col], part);
    __syncthreads();
    for (int col = (int)threadIdx.x; col < ld; col += shape::BLOCK) {
        float sum = 0.0f;
        for (int i = 0; i < shape::TEAMS; i++)
            sum += smem[i][col];
        line[col] = sum;
    }
    __syncthreads();
}

/* What one row of the backward pass reads. */
template <typename T>
struct row_bwd {
    lam_raw8<T> s, dy, dsum;
    float mean, rstd;
};

template <typename T, bool FULL>
static __device__ __forceinline__ row_bwd<T> fetch_bwd(const lam_norm &a, const cursor &c, int col,
                                                       bool in)
{
    row_bwd<T> r;
    const int row = c.row;
    const T *s = a.add ? flat_row<const T>(a.sum, a, c) : row_of<const T>(a.x, a, c);
    r.dy = lam_fetch8(row_of<const T>(a.dy, a, c) + col, in);
    r.s = lam_fetch8(s + col, in && a.gain);
    if (!FULL)
        r.dsum = lam_fetch8(row_of<const T>(a.dsum, a, c) + col, in && a.dsum.p);
    r.mean = a.gain ? ((const float *)a.mean)[row] : 0.0f;
    r.rstd = a.gain ? ((const float *)a.rstd)[row] : 1.0f;
    return r;
}

/* fwd was xhat = (s - mean) rstd, y = xhat gain + shift; so, with g = dy gain,
 *   ds = rstd (g - mean(g) - xhat mean(g xhat)) + dsum,   or dy + dsum without a norm.
 * dx may be dy or dsum: a lane writes only columns that it has read, and no other lane reads them. */
template <typename T, int W, bool FULL>
static __global__ void __launch_bounds__(team<W>::BLOCK, W <= 8 ? BLOCKS_PER_SM : 1)
    norm_bwd(lam_norm a, lam_cuda_mask mask, float *lines)
{
    __shared__ float2 smem[team<W>::TEAMS][2][W];
    team<W> t(smem);
    const int rows = a.blocks * a.rows, groups = lam_cuda_ceil(a.width, 8), col = t.col;
    const bool in = FULL || col < a.ld, masked = a.add && (a.dadd || a.dbias);
    const float share = 1.0f / (float)a.width;
    lam_f8 dgain = {}, dshift = {}, dbias = {};
    const stride step(a, t.rows);
    cursor next = {t.row, t.row / a.rows, t.row % a.rows};
    row_bwd<T> ahead = {};
    if (next.row < rows)
        ahead = fetch_bwd<T, FULL>(a, next, col, in);

    while (next.row < rows) {
        const cursor at = next;
        const int row = at.row;
        lam_f8 ds = lam_unpack8(ahead.dy), xhat = lam_unpack8(ahead.s);
        const lam_raw8<T> dsum = ahead.dsum;
        const float mean = ahead.mean, rstd = ahead.rstd;
        next = next_of(a, at, step);
        if (next.row < rows)
            ahead = fetch_bwd<T, FULL>(a, next, col, in);
        if (a.gain) {
            const lam_f8 gain = vector8<FULL>(a.gain, col, a.width);
            float g = 0.0f, gx = 0.0f;
#pragma unroll
            for (int j = 0; j < 8; j++) { /* padding: dy and gain are 0 there */
                xhat.v[j] = (xhat.v[j] - mean) * rstd;
                dgain.v[j] += ds.v[j] * xhat.v[j];
                dshift.v[j] += ds.v[j];
                ds.v[j] *= gain.v[j];
                g += ds.v[j];
                gx += ds.v[j] * xhat.v[j];
            }
            const float2 both = t.sum(g, gx);
            g = both.x * share;
            gx = both.y * share;
#pragma unroll
            for (int j = 0; j < 8; j++) /* rstd last: the difference may cancel */
                ds.v[j] = rstd * (ds.v[j] - g - xhat.v[j] * gx);
        }
        if (!FULL) {
            const lam_f8 other = lam_unpack8(dsum);
#pragma unroll
            for (int j = 0; j < 8; j++)
                ds.v[j] = col + j < a.width ? ds.v[j] + other.v[j] : 0.0f;
        }
        if (in && a.dx.p)
            lam_store8(row_of<T>(a.dx, a, at) + col, ds);
        if (!masked)
            continue;
        lam_mask8(ds, mask, (size_t)row * (size_t)groups + (size_t)(col / 8));
        if (in && a.dadd)
            lam_store8(flat_row<T>(a.dadd, a, at) + col, ds);
        if (a.dbias)
#pragma unroll
            for (int j = 0; j < 8; j++)
                dbias.v[j] += ds.v[j];
    }
    float *line = lines + (size_t)blockIdx.x * LAM_CUDA_SUMS * (size_t)a.ld;
    if (a.gain) {
        leave_line<W>(line, dgain, t, a.ld);
        leave_line<W>(line + a.ld, dshift, t, a.ld);
    }
    if (masked && a.dbias)
        leave_line<W>(line + 2 * (size_t)a.ld, dbias, t, a.ld);
}

template <typename T, int W, bool FULL>
static void launch_bwd(lam_cuda_dev *dev, const lam_norm *a)
{
    const int blocks = blocks_of<W>(dev, a);
    const size_t line = LAM_CUDA_SUMS * (size_t)a->ld;
    float *lines = (float *)lam_cuda_scratch(dev, (size_t)blocks * line * sizeof(float));
    lam_cuda_launch(dev, "norm_bwd", norm_bwd<T, W, FULL>, {blocks, team<W>::BLOCK}, *a,
                    lam_cuda_mask_of(&a->drop), lines);
    const lam_cuda_sums sums = {{a->gain ? (float *)a->dgain : NULL,
                                 a->gain ? (float *)a->dshift : NULL,
                                 a->add ? (float *)a->dbias : NULL},
                                lines,
                                line,
                                (size_t)a->ld,
                                blocks,
                                a->width};
    if (sums.out[0] || sums.out[1] || sums.out[2])
        lam_cuda_fold(dev, "norm_bwd", &sums);
}

/* Backward keeps three sums a column: one group a lane is all that fits. */
template <typename T>
static void dispatch_bwd(lam_cuda_dev *dev, const lam_norm *a)
{
    if (is_full(a, 256))
        launch_bwd<T, 1, true>(dev, a);
    else if (is_full(a, 512))
        launch_bwd<T, 2, true>(dev, a);
    else if (is_full(a, 1024))
        launch_bwd<T, 4, true>(dev, a);
    else if (a->ld <= 512)
        launch_bwd<T, 2, false>(dev, a);
    else if (a->ld <= 2048)
        launch_bwd<T, 8, false>(dev, a);
    else
        launch_bwd<T, 32, false>(dev, a);
}

size_t lam_cuda_norm_scratch(const lam_cuda_dev *dev, const lam_work *largest)
{
    const int ld = largest->width < LAM_CUDA_ROW ? largest->width : (int)LAM_CUDA_ROW;
    return (size_t)(dev->sms * BLOCKS_PER_SM) * LAM_CUDA_SUMS * (size_t)(ld + LAM_CUDA_PAD) *
           sizeof(float);
}

extern "C" void lam_cuda_norm_bwd(lam_dev *dev, const lam_norm *a)
{
    if (!is_possible(lam_cuda(dev), "norm_bwd", a))
        return;
    if (lam_cuda(dev)->bf16)
        dispatch_bwd<lam_bf16>(lam_cuda(dev), a);
    else
        dispatch_bwd<float>(lam_cuda(dev), a);
}
