/* cpu/gemm.c -- matrix products by oneDNN, or by any CBLAS where that is missing.
 *
 * The library multiplies; what ops/gemm.h fuses behind the product (bias, ReLU, dropout) is done here
 * in one pass over C.  Only call_library() knows which library there is.  Its own order of summation is
 * the one thing on this back-end that may depend on the number of threads.  A few rows, and whatever
 * is narrow, goes another way (gemv.h).
 *
 * Both libraries divide C among omp_get_max_threads() threads and rely on getting them.  Where the team
 * is smaller, oneDNN leaves the missing threads' parts of C unwritten and OpenBLAS waits for them.  So
 * multiply() tells them, for each call, exactly how many threads OpenMP will give. */
#include "ops/cpu/gemv.h"
#include "ops/cpu/philox.h"

#include <omp.h>
#include <stdio.h>

#if defined(LAM_HAVE_ONEDNN)
#include <oneapi/dnnl/dnnl.h>
#elif defined(LAM_HAVE_CBLAS)
#include <cblas.h>
#else
#error "ops/cpu needs LAM_HAVE_ONEDNN or LAM_HAVE_CBLAS"
#endif

/* One product of a batch: C = A B + beta C, with m, n, k >= 1. */
typedef struct product {
    const lam_gemm *shape;
    const float *a, *b;
    float *c, beta;
} product;

/* 0, or what went wrong: the libraries allocate buffers of their own. */
static int call_library(const product *p)
{
    const lam_gemm *g = p->shape;
#if defined(LAM_HAVE_ONEDNN)
    return dnnl_sgemm(g->ta == LAM_FLIP ? 'T' : 'N', g->tb == LAM_FLIP ? 'T' : 'N', g->m, g->n,
                      g->k, 1.0f, p->a, (dnnl_dim_t)g->lda, p->b, (dnnl_dim_t)g->ldb, p->beta, p->c,
                      (dnnl_dim_t)g->ldc) != dnnl_success;
#else
    cblas_sgemm(CblasRowMajor, g->ta == LAM_FLIP ? CblasTrans : CblasNoTrans,
                g->tb == LAM_FLIP ? CblasTrans : CblasNoTrans, g->m, g->n, g->k, 1.0f, p->a,
                (int)g->lda, p->b, (int)g->ldb, p->beta, p->c, (int)g->ldc);
    return 0;
#endif
}

/* The size of a team of `wanted` threads while dyn-var is off.  In a team, even of one thread, it is 1: the
 * libraries do not nest, and there the others of the team may have used up the limit.  Elsewhere nothing else
 * takes threads from this one, and OpenMP's rules give all of them up to its limit; a runtime that is not known
 * to keep the rules is asked. */
static int team_granted(const lam_cpu_dev *dev, int wanted)
{
    if (wanted == 1 || omp_get_level() > 0 || omp_get_max_active_levels() < 1)
        return 1;
    const int limit = omp_get_thread_limit();
    int n = wanted < limit ? wanted : limit;
    if (dev->ask_team) {
#pragma omp parallel num_threads(n)
#pragma omp single
        n = omp_get_num_threads();
    }
    return n;
}

/* C = A B + beta C by at most `wanted` threads; 0, or what went wrong.  The settings of OpenMP are the
 * host's: they are as before afterwards. */
static int multiply(const lam_cpu_dev *dev, const product *p, int wanted)
{
    const int threads = omp_get_max_threads(), dynamic = omp_get_dynamic();
    omp_set_dynamic(0);
    omp_set_num_threads(team_granted(dev, wanted)); /* how both libraries are told */
    const int wrong = call_library(p);
    omp_set_num_threads(threads);
    omp_set_dynamic(dynamic);
    return wrong;
}

/* An empty sum: C = beta C. */
static void multiply_nothing(const product *p)
{
    const lam_gemm *g = p->shape;
    for (int row = 0; p->beta == 0.0f && row < g->m; row++)
        memset(p->c + (size_t)row * g->ldc, 0, (size_t)g->n * sizeof *p->c);
}

/* n of sixteen columns of one row: drop(relu(c + bias)). */
LAM_INLINE void finish_strip(float *c, const float *bias, const lam_mask *mask, uint64_t bits,
                             int relu, size_t n)
{
    lam_f16v x = lam_load_n(c, n);
    if (bias)
        x = lam_add(x, lam_load_n(bias, n));
    if (relu)
        x = lam_max(lam_splat(0.0f), x); /* a NaN stays one */
    lam_store_n(c, lam_keep16(lam_mul(x, lam_splat(mask->scale)), bits), n);
}

static void finish_row(float *c, const lam_gemm *g, const lam_mask *mask, size_t row)
{
    const size_t width = (size_t)g->n;
    const uint64_t block = lam_mask_block(row, width);
    const float *bias = g->bias;
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + LAM_VEC <= width; i += LAM_VEC) {
        bits = lam_mask_next(mask, bits, block, i);
        finish_strip(c + i, bias ? bias + i : NULL, mask, bits, g->relu, LAM_VEC);
    }
    if (i < width) {
        bits = lam_mask_next(mask, bits, block, i);
        finish_strip(c + i, bias ? bias + i : NULL, mask, bits, g->relu, width - i);
    }
}

/* `above` counts the rows of earlier products. */
static void finish(const lam_cpu_dev *dev, float *c, const lam_gemm *g, size_t above)
{
    const lam_mask mask = lam_mask_make(&g->drop);
    if (!g->bias && !g->relu && !mask.on)
        return;
    const size_t m = (size_t)g->m;
#pragma omp parallel for num_threads(lam_cpu_team(dev, m *(size_t)g->n)) schedule(static)
    for (size_t row = 0; row < m; row++)
        finish_row(c + row * g->ldc, g, &mask, above + row);
}

/* A product this small, a row in decoding say, takes 10 us on one thread: not worth waking another. */
static int team_of(const lam_cpu_dev *dev, const lam_gemm *g)
{
    return (double)g->m * g->n * g->k < 5e5 ? 1 : dev->threads;
}

/* Many small products, Muon's say, are shared out whole: cut up, each would wait for all threads. */
static int share_out(const lam_cpu_dev *dev, const lam_gemm *g)
{
    return g->step_c != 0 && g->batch >= 2 * dev->threads && (double)g->m * g->n * g->k < 3e7;
}

/* Product number i of the batch; 0, or what went wrong. */
static int run(const lam_cpu_dev *dev, const lam_gemm *a, size_t i)
{
    const product p = {.shape = a,
                       .a = (const float *)a->a + i * a->step_a,
                       .b = (const float *)a->b + i * a->step_b,
                       .c = (float *)a->c + i * a->step_c,
                       .beta = a->step_c == 0 && i > 0 ? 1.0f : (float)a->beta};
    int wrong = 0;
    if (a->k == 0)
        multiply_nothing(&p);
    else
        wrong = multiply(dev, &p, team_of(dev, a));
    if (a->step_c != 0 || i + 1 == (size_t)a->batch)
        finish(dev, p.c, a, a->step_c == 0 ? 0 : i * (size_t)a->m);
    return wrong;
}

static void run_by_library(lam_cpu_dev *cpu, const lam_gemm *a)
{
    const size_t batch = (size_t)a->batch;
    int wrong = 0;
    if (!cpu->checked)
        lam_gemm_check(cpu);
    if (cpu->broken[0])
        return;
    if (share_out(cpu, a)) {
#pragma omp parallel for num_threads(cpu->threads) schedule(static) reduction(| : wrong)
        for (size_t i = 0; i < batch; i++)
            wrong |= run(cpu, a, i);
    } else {
        for (size_t i = 0; i < batch; i++)
            wrong |= run(cpu, a, i);
    }
    if (wrong)
        snprintf(cpu->broken, sizeof cpu->broken, "a GEMM failed (out of memory?)");
}

void lam_cpu_gemm(lam_dev *dev, const lam_gemm *a)
{
    assert(a->m >= 0 && a->n >= 0 && a->k >= 0 && a->batch >= 0);
    if (a->m == 0 || a->n == 0)
        return;
    if (a->k > 0 && lam_gemv_takes(a))
        lam_gemv(lam_cpu(dev), a);
    else if (a->k > 0 && (a->b_class != LAM_ACT || a->c_class == LAM_HALF))
        lam_gemm_narrow(dev, a);
    else
        run_by_library(lam_cpu(dev), a);
    if (a->h) {
        const lam_relu_bwd back = lam_gemm_back(a);
        lam_cpu_relu_bwd(dev, &back);
    }
}
