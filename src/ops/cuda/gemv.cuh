/* gemv.cuh -- y = x W^T for a few rows x, warp by warp: what gemv.cu and token.cu launch.
 *
 * Beside reading W the time is that of a chain: the work in front ends, x is read, sums are added up over lanes, y is
 * written.  A warp owns a column of y, which is one row of W; its lanes read it in pieces of sixteen bytes.  W is no
 * kernel's result, so the first rows are asked for before the work in front has ended (`wait`), and the next ones
 * while these are multiplied.
 *
 * A LayerNorm in front of the product is done by every warp for itself, in registers: a lane needs just those columns of the
 * row that it multiplies.  That takes a microsecond less than a kernel of its own.  Warp 0 writes its results. */
#ifndef LAM_OPS_CUDA_GEMV_CUH
#define LAM_OPS_CUDA_GEMV_CUH

#include "ops/cuda/gemm_int.cuh"
#include "ops/cuda/ptx.cuh"

enum {
    GEMV_APART = 8 * LAM_WARP, /* columns from one piece of a lane to its next */
    GEMV_LONG = 9              /* pieces at a time of rows with more than 4: 2304 terms */
};

struct gemv_call {
    lam_gemm g;
    lam_norm norm;
    size_t x_row, y_row; /* of the norm */
};

/* The columns of a warp: first + u * apart + n * step for u < U. */
struct gemv_columns {
    int first, apart, step;
};

/* A lane's first column of a row. */
static __device__ __forceinline__ int gemv_lane(void)
{
    return 8 * ((int)threadIdx.x % LAM_WARP);
}

/* A lane's part of row `col` of W from column `from` on. */
template <typename T, int P>
static __device__ __forceinline__ void fetch_weights(lam_raw8<T> (&out)[P], const lam_gemm &a,
                                                     int col, int from)
{
    const T *w = (const T *)a.b + (size_t)col * a.ldb + from;
#pragma unroll
    for (int p = 0; p < P; p++)
        out[p] = lam_ask8(w + p * GEMV_APART, col < a.n && from + p * GEMV_APART < a.k);
}

/* The same of the rows of x; the last row stands for those that are not there. */
template <lam_use USE, typename T, int M, int P>
static __device__ __forceinline__ void fetch_rows(lam_raw8<T> (&out)[M][P], const lam_gemm &a,
                                                  int from)
{
#pragma unroll
    for (int m = 0; m < M; m++) {
        const T *x = (const T *)a.a + (size_t)min(m, a.m - 1) * a.lda + from;
#pragma unroll
        for (int p = 0; p < P; p++)
            out[m][p] = lam_ask8<USE>(x + p * GEMV_APART, from + p * GEMV_APART < a.k);
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
    const float *v = (const float *)vector + from;
    const bool even = (uintptr_t)vector % 16 == 0 && width % 8 == 0;
#pragma unroll
    for (int p = 0; p < P && even; p++)
        out[p] = lam_unpack8(
            lam_ask8<LAM_KEPT>(v + p * GEMV_APART, vector && from + p * GEMV_APART < width));
#pragma unroll
    for (int p = 0; p < P && !even; p++)
        out[p] = lam_load8_n(v + p * GEMV_APART, vector ? width - from - p * GEMV_APART : 0, false);
}

/* Row m of the norm as norm_fwd.cu computes it; `first`: this warp writes what others will read. */
template <lam_use USE, typename T, int P>
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
        terms[p] = lam_ask8<USE>(x + p * GEMV_APART, from + p * GEMV_APART < a.ld);
        more[p] = lam_ask8<USE>(add + p * GEMV_APART, a.add && from + p * GEMV_APART < a.ld);
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
        if (first && a.add && from + p * GEMV_APART < a.ld)
            lam_store8(sum + p * GEMV_APART, s[p]);
    }
    const float mean = lam_warp_sum(total) * share;
#pragma unroll
    for (int p = 0; p < P; p++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            s[p].v[i] -= mean;
            if (from + p * GEMV_APART + i < a.width)
                squares += s[p].v[i] * s[p].v[i];
        }
    const float rstd = 1.0f / sqrtf(lam_warp_sum(squares) * share + (float)a.eps);
#pragma unroll
    for (int p = 0; p < P; p++) {
#pragma unroll
        for (int i = 0; i < 8; i++) /* padding: gain and shift are 0 there */
            s[p].v[i] = s[p].v[i] * rstd * v.gain[p].v[i] + v.shift[p].v[i];
        lam_store8((T *)&out[p], s[p]);
        if (first && from + p * GEMV_APART < a.ld)
            lam_store8(y + p * GEMV_APART, s[p]);
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

/* Rows of at most P pieces a lane: x stays in registers.  U columns at a time.  `begin` waits and puts this lane's part of
 * the rows into x. */
template <typename T, typename C, int M, int P, int U, typename BEGIN>
static __device__ __forceinline__ void gemv_short(const lam_gemm &a, const gemv_columns &mine,
                                                  const BEGIN &begin)
{
    const int from = gemv_lane();
    lam_raw8<T> soon[U][P], x[M][P];
#pragma unroll
    for (int u = 0; u < U; u++)
        fetch_weights(soon[u], a, mine.first + u * mine.apart, from);
    begin(x);
    for (int col = mine.first; col < a.n; col += mine.step) { /* whole warps leave together */
        lam_raw8<T> now[U][P];
#pragma unroll
        for (int u = 0; u < U; u++) {
#pragma unroll
            for (int p = 0; p < P; p++)
                now[u][p] = soon[u][p];
            fetch_weights(soon[u], a, col + mine.step + u * mine.apart, from);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            float sum[M] = {};
            add_products(sum, now[u], x);
            write_column<C>(a, sum, col + u * mine.apart);
        }
    }
}

template <typename T, typename C, int M, int P, int U, lam_use USE, typename WAIT>
static __device__ __forceinline__ void gemv_plain(const gemv_call &n, const gemv_columns &mine,
                                                  const WAIT &wait)
{
    gemv_short<T, C, M, P, U>(n.g, mine, [&](lam_raw8<T>(&x)[M][P]) {
        wait();
        fetch_rows<USE>(x, n.g, gemv_lane());
    });
}

template <typename T, int M, int P, int U, lam_use USE, typename WAIT>
static __device__ __forceinline__ void gemv_normed(const gemv_call &n, const gemv_columns &mine,
                                                   const WAIT &wait)
{
    const int from = gemv_lane();
    vectors<P> v;
    fetch_vector(v.bias, n.norm.add ? n.norm.bias : NULL, from, n.norm.width);
    fetch_vector(v.gain, n.norm.gain, from, n.norm.width);
    fetch_vector(v.shift, n.norm.shift, from, n.norm.width);
    gemv_short<T, T, M, P, U>(n.g, mine, [&](lam_raw8<T>(&x)[M][P]) {
        wait();
#pragma unroll
        for (int m = 0; m < M; m++)
            normalise<USE>(x[m], n, v, min(m, n.g.m - 1), from, mine.first == 0 && m < n.g.m);
    });
}

/* Longer rows, some pieces at a time; a column at a time. */
template <typename T, typename C, int M, lam_use USE, typename WAIT>
static __device__ __forceinline__ void gemv_long(const gemv_call &n, const gemv_columns &mine,
                                                 const WAIT &wait)
{
    const lam_gemm &a = n.g;
    const int lane = gemv_lane();
    lam_raw8<T> soon[GEMV_LONG];
    fetch_weights(soon, a, mine.first, lane);
    wait();
    for (int col = mine.first; col < a.n; col += mine.step) {
        float sum[M] = {};
        for (int from = lane; from < a.k; from += GEMV_LONG * GEMV_APART) {
            const bool last = from - lane + GEMV_LONG * GEMV_APART >= a.k;
            lam_raw8<T> now[GEMV_LONG], x[M][GEMV_LONG];
#pragma unroll
            for (int p = 0; p < GEMV_LONG; p++)
                now[p] = soon[p];
            fetch_rows<USE>(x, a, from);
            fetch_weights(soon, a, last ? col + mine.step : col,
                          last ? lane : from + GEMV_LONG * GEMV_APART);
            add_products(sum, now, x);
        }
        write_column<C>(a, sum, col);
    }
}

#endif
