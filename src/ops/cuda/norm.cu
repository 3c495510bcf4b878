/* cuda/norm.cu -- residual + dropout + bias + LayerNorm, forward and backward, in one pass each.
 *
 * ref/rowwise.c says what is computed; the other row-wise work is in rowwise.cu.  Both directions move
 * bytes and little else (four tensors of rows x width), so a team of W warps owns a row and keeps it
 * in registers: NG groups of eight columns a lane.  Statistics are taken in two passes over those
 * registers, from the sum before it is rounded to bf16.
 *
 * Column sums (dgain, dshift, dbias) stay in registers while a team walks its rows; teams of a block
 * meet in shared memory, blocks leave one line each in scratch, and fold() adds the lines in order. */
#include "ops/cuda/cuda_int.cuh"

enum { THREADS = 256, BLOCKS_PER_SM = 2, MAX_LD = 16384 };

/* Sums over a team; `room` is shared memory for 32 floats, not the one used by the sum before. */
template <int W>
static __device__ __forceinline__ float team_sum(float x, float *room)
{
    return W == 1 ? lam_warp_sum(x) : lam_block_sum(x, room);
}

/* What the lanes of a kernel agree on. */
template <typename T, int NG, int W>
struct team {
    enum { LANES = W * LAM_WARP, BLOCK = W == 1 ? THREADS : LANES, TEAMS = BLOCK / LANES };
    int lane, first, stride; /* place in the team; the rows this team takes */

    __device__ __forceinline__ team()
        : lane((int)threadIdx.x % LANES), first((int)blockIdx.x * TEAMS + (int)threadIdx.x / LANES),
          stride((int)gridDim.x * TEAMS)
    {
    }

    /* The first column of group i of this lane. */
    __device__ __forceinline__ int col(int i) const
    {
        return (i * LANES + lane) * 8;
    }
};

template <typename T>
static __device__ __forceinline__ T *row_of(lam_view view, const lam_norm &a, int row)
{
    return (T *)view.p + (size_t)(row / a.rows) * view.step + (size_t)(row % a.rows) * (size_t)a.ld;
}

/* A WIDE vector's part for columns col.. of `width`; zero beyond, and where there is no vector.  Read
 * again for every row: it comes from the L1 cache, and in registers it would cost occupancy. */
static __device__ __forceinline__ lam_f8 vector8(const void *p, int col, int width)
{
    const float *at = (const float *)p + col;
    return lam_load8_n(at, p ? min(width - col, 8) : 0, (uintptr_t)at % 16 == 0);
}

template <typename T, int NG, int W>
static __global__ void __launch_bounds__(team<T, NG, W>::BLOCK)
    norm_fwd(lam_norm a, lam_cuda_mask mask)
{
    __shared__ float room[2][LAM_WARP];
    const team<T, NG, W> t;
    const int groups = lam_cuda_ceil(a.width, 8);
    const float share = 1.0f / (float)a.width;
    for (int row = t.first; row < a.blocks * a.rows; row += t.stride) {
        const T *x = row_of<const T>(a.x, a, row), *add = (const T *)a.add + (size_t)row * a.ld;
        T *y = row_of<T>(a.y, a, row), *sum = (T *)a.sum + (size_t)row * a.ld;
        lam_f8 s[NG];
        float total = 0.0f;
#pragma unroll
        for (int i = 0; i < NG; i++) {
            const int col = t.col(i);
            s[i] = {};
            if (col >= a.ld)
                continue;
            s[i] = lam_load8(x + col);
            if (a.add) {
                lam_f8 more = lam_load8(add + col);
                const lam_f8 bias = vector8(a.bias, col, a.width);
#pragma unroll
                for (int j = 0; j < 8; j++)
                    more.v[j] += bias.v[j];
                lam_mask8(more, mask, (size_t)row * (size_t)groups + (size_t)(col / 8));
#pragma unroll
                for (int j = 0; j < 8; j++)
                    s[i].v[j] += more.v[j]; /* padding: 0 + 0 */
                lam_store8((a.gain ? sum : y) + col, s[i]);
            }
#pragma unroll
            for (int j = 0; j < 8; j++)
                total += s[i].v[j];
        }
        if (!a.gain) {
#pragma unroll
            for (int i = 0; i < NG; i++)
                if (!a.add && t.col(i) < a.ld)
                    lam_store8(y + t.col(i), s[i]);
            continue;
        }
        const float mean = team_sum<W>(total, room[0]) * share;
        float squares = 0.0f;
#pragma unroll
        for (int i = 0; i < NG; i++)
#pragma unroll
            for (int j = 0; j < 8; j++)
                squares += t.col(i) + j < a.width ? (s[i].v[j] - mean) * (s[i].v[j] - mean) : 0.0f;
        const float rstd = 1.0f / sqrtf(team_sum<W>(squares, room[1]) * share + (float)a.eps);
#pragma unroll
        for (int i = 0; i < NG; i++) {
            const lam_f8 gain = vector8(a.gain, t.col(i), a.width);
            const lam_f8 shift = vector8(a.shift, t.col(i), a.width);
#pragma unroll
            for (int j = 0; j < 8; j++) /* padding: gain and shift are 0 there */
                s[i].v[j] = (s[i].v[j] - mean) * rstd * gain.v[j] + shift.v[j];
            if (t.col(i) < a.ld)
                lam_store8(y + t.col(i), s[i]);
        }
        if (t.lane == 0) {
            ((float *)a.mean)[row] = mean;
            ((float *)a.rstd)[row] = rstd;
        }
    }
}

/* One column sum of a block: the teams' parts are added in order and become a line in scratch. */
template <typename T, int NG, int W>
static __device__ void leave_line(float *line, const lam_f8 *part, int ld)
{
    typedef team<T, NG, W> shape;
    __shared__ __align__(16) float room[shape::TEAMS][shape::TEAMS > 1 ? NG * shape::LANES * 8 : 1];
    const shape t;
    if constexpr (shape::TEAMS == 1) {
#pragma unroll
        for (int i = 0; i < NG; i++)
            if (t.col(i) < ld)
                lam_store8(line + t.col(i), part[i]);
    } else {
#pragma unroll
        for (int i = 0; i < NG; i++)
            lam_store8(&room[(int)threadIdx.x / shape::LANES][t.col(i)], part[i]);
        __syncthreads();
        for (int col = (int)threadIdx.x; col < ld; col += shape::BLOCK) {
            float sum = 0.0f;
            for (int i = 0; i < shape::TEAMS; i++)
                sum += room[i][col];
            line[col] = sum;
        }
        __syncthreads();
    }
}

/* fwd was xhat = (s - mean) rstd, y = xhat gain + shift; so, with g = dy gain,
 *   ds = rstd (g - mean(g) - xhat mean(g xhat)) + dsum,   or dy + dsum without a norm.
 * A lane reads its columns before it writes them, because dx may be dy or dsum. */
template <typename T, int NG, int W>
static __global__ void __launch_bounds__(team<T, NG, W>::BLOCK, W == 1 ? BLOCKS_PER_SM : 1)
    norm_bwd(lam_norm a, lam_cuda_mask mask, float *lines)
{
    __shared__ float room[2][LAM_WARP];
    const team<T, NG, W> t;
    const int groups = lam_cuda_ceil(a.width, 8);
    const bool masked = a.add && (a.dadd || a.dbias);
    const float share = 1.0f / (float)a.width;
    lam_f8 dgain[NG] = {}, dshift[NG] = {}, dbias[NG] = {};
    for (int row = t.first; row < a.blocks * a.rows; row += t.stride) {
        const T *s = a.add ? (const T *)a.sum + (size_t)row * a.ld : row_of<const T>(a.x, a, row);
        const T *dy = row_of<const T>(a.dy, a, row), *dsum = row_of<const T>(a.dsum, a, row);
        T *dx = row_of<T>(a.dx, a, row), *dadd = (T *)a.dadd + (size_t)row * a.ld;
        const float mean = a.gain ? ((const float *)a.mean)[row] : 0.0f;
        const float rstd = a.gain ? ((const float *)a.rstd)[row] : 1.0f;
        lam_f8 xhat[NG], ds[NG];
        float g = 0.0f, gx = 0.0f;
#pragma unroll
        for (int i = 0; i < NG; i++) {
            const bool in = t.col(i) < a.ld;
            xhat[i] = {};
            ds[i] = in ? lam_load8(dy + t.col(i)) : lam_f8{};
            if (!a.gain)
                continue;
            if (in)
                xhat[i] = lam_load8(s + t.col(i));
            const lam_f8 gain = vector8(a.gain, t.col(i), a.width);
#pragma unroll
            for (int j = 0; j < 8; j++) { /* padding: dy and gain are 0 there */
                xhat[i].v[j] = (xhat[i].v[j] - mean) * rstd;
                dgain[i].v[j] += ds[i].v[j] * xhat[i].v[j];
                dshift[i].v[j] += ds[i].v[j];
                ds[i].v[j] *= gain.v[j];
                g += ds[i].v[j];
                gx += ds[i].v[j] * xhat[i].v[j];
            }
        }
        if (a.gain) {
            g = team_sum<W>(g, room[0]) * share;
            gx = team_sum<W>(gx, room[1]) * share;
        }
#pragma unroll
        for (int i = 0; i < NG; i++) {
            const int col = t.col(i);
            if (col >= a.ld)
                continue;
            const lam_f8 other = a.dsum.p ? lam_load8(dsum + col) : lam_f8{};
#pragma unroll
            for (int j = 0; j < 8; j++) {
                if (a.gain)
                    ds[i].v[j] = rstd * (ds[i].v[j] - g - xhat[i].v[j] * gx);
                ds[i].v[j] = col + j < a.width ? ds[i].v[j] + other.v[j] : 0.0f;
            }
            if (a.dx.p)
                lam_store8(dx + col, ds[i]);
            if (!masked)
                continue;
            lam_mask8(ds[i], mask, (size_t)row * (size_t)groups + (size_t)(col / 8));
            if (a.dadd)
                lam_store8(dadd + col, ds[i]);
#pragma unroll
            for (int j = 0; j < 8; j++)
                dbias[i].v[j] += ds[i].v[j];
        }
    }
    float *line = lines + (size_t)blockIdx.x * LAM_CUDA_SUMS * (size_t)a.ld;
    if (a.gain) {
        leave_line<T, NG, W>(line, dgain, a.ld);
        leave_line<T, NG, W>(line + a.ld, dshift, a.ld);
    }
    if (masked && a.dbias)
        leave_line<T, NG, W>(line + 2 * (size_t)a.ld, dbias, a.ld);
}

template <typename T, int NG, int W>
static void launch(lam_cuda_dev *dev, const lam_norm *a, int backward)
{
    typedef team<T, NG, W> shape;
    const int rows = a->blocks * a->rows, needed = lam_cuda_ceil(rows, shape::TEAMS);
    const lam_cuda_mask mask = lam_cuda_mask_of(&a->drop);
    if (!backward) {
        const int most = dev->sms * 4 * BLOCKS_PER_SM;
        norm_fwd<T, NG, W>
            <<<(unsigned)(needed < most ? needed : most), shape::BLOCK, 0, dev->stream>>>(*a, mask);
        lam_cuda_check_launch(dev, "norm_fwd");
        return;
    }
    const int most = dev->sms * BLOCKS_PER_SM, blocks = needed < most ? needed : most;
    const size_t line = LAM_CUDA_SUMS * (size_t)a->ld;
    float *lines = (float *)lam_cuda_scratch(dev, (size_t)blocks * line * sizeof(float));
    norm_bwd<T, NG, W><<<(unsigned)blocks, shape::BLOCK, 0, dev->stream>>>(*a, mask, lines);
    lam_cuda_check_launch(dev, "norm_bwd");
    const lam_cuda_sums sums = {{a->gain ? (float *)a->dgain : NULL,
                                 a->gain ? (float *)a->dshift : NULL,
                                 a->add ? (float *)a->dbias : NULL},
                                lines,
                                line,
                                (size_t)a->ld,
                                blocks,
                                a->width};
    lam_cuda_fold(dev, "norm_bwd", &sums);
}

template <typename T>
static void dispatch(lam_cuda_dev *dev, const lam_norm *a, int backward)
{
    assert(a->width >= 1 && a->ld >= a->width && a->ld % 8 == 0 && a->ld <= MAX_LD);
    if (a->blocks * a->rows == 0)
        return;
    if (a->ld <= 256)
        launch<T, 1, 1>(dev, a, backward);
    else if (a->ld <= 512)
        launch<T, 2, 1>(dev, a, backward);
    else if (a->ld <= 1024)
        launch<T, 2, 2>(dev, a, backward);
    else if (a->ld <= 4096)
        launch<T, 2, 8>(dev, a, backward);
    else
        launch<T, 4, 16>(dev, a, backward);
}

size_t lam_cuda_norm_scratch(const lam_cuda_dev *dev, const lam_work *largest)
{
    const int ld = largest->width < MAX_LD ? largest->width : MAX_LD;
    return (size_t)(dev->sms * BLOCKS_PER_SM) * LAM_CUDA_SUMS * (size_t)(ld + LAM_CUDA_PAD) *
           sizeof(float);
}

extern "C" void lam_cuda_norm_fwd(lam_dev *dev, const lam_norm *a)
{
    if (lam_cuda(dev)->bf16)
        dispatch<lam_bf16>(lam_cuda(dev), a, 0);
    else
        dispatch<float>(lam_cuda(dev), a, 0);
}

extern "C" void lam_cuda_norm_bwd(lam_dev *dev, const lam_norm *a)
{
    if (lam_cuda(dev)->bf16)
        dispatch<lam_bf16>(lam_cuda(dev), a, 1);
    else
        dispatch<float>(lam_cuda(dev), a, 1);
}
