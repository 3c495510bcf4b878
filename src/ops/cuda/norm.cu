/* cuda/norm.cu -- residual + dropout + bias + LayerNorm, forward and backward, in one pass each.
 *
 * ref/rowwise.c says what is computed; the other row-wise work is in rowwise.cu.  Both directions move
 * bytes and little else (four tensors of rows x width), so a team of W warps owns a row and keeps it
 * in registers, one or two groups of eight columns a lane, and the next row is fetched while this one
 * is worked on.  Instructions are scarce: 400 for eight columns already take longer than the memory.
 * FULL kernels serve the common case that the teams' columns are exactly the row's.
 * Statistics are taken in two passes over the registers, from the sum before it is rounded to bf16.
 *
 * Column sums (dgain, dshift, dbias) stay in registers while a team walks its rows; teams of a block
 * meet in shared memory, blocks leave one line each in scratch, and fold() adds the lines in order. */
#include "ops/cuda/cuda_int.cuh"

enum { THREADS = 256, BLOCKS_PER_SM = 3, MAX_LD = 8192 }; /* blocks: all that are resident */

/* A team: W warps side by side, several teams to a block. */
template <int W>
struct team {
    enum {
        LANES = W * LAM_WARP,
        BLOCK = LANES > THREADS ? (int)LANES : (int)THREADS,
        TEAMS = BLOCK / LANES
    };
    int number, lane, col; /* within the block; within the team; the lane's first column */
    int row, rows;         /* its first row, and how far it is to the next */
    float2 (*room)[W];     /* shared: two sets, used in turn */
    int turn;

    __device__ __forceinline__ explicit team(float2 (*shared)[2][W])
        : number((int)threadIdx.x / LANES), lane((int)threadIdx.x % LANES), col(lane * 8),
          row((int)blockIdx.x * TEAMS + number), rows((int)gridDim.x * TEAMS), room(shared[number]),
          turn(0)
    {
    }

    /* The sums of both over the team, in every lane.  One barrier: a set is written again only after
     * the barrier of the other one. */
    __device__ __forceinline__ float2 sum(float x, float y)
    {
        return W == 1 ? make_float2(lam_warp_sum(x), lam_warp_sum(y))
                      : join(make_float2(lam_warp_sum(x), lam_warp_sum(y)));
    }

    __device__ __forceinline__ float sum(float x)
    {
        return W == 1 ? lam_warp_sum(x) : join(make_float2(lam_warp_sum(x), 0.0f)).x;
    }

    __device__ __forceinline__ float2 join(float2 mine)
    {
        float2 *set = room[turn];
        turn ^= 1;
        if (lane % LAM_WARP == 0)
            set[lane / LAM_WARP] = mine;
        asm volatile("bar.sync %0, %1;" ::"r"(number + 1), "n"(W * LAM_WARP) : "memory");
        float2 all = set[0];
#pragma unroll
        for (int i = 1; i < W; i++) {
            all.x += set[i].x;
            all.y += set[i].y;
        }
        return all;
    }
};

/* A row of the call, of its block; walking from one to the next takes no division. */
struct cursor {
    int row, b, r;
};

struct stride {
    int row, b, r;

    __device__ __forceinline__ stride(const lam_norm &a, int rows)
        : row(rows), b(rows / a.rows), r(rows % a.rows)
    {
    }
};

static __device__ __forceinline__ cursor next_of(const lam_norm &a, const cursor &c,
                                                 const stride &s)
{
    const int over = c.r + s.r >= a.rows;
    return {c.row + s.row, c.b + s.b + over, c.r + s.r - (over ? a.rows : 0)};
}

/* Products of 32 bits: the steps are known to fit (is_possible). */
template <typename T>
static __device__ __forceinline__ T *row_of(lam_view view, const lam_norm &a, const cursor &c)
{
    return (T *)view.p + (uint64_t)(uint32_t)c.b * (uint32_t)view.step +
           (uint64_t)(uint32_t)c.r * (uint32_t)a.ld;
}

template <typename T>
static __device__ __forceinline__ T *flat_row(const void *p, const lam_norm &a, const cursor &c)
{
    return (T *)(uintptr_t)p + (uint64_t)(uint32_t)c.row * (uint32_t)a.ld;
}

/* A WIDE vector's part for eight columns: zero beyond `width`, and where there is no vector.  Read
 * again for every row: it comes from the L1 cache, and in registers it would cost occupancy. */
template <bool FULL>
static __device__ __forceinline__ lam_f8 vector8(const void *vector, int col, int width)
{
    const float *p = (const float *)vector + col;
    if (FULL)
        return vector ? lam_load8(p) : lam_f8{};
    const int n = vector ? width - col : 0;
    return lam_load8_n(p, n, n >= 8 && (uintptr_t)p % 16 == 0);
}

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
    __shared__ float2 room[team<W>::TEAMS][2][W];
    team<W> t(room);
    const int rows = a.blocks * a.rows, groups = lam_cuda_ceil(a.width, 8), col = t.col;
    const float share = 1.0f / (float)a.width;
    const stride step(a, t.rows);
    cursor next = {t.row, t.row / a.rows, t.row % a.rows};
    row_fwd<T, NG> ahead = {};
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

/* One column sum of a block: the teams' parts are added in order and become a line in scratch. */
template <int W>
static __device__ void leave_line(float *line, const lam_f8 &part, const team<W> &t, int ld)
{
    typedef team<W> shape;
    __shared__ __align__(16) float room[shape::TEAMS][shape::LANES * 8];
    lam_store8(&room[t.number][t.col], part);
    __syncthreads();
    for (int col = (int)threadIdx.x; col < ld; col += shape::BLOCK) {
        float sum = 0.0f;
        for (int i = 0; i < shape::TEAMS; i++)
            sum += room[i][col];
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
    __shared__ float2 room[team<W>::TEAMS][2][W];
    team<W> t(room);
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

/* As many blocks as the rows need, but no more than are resident at once. */
template <int W>
static int blocks_of(const lam_cuda_dev *dev, const lam_norm *a)
{
    const int needed = lam_cuda_ceil(a->blocks * a->rows, team<W>::TEAMS);
    const int most = dev->sms * (W <= 8 ? BLOCKS_PER_SM : 1);
    return needed < most ? needed : most;
}

template <typename T, int NG, int W, bool FULL>
static void launch_fwd(lam_cuda_dev *dev, const lam_norm *a)
{
    const unsigned blocks = (unsigned)blocks_of<W>(dev, a);
    norm_fwd<T, NG, W, FULL>
        <<<blocks, team<W>::BLOCK, 0, dev->stream>>>(*a, lam_cuda_mask_of(&a->drop));
    lam_cuda_check_launch(dev, "norm_fwd");
}

template <typename T, int W, bool FULL>
static void launch_bwd(lam_cuda_dev *dev, const lam_norm *a)
{
    const int blocks = blocks_of<W>(dev, a);
    const size_t line = LAM_CUDA_SUMS * (size_t)a->ld;
    float *lines = (float *)lam_cuda_scratch(dev, (size_t)blocks * line * sizeof(float));
    norm_bwd<T, W, FULL><<<(unsigned)blocks, team<W>::BLOCK, 0, dev->stream>>>(
        *a, lam_cuda_mask_of(&a->drop), lines);
    lam_cuda_check_launch(dev, "norm_bwd");
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

/* Is there something to do that can be done?  A row has to fit the registers of one block. */
static bool is_possible(lam_cuda_dev *dev, const char *op, const lam_norm *a)
{
    assert(a->width >= 1 && a->ld >= a->width && a->ld % 8 == 0);
    assert((a->x.step | a->y.step | a->dy.step | a->dx.step | a->dsum.step) <= UINT32_MAX);
    if (a->ld > MAX_LD)
        lam_cuda_note_text(dev, op, "rows (d_model) of more than 8192 columns");
    return a->ld <= MAX_LD && a->blocks * a->rows > 0;
}

static bool is_full(const lam_norm *a, int columns)
{
    const uintptr_t vectors = (uintptr_t)a->bias | (uintptr_t)a->gain | (uintptr_t)a->shift;
    return a->width == columns && a->ld == columns && !a->dsum.p && vectors % 16 == 0;
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
    const int ld = largest->width < MAX_LD ? largest->width : MAX_LD;
    return (size_t)(dev->sms * BLOCKS_PER_SM) * LAM_CUDA_SUMS * (size_t)(ld + LAM_CUDA_PAD) *
           sizeof(float);
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

extern "C" void lam_cuda_norm_bwd(lam_dev *dev, const lam_norm *a)
{
    if (!is_possible(lam_cuda(dev), "norm_bwd", a))
        return;
    if (lam_cuda(dev)->bf16)
        dispatch_bwd<lam_bf16>(lam_cuda(dev), a);
    else
        dispatch_bwd<float>(lam_cuda(dev), a);
}
