/* cuda/continuous.cu -- a memory in continuous time on the GPU: gate, attention by a density, sampling.
 *
 * ref/continuous.c says what is computed.  A warp owns one query of one head: its two dot products and its sums
 * over the bumps stay inside the warp, and a lane owns eight bumps at a time, one store of 16 bytes.  A bump needs
 * two special functions, an inverse square root and an exponential: more is what the first version took, and the
 * time of these kernels.  The gradient of `pull` is a sum over queries, so the warps leave what they found in
 * scratch and a second kernel adds it up in order. */
#include "ops/cuda/cuda_int.cuh"

enum { WARPS = 8, THREADS = WARPS * LAM_WARP, PULL_ROWS = 16 };

static __device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static __device__ __forceinline__ float softplus(float x)
{
    return x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x));
}

/* N(d; 0, 1 / t^2). */
static __device__ __forceinline__ float bump(float d, float t)
{
    const float u = d * t;
    return expf(-0.5f * u * u) * (0.398942280f * t);
}

/* ---- the gate -------------------------------------------------------------------------------- */

template <typename T, bool BACKWARD>
static __global__ void gate(lam_gate a, bool aligned)
{
    const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x) * 8, n = a.ld - c;
    if (n <= 0)
        return;
    for (int r = (int)(blockIdx.y * blockDim.y + threadIdx.y); r < a.rows;
         r += (int)(gridDim.y * blockDim.y)) {
        const size_t at = (size_t)r * a.ld + c;
        const lam_f8 in = lam_load8_n((const T *)a.in + at, n, aligned);
        const lam_f8 pre = lam_load8_n((const T *)a.pre + at, n, aligned);
        lam_f8 out = {};
        if (BACKWARD)
            out = lam_load8_n((const T *)a.dout + at, n, aligned);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float g = sigmoid(pre.v[i]);
            const float x = BACKWARD ? out.v[i] * in.v[i] * g * (1.0f - g) : in.v[i] * g;
            out.v[i] = c + i < a.width ? x : 0.0f;
        }
        lam_store8_n((T *)(BACKWARD ? a.dpre : a.out) + at, out, n, aligned);
    }
}

template <bool BACKWARD>
static void launch_gate(lam_dev *dev, const lam_gate *a, const char *op)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    const bool aligned = a->ld % 8 == 0;
    if (a->rows == 0)
        return;
    const lam_cuda_grid g = lam_cuda_grid_of(cuda, (size_t)lam_cuda_ceil(a->ld, 8), a->rows, 1);
    const auto kernel = cuda->bf16 ? gate<lam_bf16, BACKWARD> : gate<float, BACKWARD>;
    lam_cuda_launch(cuda, op, kernel, g, *a, aligned);
}

extern "C" void lam_cuda_gate_fwd(lam_dev *dev, const lam_gate *a)
{
    launch_gate<false>(dev, a, "gate_fwd");
}

extern "C" void lam_cuda_gate_bwd(lam_dev *dev, const lam_gate *a)
{
    launch_gate<true>(dev, a, "gate_bwd");
}

/* ---- attention by a density ------------------------------------------------------------------ */

/* Which query of which head of which stream this warp works on; r's rows are in this order. */
struct query_index {
    bool in;
    size_t row, b, h, i;
};

/* 32-bit divisions: those of 64 bits take longer than the rest of a query's sums. */
static __device__ __forceinline__ query_index query_index_of(const lam_density &a)
{
    const unsigned row = blockIdx.x * WARPS + threadIdx.y, n = (unsigned)a.queries;
    const unsigned H = (unsigned)a.H, head = row / n;
    return {head < (unsigned)a.B * H, row, head / H, head % H, row % n};
}

static __device__ __forceinline__ float *stat_at(const lam_density &a, lam_view v,
                                                 const query_index &p)
{
    return (float *)v.p + p.b * v.step + p.i * (size_t)a.H + p.h;
}

/* The query's head in q or dq; head h of row `which` of pull or dpull. */
template <typename T>
static __device__ __forceinline__ T *query_at(const lam_density &a, lam_view v,
                                              const query_index &p)
{
    return (T *)v.p + p.b * v.step + p.i * a.ldq + p.h * (size_t)a.K;
}

template <typename T>
static __device__ __forceinline__ T *pull_at(const lam_density &a, lam_view v, const query_index &p,
                                             int which)
{
    return (T *)v.p + p.b * v.step + ((size_t)which * a.H + p.h) * (size_t)a.K;
}

/* Eight bumps from the j-th on; past the last one they are 0 wide at 0. */
struct bumps {
    lam_f8 centre, width;

    /* Of a bump under a density of variance var; one step of Newton's, for the square counts below. */
    __device__ __forceinline__ float sharpness(int i, float var) const
    {
        const float S = fmaf(width.v[i], width.v[i], var), t = rsqrtf(S);
        return fmaf(0.5f * t, fmaf(-S * t, t, 1.0f), t);
    }
};

static __device__ __forceinline__ bumps bumps_at(const lam_density &a, int j, bool aligned)
{
    return {lam_load8_n((const float *)a.centre + j, a.basis - j, aligned),
            lam_load8_n((const float *)a.width + j, a.basis - j, aligned)};
}

template <typename T>
static __global__ void density_fwd(lam_density a, bool aligned)
{
    const query_index p = query_index_of(a);
    const int lane = (int)threadIdx.x;
    if (!p.in)
        return; /* whole warps leave together */
    const T *q = query_at<const T>(a, a.q, p);
    const T *pull_mu = pull_at<const T>(a, a.pull, p, 0);
    const T *pull_var = pull_at<const T>(a, a.pull, p, 1);
    float to_mu = 0.0f, to_var = 0.0f;
    for (int c = lane; c < a.K; c += LAM_WARP) {
        to_mu += lam_float(q[c]) * lam_float(pull_mu[c]);
        to_var += lam_float(q[c]) * lam_float(pull_var[c]);
    }
    const float scale = (float)a.scale, mu = sigmoid(scale * lam_warp_sum(to_mu));
    const float var = fmaxf(softplus(scale * lam_warp_sum(to_var)), (float)a.var_min);
    T *r = (T *)a.r + p.row * a.ldr;
    for (int j = 8 * lane; j < a.basis; j += 8 * LAM_WARP) {
        const bumps at = bumps_at(a, j, aligned);
        lam_f8 out;
#pragma unroll
        for (int i = 0; i < 8; i++)
            out.v[i] = bump(mu - at.centre.v[i], at.sharpness(i, var));
        lam_store8_n(r + j, out, a.basis - j, aligned);
    }
    if (lane == 0) {
        *stat_at(a, a.mu, p) = mu;
        *stat_at(a, a.var, p) = var;
    }
}

/* What reaches scale q . pull_0 and scale q . pull_1 of every query, [B][H][queries]. */
template <typename T>
static __global__ void density_bwd(lam_density a, float2 *slopes, bool aligned)
{
    const query_index p = query_index_of(a);
    const int lane = (int)threadIdx.x;
    if (!p.in)
        return;
    const float mu = *stat_at(a, a.mu, p), var = *stat_at(a, a.var, p), prior = (float)a.prior;
    const T *dr = (const T *)a.dr + p.row * a.ldr;
    float dmu = 0.0f, dvar = 0.0f;
    for (int j = 8 * lane; j < a.basis; j += 8 * LAM_WARP) {
        const bumps at = bumps_at(a, j, aligned);
        const lam_f8 slope = lam_load8_n(dr + j, a.basis - j, aligned); /* 0 past the last */
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float d = mu - at.centre.v[i], t = at.sharpness(i, var), u = d * t;
            const float g = slope.v[i] * bump(d, t) * t * t;
            dmu -= g * d;
            dvar += 0.5f * g * (u * u - 1.0f);
        }
    }
    dmu = lam_warp_sum(dmu);
    dvar =
        lam_warp_sum(dvar) + (float)(a.grad_scale * a.weight * 0.5) * (1.0f / prior - 1.0f / var);
    const float to_mu = (float)a.scale * dmu * mu * (1.0f - mu);
    const float to_var = var <= (float)a.var_min ? 0.0f : (float)a.scale * dvar * -expm1f(-var);
    T *dq = query_at<T>(a, a.dq, p);
    const T *pull_mu = pull_at<const T>(a, a.pull, p, 0);
    const T *pull_var = pull_at<const T>(a, a.pull, p, 1);
    for (int c = lane; c < a.K; c += LAM_WARP)
        dq[c] = lam_act<T>(lam_float(dq[c]) + to_mu * lam_float(pull_mu[c]) +
                           to_var * lam_float(pull_var[c]));
    if (lane == 0) {
        slopes[p.row] = make_float2(to_mu, to_var);
        *stat_at(a, a.kl, p) = (float)(a.weight * 0.5) * (var / prior - logf(var / prior) - 1.0f);
    }
}

/* dpull = sum over queries of slope q.  A block owns a head of a stream, a thread a column of every so many
 * queries; what the threads of a column found is added in order. */
template <typename T>
static __global__ void density_pull(lam_density a, const float2 *slopes)
{
    __shared__ float2 smem[PULL_ROWS][LAM_WARP];
    const size_t H = (size_t)a.H;
    query_index p = {true, 0, blockIdx.x / H, blockIdx.x % H, 0};
    const float2 *slope = slopes + (size_t)blockIdx.x * (size_t)a.queries;
    const int y = (int)threadIdx.y;
    for (int first = 0; first < a.K; first += LAM_WARP) {
        const int c = first + (int)threadIdx.x;
        float mu = 0.0f, var = 0.0f;
#pragma unroll 4
        for (int i = y; i < a.queries; i += PULL_ROWS) {
            p.i = (size_t)i;
            const float q = c < a.K ? lam_float(query_at<const T>(a, a.q, p)[c]) : 0.0f;
            mu += slope[i].x * q;
            var += slope[i].y * q;
        }
        smem[y][threadIdx.x] = make_float2(mu, var);
        __syncthreads();
        if (y == 0 && c < a.K) {
            for (int k = 1; k < PULL_ROWS; k++) {
                mu += smem[k][threadIdx.x].x;
                var += smem[k][threadIdx.x].y;
            }
            pull_at<T>(a, a.dpull, p, 0)[c] = lam_act<T>(mu);
            pull_at<T>(a, a.dpull, p, 1)[c] = lam_act<T>(var);
        }
        __syncthreads();
    }
}

size_t lam_cuda_density_scratch(const lam_work *w)
{
    return (size_t)w->B * (size_t)w->H * (size_t)w->queries * sizeof(float2);
}

static unsigned warps_of(const lam_density *a)
{
    const size_t rows = (size_t)a->B * (size_t)a->H * (size_t)a->queries;
    return (unsigned)((rows + WARPS - 1) / WARPS);
}

/* May eight elements of a row of r, of centre and of width be moved at once? */
static bool in_eights(const lam_density *a, const void *r)
{
    return a->ldr % 8 == 0 && ((uintptr_t)r | (uintptr_t)a->centre | (uintptr_t)a->width) % 16 == 0;
}

extern "C" void lam_cuda_density_fwd(lam_dev *dev, const lam_density *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    lam_cuda_launch(cuda, "density_fwd", cuda->bf16 ? density_fwd<lam_bf16> : density_fwd<float>,
                    {warps_of(a), dim3(LAM_WARP, WARPS)}, *a, in_eights(a, a->r));
}

template <typename T>
static void run_density_bwd(lam_cuda_dev *cuda, const lam_density *a)
{
    const size_t rows = (size_t)a->B * (size_t)a->H * (size_t)a->queries;
    float2 *slopes = (float2 *)lam_cuda_scratch(cuda, rows * sizeof(float2));
    lam_cuda_launch(cuda, "density_bwd", density_bwd<T>, {warps_of(a), dim3(LAM_WARP, WARPS)}, *a,
                    slopes, in_eights(a, a->dr));
    lam_cuda_launch(cuda, "density_bwd", density_pull<T>, {a->B * a->H, dim3(LAM_WARP, PULL_ROWS)},
                    *a, slopes);
}

extern "C" void lam_cuda_density_bwd(lam_dev *dev, const lam_density *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    if (cuda->bf16)
        run_density_bwd<lam_bf16>(cuda, a);
    else
        run_density_bwd<float>(cuda, a);
}

/* ---- sampling where attention was ------------------------------------------------------------ */

/* The mass below edge blockIdx.x of stream blockIdx.y, summed in double: differences count. */
static __global__ void sticky_edges(lam_sticky_samples a)
{
    __shared__ double smem[LAM_WARP];
    const int d = (int)blockIdx.x;
    const size_t b = blockIdx.y;
    const float at = d == 0 ? -1e-6f : d == a.bins ? 1.0f + 1e-6f : (float)((double)d / a.bins);
    const float *mu = (const float *)a.mu.p + b * a.mu.step;
    const float *var = (const float *)a.var.p + b * a.var.step;
    double sum = 0.0;
    for (int k = (int)threadIdx.x; k < a.rows * a.H; k += (int)blockDim.x)
        sum += 0.5f * erfcf(-0.707106781f * (at - mu[k]) / sqrtf(var[k]));
    sum = lam_block_sum(sum, smem);
    if (threadIdx.x == 0)
        ((float *)a.edge)[b * ((size_t)a.bins + 1) + (size_t)d] = (float)sum;
}

/* A warp places one sample and fills its row. */
template <typename T>
static __global__ void sticky_rows(lam_sticky_samples a)
{
    const size_t row = (size_t)blockIdx.x * WARPS + threadIdx.y;
    if (row >= (size_t)a.B * (size_t)a.samples)
        return;
    const size_t b = row / (size_t)a.samples;
    const float *edge = (const float *)a.edge + b * ((size_t)a.bins + 1);
    const float draw = ((const float *)a.draws)[row % (size_t)a.samples];
    const float mass = edge[0] + draw * (edge[a.bins] - edge[0]);
    int low = 0, high = a.bins - 1; /* the last bin whose left edge is at or below the mass */
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (edge[middle] <= mass)
            low = middle;
        else
            high = middle - 1;
    }
    const float bin = edge[low + 1] - edge[low]; /* 0: all of the mass is below, by rounding */
    const float into = a.within && bin > 0.0f ? (mass - edge[low]) / bin : 0.0f;
    const float where = ((float)low + into) / (float)a.bins;
    T *psi = (T *)a.psi + row * a.ld;
    for (int j = (int)threadIdx.x; j < a.basis; j += LAM_WARP) {
        const float w = ((const float *)a.width)[j];
        psi[j] = lam_act<T>(bump(where - ((const float *)a.centre)[j], 1.0f / w));
    }
}

extern "C" void lam_cuda_sticky(lam_dev *dev, const lam_sticky_samples *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    const dim3 edges((unsigned)a->bins + 1, (unsigned)a->B);
    const size_t rows = (size_t)a->B * (size_t)a->samples;
    const unsigned grid = (unsigned)((rows + WARPS - 1) / WARPS);
    lam_cuda_launch(cuda, "sticky", sticky_edges, {edges, THREADS}, *a);
    lam_cuda_launch(cuda, "sticky", cuda->bf16 ? sticky_rows<lam_bf16> : sticky_rows<float>,
                    {grid, dim3(LAM_WARP, WARPS)}, *a);
}
