/* cuda/gemv.cu -- y = x W^T for a few rows x: decoding a few streams.
 *
 * Beside reading W the time is that of a chain: the kernel in front ends, x is read, sums are added up over lanes, y is
 * written.  A warp owns a column of y, which is one row of W; its lanes read it in pieces of sixteen bytes.  W is no
 * kernel's result, so the first row is asked for while the work in front still runs (lam_chain), and where there are
 * more columns than warps the next row while this one is multiplied.
 *
 * A LayerNorm in front of the product is done by every warp for itself, in registers: a lane needs just those columns of the
 * row that it multiplies.  That takes a microsecond less than a kernel of its own.  Warp 0 writes its results. */
#include "ops/cuda/gemm_int.cuh"
#include "ops/cuda/ptx.cuh"

enum {
    WARPS = 4,  /* a block of each multiprocessor for 512 columns */
    BLOCKS = 8, /* of a multiprocessor at a time */
    MOST_ROWS = 4,
    APART = 8 * LAM_WARP, /* columns from one piece of a lane to its next */
    LONG = 9,             /* pieces at a time of rows with more than 4: 2304 terms */
    MANY = 1 << 16        /* columns from which a warp takes two at a time */
};

struct gemv_call {
    lam_gemm g;
    lam_norm norm;
    size_t x_row, y_row; /* of the norm */
};

/* A lane's part of row `col` of W from column `from` on. */
template <typename T, int P>
static __device__ __forceinline__ void fetch_weights(lam_raw8<T> (&out)[P], const lam_gemm &a,
                                                     int col, int from)
{
    const T *w = (const T *)a.b + (size_t)col * a.ldb + from;
#pragma unroll
    for (int p = 0; p < P; p++)
        out[p] = lam_ask8(w + p * APART, col < a.n && from + p * APART < a.k);
}

/* The same of the rows of x; the last row stands for those that are not there. */
template <typename T, int M, int P>
static __device__ __forceinline__ void fetch_rows(lam_raw8<T> (&out)[M][P], const lam_gemm &a,
                                                  int from)
{
#pragma unroll
    for (int m = 0; m < M; m++) {
        const T *x = (const T *)a.a + (size_t)min(m, a.m - 1) * a.lda + from;
#pragma unroll
        for (int p = 0; p < P; p++)
            out[m][p] = lam_ask8(x + p * APART, from + p * APART < a.k);
    }
}

/* A lane's part of the norm's vectors: constants, like W. */
template <int P>
struct vectors {
    lam_f8 bias[P], gain[P], shift[P];
};

template <int P>
static __device__ __forceinline__ void fetch_vector(lam_f8 (&out)[P], const void *vector, int from,
                                                    int width)
{
#pragma unroll
    for (int p = 0; p < P; p++) {
        const int n = vector ? width - from - p * APART : 0;
        const float *v = (const float *)vector + from + p * APART;
        out[p] = lam_load8_n(v, n, (uintptr_t)v % 16 == 0);
    }
}

/* Row m of the norm as norm_fwd.cu computes it; `first`: this warp writes what others will read. */
template <typename T, int P>
static __device__ __forceinline__ void normalise(lam_raw8<T> (&out)[P], const gemv_call &n,
                                                 const vectors<P> &v, int m, int from, bool first)
{
    const lam_norm &a = n.norm;
    const T *x = (const T *)a.x.p + m * n.x_row + from;
    const T *add = (const T *)a.add + (size_t)m * a.ld + from;
    T *y = (T *)a.y.p + m * n.y_row + from, *sum = (T *)a.sum + (size_t)m * a.ld + from;
    const float share = 1.0f / (float)a.width;
    lam_raw8<T> terms[P], more[P];
    lam_f8 s[P];
    float total = 0.0f, squares = 0.0f;
#pragma unroll
    for (int p = 0; p < P; p++) {
        terms[p] = lam_ask8(x + p * APART, from + p * APART < a.ld);
        more[p] = lam_ask8(add + p * APART, a.add && from + p * APART < a.ld);
    }
#pragma unroll
    for (int p = 0; p < P; p++) {
        const lam_f8 added = lam_unpack8(more[p]);
        s[p] = lam_unpack8(terms[p]);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            s[p].v[i] += added.v[i] + v.bias[p].v[i];
            total += s[p].v[i];
        }
        if (first && a.add && from + p * APART < a.ld)
            lam_store8(sum + p * APART, s[p]);
    }
    const float mean = lam_warp_sum(total) * share;
#pragma unroll
    for (int p = 0; p < P; p++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            s[p].v[i] -= mean;
            if (from + p * APART + i < a.width)
                squares += s[p].v[i] * s[p].v[i];
        }
    const float rstd = 1.0f / sqrtf(lam_warp_sum(squares) * share + (float)a.eps);
#pragma unroll
    for (int p = 0; p < P; p++) {
#pragma unroll
        for (int i = 0; i < 8; i++) /* padding: gain and shift are 0 there */
            s[p].v[i] = s[p].v[i] * rstd * v.gain[p].v[i] + v.shift[p].v[i];
        lam_store8((T *)&out[p], s[p]);
        if (first && from + p * APART < a.ld)
            lam_store8(y + p * APART, s[p]);
    }
    if (first && from == 0) {
        ((float *)a.mean)[m] = mean;
        ((float *)a.rstd)[m] = rstd;
    }
}

template <typename T, int M, int P>
static __device__ __forceinline__ void add_products(float (&sum)[M], const lam_raw8<T> (&w)[P],
                                                    const lam_raw8<T> (&x)[M][P])
{
#pragma unroll
    for (int p = 0; p < P; p++) {
        const lam_f8 f = lam_unpack8(w[p]);
#pragma unroll
        for (int m = 0; m < M; m++) {
            const lam_f8 g = lam_unpack8(x[m][p]);
#pragma unroll
            for (int i = 0; i < 8; i++)
                sum[m] += f.v[i] * g.v[i];
        }
    }
}

/* Adds the lanes up and writes column `col`. */
template <typename C, int M>
static __device__ __forceinline__ void write_column(const lam_gemm &a, const float (&sum)[M],
                                                    int col)
{
    const float bias = a.bias && col < a.n ? ((const float *)a.bias)[col] : 0.0f;
#pragma unroll
    for (int m = 0; m < M; m++) {
        float y = lam_warp_sum(sum[m]);
        if (threadIdx.x % LAM_WARP != 0 || m >= a.m || col >= a.n)
            continue;
        C *to = (C *)a.c + (size_t)m * a.ldc + col;
        y += a.beta != 0.0 ? lam_float(*to) : 0.0f;
        y += bias;
        *to = lam_act<C>(a.relu && y < 0.0f ? 0.0f : y); /* a NaN stays one */
    }
}

/* Rows of at most P pieces a lane: x stays in registers.  U columns at a time. */
template <typename T, typename C, int M, int P, int U, bool NORM>
static __global__ void __launch_bounds__(WARPS *LAM_WARP) gemv(const __grid_constant__ gemv_call n)
{
    const lam_gemm &a = n.g;
    const int warp = (int)blockIdx.x * WARPS + (int)threadIdx.x / LAM_WARP;
    const int from = 8 * ((int)threadIdx.x % LAM_WARP), step = (int)gridDim.x * WARPS * U;
    vectors<P> v;
    lam_raw8<T> soon[U][P], x[M][P];
#pragma unroll
    for (int u = 0; u < U; u++)
        fetch_weights(soon[u], a, warp * U + u, from);
    if (NORM) {
        fetch_vector(v.bias, n.norm.add ? n.norm.bias : NULL, from, n.norm.width);
        fetch_vector(v.gain, n.norm.gain, from, n.norm.width);
        fetch_vector(v.shift, n.norm.shift, from, n.norm.width);
    }
    lam_chain();
    if (NORM) {
#pragma unroll
        for (int m = 0; m < M; m++)
            normalise(x[m], n, v, min(m, a.m - 1), from, warp == 0 && m < a.m);
    } else {
        fetch_rows(x, a, from);
    }
    for (int col = warp * U; col < a.n; col += step) { /* whole warps leave together */
        lam_raw8<T> now[U][P];
#pragma unroll
        for (int u = 0; u < U; u++) {
#pragma unroll
            for (int p = 0; p < P; p++)
                now[u][p] = soon[u][p];
            fetch_weights(soon[u], a, col + step + u, from);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            float sum[M] = {};
            add_products(sum, now[u], x);
            write_column<C>(a, sum, col + u);
        }
    }
}

/* Longer rows, some pieces at a time; a column a warp. */
template <typename T, typename C, int M>
static __global__ void __launch_bounds__(WARPS *LAM_WARP)
    gemv_long(const __grid_constant__ gemv_call n)
{
    const lam_gemm &a = n.g;
    const int col = (int)blockIdx.x * WARPS + (int)threadIdx.x / LAM_WARP;
    lam_raw8<T> soon[LONG];
    float sum[M] = {};
    int from = 8 * ((int)threadIdx.x % LAM_WARP);
    fetch_weights(soon, a, col, from);
    lam_chain();
    for (; from < a.k; from += LONG * APART) {
        lam_raw8<T> now[LONG], x[M][LONG];
#pragma unroll
        for (int p = 0; p < LONG; p++)
            now[p] = soon[p];
        fetch_rows(x, a, from);
        fetch_weights(soon, a, col, from + LONG * APART);
        add_products(sum, now, x);
    }
    write_column<C>(a, sum, col);
}

template <typename T, typename C, int M, int P, bool NORM>
static void launch_short(lam_cuda_dev *dev, const char *op, const gemv_call *n)
{
    const bool many = !NORM && M == 1 && P == 2 && n->g.n >= MANY;
    const int blocks = lam_cuda_ceil(n->g.n, (many ? 2 : 1) * WARPS), most = dev->sms * BLOCKS;
    const auto kernel = many ? gemv < T, C, M, P, !NORM && M == 1 && P == 2 ? 2 : 1,
               NORM >        : gemv<T, C, M, P, 1, NORM>;
    lam_cuda_launch(dev, op, kernel, {blocks < most ? blocks : most, WARPS * LAM_WARP, 0, true},
                    *n);
}

template <typename T, typename C, int M>
static void launch_rows(lam_cuda_dev *dev, const gemv_call *n)
{
    if (n->g.k <= 2 * APART)
        launch_short<T, C, M, 2, false>(dev, "gemm", n);
    else if (n->g.k <= 4 * APART)
        launch_short<T, C, M, 4, false>(dev, "gemm", n);
    else
        lam_cuda_launch(dev, "gemm", gemv_long<T, C, M>,
                        {lam_cuda_ceil(n->g.n, WARPS), WARPS * LAM_WARP, 0, true}, *n);
}

template <typename T, int M>
static void launch_normed(lam_cuda_dev *dev, const gemv_call *n)
{
    if (n->g.k <= 2 * APART)
        launch_short<T, T, M, 2, true>(dev, "norm_gemm", n);
    else
        launch_short<T, T, M, 4, true>(dev, "norm_gemm", n);
}

template <typename T, typename C>
static void launch(lam_cuda_dev *dev, const gemv_call *n)
{
    if (n->g.m == 1)
        launch_rows<T, C, 1>(dev, n);
    else if (n->g.m == 2)
        launch_rows<T, C, 2>(dev, n);
    else
        launch_rows<T, C, MOST_ROWS>(dev, n);
}

template <typename T>
static void launch_normed(lam_cuda_dev *dev, const gemv_call *n)
{
    if (n->g.m == 1)
        launch_normed<T, 1>(dev, n);
    else if (n->g.m == 2)
        launch_normed<T, 2>(dev, n);
    else
        launch_normed<T, MOST_ROWS>(dev, n);
}

static bool takes(const lam_gemm *a)
{
    return a->m <= MOST_ROWS && a->batch == 1 && a->ta == LAM_KEEP && a->tb == LAM_FLIP &&
           a->drop.p == 0.0 && !a->h && (a->k | a->lda | a->ldb) % 8 == 0 && a->k >= 8 &&
           ((uintptr_t)a->a | (uintptr_t)a->b) % 16 == 0;
}

bool lam_cuda_gemv(lam_cuda_dev *dev, const lam_gemm *a)
{
    const gemv_call n = {*a, {}, 0, 0};
    if (!takes(a))
        return false;
    if (!dev->bf16)
        launch<float, float>(dev, &n);
    else if (a->c_class == LAM_WIDE)
        launch<lam_bf16, float>(dev, &n);
    else
        launch<lam_bf16, lam_bf16>(dev, &n);
    return true;
}

/* Rows of equal distance, which are A, and a norm that nothing is left out of. */
static bool takes_norm(const lam_norm_gemm *a, size_t x_row, size_t y_row)
{
    const lam_norm *n = &a->norm;
    const lam_gemm *g = &a->gemm;
    return takes(g) && g->c_class == LAM_ACT && g->k <= 4 * APART && n->gain && n->drop.p == 0.0 &&
           n->ld == g->k && n->blocks * n->rows == g->m && (n->blocks == 1 || n->rows == 1) &&
           n->y.p == g->a && y_row == g->lda && (x_row | y_row | (size_t)n->ld) % 8 == 0 &&
           ((uintptr_t)n->x.p | (uintptr_t)n->add | (uintptr_t)n->sum) % 16 == 0;
}

bool lam_cuda_gemv_norm(lam_cuda_dev *dev, const lam_norm_gemm *a)
{
    const lam_norm *n = &a->norm;
    const gemv_call call = {a->gemm, *n, n->rows == 1 ? n->x.step : (size_t)n->ld,
                            n->rows == 1 ? n->y.step : (size_t)n->ld};
    if (!takes_norm(a, call.x_row, call.y_row))
        return false;
    if (dev->bf16)
        launch_normed<lam_bf16>(dev, &call);
    else
        launch_normed<float>(dev, &call);
    return true;
}
