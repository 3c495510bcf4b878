/* gemm_narrow.c -- products of many rows where weights or result are narrow: prompts, evaluation, refreshes.
 *
 * The library multiplies floats.  Weights are widened panel by panel into scratch, each used by all rows of
 * all products before the next; a result in bf16 is made as floats, some rows at a time, and rounded. */
#include "ops/cpu/gemv.h"
#include "ops/cpu/narrow.h"

enum {
    PANEL = LAM_NARROW_ROW, /* floats of weights at a time: 1 MiB, the second cache */
    COLUMNS = 1024,         /* of a result in bf16 at a time */
    ROWS = 128              /* likewise */
};

size_t lam_gemm_narrow_scratch(void)
{
    return ((size_t)PANEL + (size_t)ROWS * COLUMNS) * sizeof(float);
}

/* Rows first .. first + n of B as stored, as floats side by side. */
static const float *widen(const lam_cpu_dev *dev, const lam_gemm *g, size_t first, size_t n,
                          size_t width)
{
    float *panel = lam_cpu_scratch(dev, lam_gemm_narrow_scratch());
    const size_t size = lam_narrow_size(g->b_class);
#pragma omp parallel for num_threads(lam_cpu_team(dev, n *width)) schedule(static)
    for (size_t i = 0; i < n; i++) {
        const char *from = (const char *)g->b + (first + i) * g->ldb * size;
        const float *scale = g->b_class == LAM_BYTE ? g->b_scale : NULL;
        lam_widen_row(panel + i * width, from, g->b_class, scale ? scale[first + i] : 1.0f, width);
    }
    return panel;
}

/* C's columns from `col` on in bf16, of a product `g` whose n and b are those columns. */
static void multiply_to_half(lam_dev *dev, const lam_gemm *g, size_t col)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t m = (size_t)g->m, n = (size_t)g->n;
    float *result =
        (float *)lam_cpu_scratch(cpu, lam_gemm_narrow_scratch()) + PANEL; /* [ROWS][n] */
    for (size_t i = 0; i < (size_t)g->batch; i++)
        for (size_t row = 0; row < m; row += ROWS) {
            const size_t rows = m - row < ROWS ? m - row : ROWS;
            const size_t down = g->ta == LAM_KEEP ? row * g->lda : row;
            lam_gemm part = *g;
            part.m = (int)rows;
            part.batch = 1;
            part.a = (const float *)g->a + i * g->step_a + down;
            part.c = result;
            part.c_class = LAM_ACT;
            part.ldc = n;
            lam_cpu_gemm(dev, &part);
            uint16_t *c = (uint16_t *)g->c + i * g->step_c + row * g->ldc + col;
            for (size_t r = 0; r < rows; r++)
                lam_narrow_row(c + r * g->ldc, result + r * n, n);
        }
}

/* B flipped: a panel is some of C's columns. */
static void by_columns(lam_dev *dev, const lam_gemm *g)
{
    const size_t k = (size_t)g->k, n = (size_t)g->n, room = PANEL / k;
    const size_t most = room < COLUMNS ? room : COLUMNS;
    for (size_t col = 0; col < n; col += most) {
        const size_t now = n - col < most ? n - col : most;
        lam_gemm part = *g;
        part.n = (int)now;
        part.b = (const float *)g->b + col * g->ldb;
        if (g->b_class != LAM_ACT) {
            part.b = widen(lam_cpu(dev), g, col, now, k);
            part.b_class = LAM_ACT;
            part.ldb = k;
        }
        part.bias = g->bias ? (const float *)g->bias + col : NULL;
        if (g->c_class == LAM_HALF) {
            multiply_to_half(dev, &part, col);
            continue;
        }
        part.c = (float *)g->c + col;
        lam_cpu_gemm(dev, &part);
    }
}

/* B kept: a panel is some terms of every sum. */
static void by_terms(lam_dev *dev, const lam_gemm *g)
{
    const size_t k = (size_t)g->k, n = (size_t)g->n, most = PANEL / n;
    for (size_t term = 0; term < k; term += most) {
        const size_t now = k - term < most ? k - term : most;
        const int last = term + now == k;
        lam_gemm part = *g;
        part.k = (int)now;
        part.a = (const float *)g->a + (g->ta == LAM_KEEP ? term : term * g->lda);
        part.b = widen(lam_cpu(dev), g, term, now, n);
        part.b_class = LAM_ACT;
        part.ldb = n;
        part.beta = term > 0 ? 1.0 : g->beta;
        part.bias = last ? g->bias : NULL;
        part.relu = last && g->relu;
        lam_cpu_gemm(dev, &part);
    }
}

void lam_gemm_narrow(lam_dev *dev, const lam_gemm *g)
{
    assert(g->drop.p == 0.0 && !g->h && (g->b_class == LAM_ACT || g->step_b == 0));
    assert(g->c_class != LAM_HALF || (g->tb == LAM_FLIP && !g->bias && !g->relu && g->beta == 0.0));
    if (g->tb == LAM_FLIP)
        by_columns(dev, g);
    else
        by_terms(dev, g);
}
