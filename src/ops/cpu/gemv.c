/* gemv.c -- products of a few rows with weights in float, bf16 or int8: decoding (ref/gemm.c specifies).
 *
 * y = x W^T with a handful of rows x: every weight is used once or a few times, so reading it sets the
 * speed.  A thread owns a stretch of rows of W, the same one in every call of a shape, so that what fits
 * into its cache stays there, and reads it from one end to the other: rows side by side, four say, halve
 * the bandwidth, because none of the short streams lasts until it is recognised.  A sum is taken in an order
 * that depends on nothing but k.  The lanes of sixteen sums are added up together: one by one that took longer than the
 * products of a row of 256 weights.  The scale of an int8 row multiplies its sum once. */
#include "ops/cpu/gemv.h"

#include "ops/cpu/attn_shuffle.h"
#include "ops/cpu/narrow.h"

enum {
    LANES = 4, /* vectors of a sum side by side */
#ifdef __AVX512F__
    SUMS = 16, /* vectors that stay in registers, beside their factors */
#else
    SUMS = 8 / LAM_REGS,
#endif
    STEP = LANES * LAM_VEC,
    WORTH_WAKING = 1 << 17 /* bytes of W; less is read in the time a thread takes to wake */
};

/* Sums that are finished leave the registers here; otherwise gcc keeps them and spills those of the next loop. */
#if defined(__x86_64__) && !defined(__AVX512F__)
#define SPILL()                                                                                    \
    __asm__ volatile("" ::                                                                         \
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                           "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
#else
#define SPILL() ((void)0)
#endif

/* What ops/gemm.h does behind the product, for n <= 16 columns of a row. */
LAM_INLINE void put(const lam_gemm *g, size_t product, size_t row, size_t col, lam_f16v sum,
                    size_t n)
{
    const size_t at = product * g->step_c + row * g->ldc + col;
    float *c = (float *)g->c + at;
    if (g->b_class == LAM_BYTE)
        sum = lam_mul(sum, lam_load_n((const float *)g->b_scale + col, n));
    if (g->c_class == LAM_HALF) {
        float x[LAM_VEC];
        lam_store(x, sum);
        lam_narrow_row((uint16_t *)g->c + at, x, n);
        return;
    }
    if (g->beta != 0.0)
        sum = lam_add(sum, lam_load_n(c, n));
    if (g->bias)
        sum = lam_add(sum, lam_load_n((const float *)g->bias + col, n));
    if (g->relu)
        sum = lam_max(lam_splat(0.0f), sum); /* a NaN stays one */
    lam_store_n(c, sum, n);
}

/* sum[i] += row i of x times the weights from column t on, n <= 16 of them. */
LAM_INLINE void add_vector(lam_f16v *sum, const float *x, size_t lda, const int X, const void *w,
                           size_t t, size_t n, const lam_class type)
{
    const lam_f16v y = lam_load_as_n(w, t, type, n);
    LAM_UNROLL
    for (int i = 0; i < X; i++)
        sum[i] = lam_fma(lam_load_n(x + (size_t)i * lda + t, n), y, sum[i]);
}

/* sum[u][i]: of row i in lane u of `n` from `lane` on, over the whole steps of k. */
LAM_INLINE void sum_lanes(lam_f16v sum[][4], const float *x, size_t lda, const int X, const void *w,
                          size_t k, const int lane, const int n, const lam_class type)
{
    lam_f16v own[LANES][4]; /* in registers while the loop runs */
    LAM_UNROLL
    for (int u = 0; u < n; u++) {
        LAM_UNROLL
        for (int i = 0; i < X; i++)
            own[u][i] = lam_splat(0.0f);
    }
    for (size_t t = LAM_VEC * (size_t)lane; t < k / STEP * STEP; t += STEP) {
        LAM_UNROLL
        for (int u = 0; u < n; u++)
            add_vector(own[u], x, lda, X, w, t + LAM_VEC * (size_t)u, LAM_VEC, type);
    }
    LAM_UNROLL
    for (int u = 0; u < n; u++) {
        LAM_UNROLL
        for (int i = 0; i < X; i++)
            sum[lane + u][i] = own[u][i];
    }
}

/* The products of X rows of x with a row of W: their lanes to `lanes`, those of the next row of x LAM_VEC vectors further
 * on.  `type` and X are known to the compiler.  As many lanes at a time as their sums have registers for: the row of
 * W is in the first cache when it is read again. */
LAM_INLINE void multiply(float *lanes, const float *x, size_t lda, const void *w, size_t k,
                         const int X, const lam_class type)
{
    const size_t rest = k % LAM_VEC;
    const int most = SUMS / X, n = most > LANES ? LANES : most > 0 ? most : 1;
    lam_f16v sum[LANES][4];
    LAM_UNROLL
    for (int lane = 0; lane < LANES; lane += n) {
        sum_lanes(sum, x, lda, X, w, k, lane, n, type);
        if (n < LANES)
            SPILL();
    }
    for (size_t t = k / STEP * STEP; t + LAM_VEC <= k; t += LAM_VEC)
        add_vector(sum[0], x, lda, X, w, t, LAM_VEC, type);
    if (rest > 0)
        add_vector(sum[0], x, lda, X, w, k - rest, rest, type);
    LAM_UNROLL
    for (int i = 0; i < X; i++)
        lam_store(lanes + i * LAM_VEC * LAM_VEC,
                  lam_add(lam_add(sum[0][i], sum[1][i]), lam_add(sum[2][i], sum[3][i])));
}

/* X rows from `row` on with n <= 16 rows from `col` on of W. */
LAM_INLINE void multiply_rows(float *lanes, const lam_gemm *g, size_t product, size_t row,
                              size_t col, size_t n, const int X, const lam_class type)
{
    const float *x = (const float *)g->a + product * g->step_a + row * g->lda;
    const char *w = g->b;
    for (size_t c = 0; c < n; c++)
        multiply(lanes + c * LAM_VEC, x, g->lda, w + (col + c) * g->ldb * lam_narrow_size(type),
                 (size_t)g->k, X, type);
    for (size_t i = 0; i < (size_t)X; i++)
        put(g, product, row + i, col, lam_sums16(lanes + i * LAM_VEC * LAM_VEC), n);
}

LAM_INLINE void multiply_all(const lam_gemm *g, size_t col, size_t n, const lam_class type)
{
    const size_t m = (size_t)g->m;
    float lanes[4 * LAM_VEC * LAM_VEC];
    if (n < LAM_VEC)
        memset(lanes, 0, sizeof lanes);
    for (size_t product = 0; product < (size_t)g->batch; product++) {
        size_t row = 0;
        for (; row + 4 <= m; row += 4)
            multiply_rows(lanes, g, product, row, col, n, 4, type);
        for (; row + 2 <= m; row += 2)
            multiply_rows(lanes, g, product, row, col, n, 2, type);
        if (row < m)
            multiply_rows(lanes, g, product, row, col, n, 1, type);
    }
}

int lam_gemv_takes(const lam_gemm *g)
{
    const int most = g->b_class == LAM_ACT ? 4 : 16;
    return g->ta == LAM_KEEP && g->tb == LAM_FLIP && g->m <= most && g->drop.p == 0.0 && !g->h &&
           g->step_b == 0 && (g->batch == 1 || g->step_c != 0);
}

void lam_gemv(const lam_cpu_dev *dev, const lam_gemm *g)
{
    const size_t n = (size_t)g->n, bytes = n * (size_t)g->k * lam_narrow_size(g->b_class);
    const int threads = bytes < WORTH_WAKING ? 1 : dev->threads;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t col = 0; col < n; col += LAM_VEC) {
        const size_t columns = n - col < LAM_VEC ? n - col : LAM_VEC;
        if (g->b_class == LAM_HALF)
            multiply_all(g, col, columns, LAM_HALF);
        else if (g->b_class == LAM_BYTE)
            multiply_all(g, col, columns, LAM_BYTE);
        else
            multiply_all(g, col, columns, LAM_ACT);
    }
}
