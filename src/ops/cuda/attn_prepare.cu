/* cuda/attn_prepare.cu -- the numbers per row that the attention's backward needs before it starts,
 * and the last sums of dr, du and dv after it.
 *
 *   delta  = do . o - dlse          so that dS = P (dP - delta)
 *   lse2   = log2(e) lse            so that P = 2^(S log2(e) - lse2)
 *   k_bias = u . k_j, r_bias = v . r + rbias      S = scale (q . k + k_bias + q . r + r_bias)
 * The last line lets kernels that stream over queries use q as it is: neither q + u nor q + v is
 * rounded to bf16, and one tile of q serves both products.  A query that sees no key gets
 * lse2 = +infinity: its P is 0 wherever it is recomputed; so do the rows that fill up the last tile.
 *
 * The Hopper kernels take qu = q + u and qv = q + v instead, rounded to bf16 as forward does it.
 *
 * Bandwidth-bound: LANES lanes share a row of one head, neighbours in memory are neighbours here. */
#include "ops/cuda/attn_int.cuh"
#include "ops/cuda/ptx.cuh"

#include <math_constants.h>

enum {
    THREADS = 256,
    LANES = 8,
    ROWS = 4 /* queries of a thread, which share u and v; q_pad is a multiple of it */
};

/* The dot product of a row and a vector; ok = 0: of nothing. */
template <typename T, typename U>
static __device__ __forceinline__ float dot(const attn_call &c, const T *x, const U *y, bool ok)
{
    const int K = c.a.K;
    float sum = 0.0f;
    for (int n = 8 * ((int)threadIdx.x % LANES); ok && n < K; n += 8 * LANES) {
        const lam_f8 f = lam_load8_n(x + n, K - n, c.aligned);
        const lam_f8 g = lam_load8_n(y + n, K - n, false);
#pragma unroll
        for (int m = 0; m < 8; m++)
            sum += f.v[m] * g.v[m];
    }
    return lam_lanes_sum<LANES>(sum);
}

/* Eight columns of ROWS rows, from row i0 on, as they lie in memory: all are asked for before one is used.  WHOLE: rows of heads
 * begin on 16-byte borders and K is a multiple of 8. */
template <typename T, bool WHOLE>
struct columns {
    lam_raw8<T> row[ROWS];

    __device__ __forceinline__ columns(const attn_call &c, lam_view view, size_t ld, size_t col,
                                       int i0, int n)
    {
        const lam_attn &a = c.a;
#pragma unroll
        for (int m = 0; m < ROWS; m++) {
            const T *p = attn_row<const T>(view, ld, (int)blockIdx.z, i0 + m, col) + n;
            const int left = i0 + m < a.queries ? a.K - n : 0;
            if (WHOLE)
                row[m] = lam_ask8(p, left > 0);
            else
                lam_store8((T *)&row[m], lam_load8_n(p, left, false));
        }
    }
};

/* qu = q + u and qv = q + v of eight columns of ROWS rows, rounded to bf16; zeros behind the last query. */
static __device__ __forceinline__ void put_biased(const attn_call &c,
                                                  const columns<lam_bf16, true> &q, size_t line,
                                                  size_t col, int i0, int n)
{
    const lam_attn &a = c.a;
    lam_f8 u = {}, v = {};
    if (a.u)
        u = lam_load8_n((const float *)a.u + col + n, 8, false);
    if (a.v)
        v = lam_load8_n((const float *)a.v + col + n, 8, false);
#pragma unroll
    for (int m = 0; m < ROWS; m++) {
        const size_t at = (line + i0 + m) * a.K + n;
        const lam_f8 row = lam_unpack8(q.row[m]);
        lam_f8 x = {}, y = {};
#pragma unroll
        for (int e = 0; e < 8 && i0 + m < a.queries; e++) {
            x.v[e] = row.v[e] + u.v[e];
            y.v[e] = row.v[e] + v.v[e];
        }
        lam_store8(c.qu + at, x);
        lam_store8(c.qv + at, y);
    }
}

/* ROWS queries of stream blockIdx.z. */
template <typename T, bool WHOLE>
static __device__ void query_rows(const attn_call &c, int item, bool lead)
{
    const lam_attn &a = c.a;
    const int h = item % a.H, i0 = item / a.H * ROWS, b = (int)blockIdx.z;
    const size_t col = (size_t)h * a.K, line = ((size_t)b * a.H + h) * c.q_pad;
    const bool biased = WHOLE && sizeof(T) == sizeof(lam_bf16) && c.qu && i0 < c.q_pad;
    float sum[ROWS] = {};
    for (int n = 8 * ((int)threadIdx.x % LANES); n < a.K; n += 8 * LANES) {
        const columns<T, WHOLE> o(c, a.o, a.ldo, col, i0, n), d_o(c, a.d_o, a.ldo, col, i0, n);
#pragma unroll
        for (int m = 0; m < ROWS; m++) {
            const lam_f8 x = lam_unpack8(o.row[m]), y = lam_unpack8(d_o.row[m]);
#pragma unroll
            for (int e = 0; e < 8; e++)
                sum[m] += x.v[e] * y.v[e];
        }
        if (biased)
            put_biased(c, columns<lam_bf16, true>(c, a.q, a.ldq, col, i0, n), line, col, i0, n);
    }
#pragma unroll
    for (int m = 0; m < ROWS; m++)
        sum[m] = lam_lanes_sum<LANES>(sum[m]);
    if (i0 >= c.q_pad)
        return;
#pragma unroll
    for (int m = 0; lead && m < ROWS; m++) {
        const int i = i0 + m;
        float delta = 0.0f, lse2 = CUDART_INF_F;
        if (i < a.queries) {
            const size_t stat = (size_t)i * a.H + h;
            const float lse = ((const float *)a.lse.p)[(size_t)b * a.lse.step + stat];
            delta = sum[m];
            if (a.dlse.p)
                delta -= ((const float *)a.dlse.p)[(size_t)b * a.dlse.step + stat];
            if (lse > -CUDART_INF_F)
                lse2 = lse * CUDART_L2E_F;
        }
        c.delta[line + i] = delta;
        if (c.lse2)
            c.lse2[line + i] = lse2;
    }
}

template <typename T>
static __device__ void key_row(const attn_call &c, int item, bool lead)
{
    const lam_attn &a = c.a;
    const int h = item % a.H, j = item / a.H, b = (int)blockIdx.z;
    const size_t col = (size_t)h * a.K;
    const float sum = dot(c, attn_row<const T>(a.k, a.ldk, b, j, col), (const float *)a.u + col,
                          j < a.keys && a.u);
    if (lead && j < a.keys)
        c.k_bias[((size_t)b * a.H + h) * a.keys + j] = sum;
}

template <typename T>
static __device__ void distance_row(const attn_call &c, int item, bool lead)
{
    const lam_attn &a = c.a;
    const int h = item % a.H, row = item / a.H;
    const size_t col = (size_t)h * a.K;
    const bool ok = row < a.r_rows && blockIdx.z == 0;
    const float sum = dot(c, (const T *)a.r + (size_t)row * a.ldr + col, (const float *)a.v + col,
                          ok && a.v && a.r);
    if (lead && ok)
        c.r_bias[(size_t)h * a.r_rows + row] =
            sum + (a.rbias ? ((const float *)a.rbias)[(size_t)row * a.H + h] : 0.0f);
}

/* y chooses the kind of row. */
template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS, 2) prepare(const attn_call c)
{
    const int item = (int)(blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES);
    const bool lead = threadIdx.x % LANES == 0;
    if (blockIdx.y == 0)
        query_rows<T, WHOLE>(c, item, lead);
    else if (blockIdx.y == 1)
        key_row<T>(c, item, lead);
    else
        distance_row<T>(c, item, lead);
}

void lam_cuda_attn_prepare(lam_cuda_dev *dev, const attn_call *c)
{
    const lam_attn *a = &c->a;
    int rows = c->q_pad / ROWS;
    unsigned kinds = 1;
    if (c->k_bias) {
        rows = a->keys > rows ? a->keys : rows;
        rows = a->r && a->r_rows > rows ? a->r_rows : rows;
        kinds = a->r ? 3 : 2;
    }
    const dim3 grid((unsigned)lam_cuda_ceil(rows * a->H, THREADS / LANES), kinds, (unsigned)a->B);
    const bool whole = c->aligned && a->K % 8 == 0;
    const auto kernel = dev->bf16 ? whole ? prepare<lam_bf16, true> : prepare<lam_bf16, false>
                        : whole ? prepare<float, true>
                                  : prepare<float, false>;
    assert(!c->qu || (dev->bf16 && whole));
    lam_cuda_launch(dev, "attn_bwd", kernel, {grid, THREADS}, *c);
}

/* A thread for each eight columns of each row; rows in x, where a grid has no limit they could reach. */
static dim3 by_rows(int rows, int width, int threads)
{
    return dim3((unsigned)rows, (unsigned)lam_cuda_ceil(width, 8 * threads));
}

/* rp[row] = r[r_rows - 1 - row], sixteen bytes a thread. */
static __global__ void reverse(lam_bf16 *rp, const lam_bf16 *r, size_t ldr, int rows, int width)
{
    const int x = 8 * (int)(blockIdx.y * blockDim.x + threadIdx.x), row = (int)blockIdx.x;
    if (x < width)
        *(uint4 *)(rp + (size_t)row * width + x) =
            *(const uint4 *)(r + (size_t)(rows - 1 - row) * ldr + x);
}

void lam_cuda_attn_reverse(lam_cuda_dev *dev, const attn_call *c)
{
    const lam_attn *a = &c->a;
    const int width = a->H * a->K, threads = 64;
    if (c->rp)
        lam_cuda_launch(dev, "attention", reverse, {by_rows(a->r_rows, width, threads), threads},
                        c->rp, (const lam_bf16 *)a->r, a->ldr, a->r_rows, width);
}

void lam_cuda_attn_fold(lam_cuda_dev *dev, float *out, const float *part, int parts, int width)
{
    const lam_cuda_sums sums = {{out, NULL, NULL}, part, (size_t)width, 0, parts, width};
    lam_cuda_fold(dev, "attn_bwd", &sums);
}

/* dr = the sum of the groups, rounded once. */
static __global__ void sum_groups(lam_bf16 *dr, size_t ldr, const float *part, int groups, int rows,
                                  int width)
{
    const int x = 8 * (int)(blockIdx.y * blockDim.x + threadIdx.x), row = (int)blockIdx.x;
    if (x >= width)
        return;
    lam_f8 sum = {};
#pragma unroll 4
    for (int g = 0; g < groups; g++) {
        const lam_f8 more = lam_load8(part + ((size_t)g * rows + row) * width + x);
#pragma unroll
        for (int y = 0; y < 8; y++)
            sum.v[y] += more.v[y];
    }
    lam_store8(dr + (size_t)row * ldr + x, sum);
}

void lam_cuda_attn_sum_groups(lam_cuda_dev *dev, const attn_call *c)
{
    const lam_attn *a = &c->a;
    const int width = a->H * a->K, threads = 64;
    lam_cuda_launch(dev, "attn_bwd", sum_groups, {by_rows(a->r_rows, width, threads), threads},
                    (lam_bf16 *)a->dr, a->ldr, (const float *)c->dr_part, c->groups, a->r_rows,
                    width);
}
