/* gemv.c -- products of a few rows with weights in float, bf16 or int8: decoding (ref/gemm.c specifies).
 *
 * y = x W^T with a handful of rows x: every weight is used once or a few times, so reading it sets the
 * speed.  A thread owns a stretch of rows of W, the same one in every call of a shape, so that what fits
 * into its cache stays there.  Four rows of W are read together; a sum is taken in an order that depends on
 * nothing but k.  The scale of an int8 row multiplies its sum once. */
#include "ops/cpu/gemv.h"

#include "ops/cpu/narrow.h"

enum {
    AT_ONCE = 4,           /* rows of W */
    WORTH_WAKING = 1 << 17 /* bytes of W; less is read in the time a thread takes to wake */
};

/* `count` <= AT_ONCE rows of W from `first` on; those that are missing repeat the last one. */
typedef struct strip {
    const char *row[AT_ONCE];
    size_t first, count;
} strip;

static strip strip_at(const lam_gemm *g, size_t first)
{
    const size_t n = (size_t)g->n, size = lam_narrow_size(g->b_class);
    strip s = {.first = first, .count = n - first < AT_ONCE ? n - first : AT_ONCE};
    for (size_t i = 0; i < AT_ONCE; i++) {
        const size_t row = i < s.count ? first + i : first + s.count - 1;
        s.row[i] = (const char *)g->b + row * g->ldb * size;
    }
    return s;
}

/* What ops/gemm.h does behind the product. */
static void put(const lam_gemm *g, size_t product, size_t row, size_t col, float sum)
{
    const size_t at = product * g->step_c + row * g->ldc + col;
    if (g->b_class == LAM_BYTE)
        sum *= ((const float *)g->b_scale)[col];
    if (g->c_class == LAM_HALF) {
        ((uint16_t *)g->c)[at] = lam_to_half(sum);
        return;
    }
    float *c = (float *)g->c + at;
    sum = g->beta == 0.0 ? sum : sum + *c;
    if (g->bias)
        sum += ((const float *)g->bias)[col];
    *c = g->relu && sum < 0.0f ? 0.0f : sum; /* a NaN stays one */
}

/* The products of X rows from `row` on with a strip, `type` and X being known to the compiler. */
LAM_INLINE void multiply(const lam_gemm *g, const strip *s, size_t product, size_t row, const int X,
                         const lam_class type)
{
    const size_t k = (size_t)g->k;
    const float *x = (const float *)g->a + product * g->step_a + row * g->lda;
    lam_f16v sum[4][AT_ONCE];
    LAM_UNROLL
    for (int i = 0; i < X * AT_ONCE; i++)
        sum[i / AT_ONCE][i % AT_ONCE] = lam_splat(0.0f);
    for (size_t t = 0; t + LAM_VEC <= k; t += LAM_VEC) {
        LAM_UNROLL
        for (int j = 0; j < AT_ONCE; j++) {
            const lam_f16v w = lam_load_as(s->row[j], t, type);
            LAM_UNROLL
            for (int i = 0; i < X; i++)
                sum[i][j] = lam_fma(lam_load(x + (size_t)i * g->lda + t), w, sum[i][j]);
        }
    }
    const size_t rest = k % LAM_VEC, t = k - rest;
    for (int j = 0; rest > 0 && j < AT_ONCE; j++) {
        const lam_f16v w = lam_load_as_n(s->row[j], t, type, rest);
        for (int i = 0; i < X; i++)
            sum[i][j] = lam_fma(lam_load_n(x + (size_t)i * g->lda + t, rest), w, sum[i][j]);
    }
    for (int i = 0; i < X; i++)
        for (size_t j = 0; j < s->count; j++)
            put(g, product, row + (size_t)i, s->first + j, lam_sum16(sum[i][j]));
}

LAM_INLINE void multiply_all(const lam_gemm *g, const strip *s, const lam_class type)
{
    const size_t m = (size_t)g->m;
    for (size_t product = 0; product < (size_t)g->batch; product++) {
        size_t row = 0;
        for (; row + 4 <= m; row += 4)
            multiply(g, s, product, row, 4, type);
        for (; row + 2 <= m; row += 2)
            multiply(g, s, product, row, 2, type);
        if (row < m)
            multiply(g, s, product, row, 1, type);
    }
}

int lam_gemv_takes(const lam_gemm *g)
{
    const int most = g->b_class == LAM_ACT ? 4 : 16;
    return g->ta == LAM_KEEP && g->tb == LAM_FLIP && g->m <= most && g->drop.p == 0.0 &&
           g->step_b == 0 && (g->batch == 1 || g->step_c != 0);
}

void lam_gemv(const lam_cpu_dev *dev, const lam_gemm *g)
{
    const size_t strips = ((size_t)g->n + AT_ONCE - 1) / AT_ONCE;
    const size_t bytes = (size_t)g->n * (size_t)g->k * lam_narrow_size(g->b_class);
    const int threads = bytes < WORTH_WAKING ? 1 : dev->threads;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < strips; i++) {
        const strip s = strip_at(g, i * AT_ONCE);
        if (g->b_class == LAM_HALF)
            multiply_all(g, &s, LAM_HALF);
        else if (g->b_class == LAM_BYTE)
            multiply_all(g, &s, LAM_BYTE);
        else
            multiply_all(g, &s, LAM_ACT);
    }
}
