/* cpu/gemm.c -- matrix products by oneDNN, or by any CBLAS where that is missing.
 *
 * The library multiplies on one thread; the threads are ours.  Each has a block of C, or whole products of a batch.
 * oneDNN's own division lost a quarter of two threads' speed where k is large (it cuts k), starts a team for each
 * product of a sum, and left parts of C unwritten where OpenMP started fewer threads than it had said.
 * What ops/gemm.h fuses behind the product (bias, ReLU, dropout) is done here in one pass over C.  Only call_library()
 * knows which library there is.  A few rows, and whatever is narrow, goes another way (gemv.h). */
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

/* C = A B + beta C with the layout of `shape`, and m, n, k >= 1 of its own: a block of a product, or some terms. */
typedef struct product {
    const lam_gemm *shape;
    size_t m, n, k, lda, ldb;
    const float *a, *b;
    float *c, beta;
} product;

/* 0, or what went wrong: the libraries allocate buffers of their own. */
static int call_library(const product *p)
{
    const lam_gemm *g = p->shape;
#if defined(LAM_HAVE_ONEDNN)
    return dnnl_sgemm(g->ta == LAM_FLIP ? 'T' : 'N', g->tb == LAM_FLIP ? 'T' : 'N',
                      (dnnl_dim_t)p->m, (dnnl_dim_t)p->n, (dnnl_dim_t)p->k, 1.0f, p->a,
                      (dnnl_dim_t)p->lda, p->b, (dnnl_dim_t)p->ldb, p->beta, p->c,
                      (dnnl_dim_t)g->ldc) != dnnl_success;
#else
    cblas_sgemm(CblasRowMajor, g->ta == LAM_FLIP ? CblasTrans : CblasNoTrans,
                g->tb == LAM_FLIP ? CblasTrans : CblasNoTrans, (int)p->m, (int)p->n, (int)p->k,
                1.0f, p->a, (int)p->lda, p->b, (int)p->ldb, p->beta, p->c, (int)g->ldc);
    return 0;
#endif
}

/* ---- gradients of weights: A flipped, B kept ---- */

/* Where rows are a multiple of 4 KiB apart, the library's own copies of them fall on few cache sets: with AVX2 it is
 * down to half of its speed then.  So blocks of such an operand are copied to rows that are not, TERMS terms at a time:
 * oneDNN most often cuts k there itself, which keeps the bits. */
enum { TERMS = 768, BLOCK = 256, APART = BLOCK + LAM_VEC, COPY = TERMS * APART, FEW_SETS = 1024 };

#if defined(__AVX512F__)
enum { COPIES = 1 }; /* of A; copying B gains nothing here */
#else
enum { COPIES = 2 };
#endif

size_t lam_gemm_copies_bytes(int threads)
{
    return (size_t)threads * COPIES * COPY * sizeof(float);
}

static size_t smaller(size_t x, size_t y)
{
    return x < y ? x : y;
}

static const float *copy_block(float *to, const float *from, size_t ld, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(to + i * APART, from + i * ld, columns * sizeof *to);
    return to;
}

/* A product of few terms, with copies of both operands where `to` has room: `bad` tells which. */
static int multiply_copies(const product *p, float *const to[2], const int bad[2])
{
    const size_t rows = bad[0] ? BLOCK : p->m, columns = bad[1] ? BLOCK : p->n;
    int wrong = 0;
    for (size_t i = 0; i < p->m; i += rows) {
        product x = *p;
        x.m = smaller(p->m - i, rows);
        x.a = p->a + i;
        if (bad[0]) {
            x.a = copy_block(to[0], x.a, p->lda, p->k, x.m);
            x.lda = APART;
        }
        for (size_t j = 0; j < p->n; j += columns) {
            x.n = smaller(p->n - j, columns);
            x.b = p->b + j;
            x.ldb = p->ldb;
            if (bad[1]) {
                x.b = copy_block(to[1], x.b, p->ldb, p->k, x.n);
                x.ldb = APART;
            }
            x.c = p->c + i * p->shape->ldc + j;
            wrong |= call_library(&x);
        }
    }
    return wrong;
}

/* By the calling thread alone, one of a team of ours; 0, or what went wrong. */
static int multiply(const lam_cpu_dev *dev, const product *p)
{
    const int gradient = p->shape->ta == LAM_FLIP && dev->copies;
    const int bad[2] = {gradient && p->lda % FEW_SETS == 0, gradient && COPIES > 1 &&
                                                                p->shape->tb == LAM_KEEP &&
                                                                p->ldb % FEW_SETS == 0};
    float *const own =
        bad[0] || bad[1] ? dev->copies + (size_t)omp_get_thread_num() * COPIES * COPY : NULL;
    float *const to[2] = {own, own ? own + (COPIES - 1) * COPY : NULL};
    int wrong = 0;
    omp_set_num_threads(1); /* how both libraries are told; forgotten with the team */
    for (size_t t = 0; t < p->k && (bad[0] || bad[1]); t += TERMS) {
        product x = *p;
        x.k = smaller(p->k - t, TERMS);
        x.a = p->a + t * p->lda;
        x.b = p->b + (p->shape->tb == LAM_KEEP ? t * p->ldb : t);
        x.beta = t > 0 ? 1.0f : p->beta;
        wrong |= multiply_copies(&x, to, bad);
    }
    if (!bad[0] && !bad[1])
        wrong = call_library(p);
    return wrong;
}

/* An empty sum: C = beta C. */
static void multiply_nothing(const product *p)
{
    for (size_t row = 0; p->beta == 0.0f && row < p->m; row++)
        memset(p->c + row * p->shape->ldc, 0, p->n * sizeof *p->c);
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

/* ---- who multiplies what ---- */

/* The blocks of C, one for each thread: as near to squares as their number allows, since each thread makes copies of
 * the rows of A and the columns of B that it needs. */
typedef struct grid {
    int down, across;
} grid;

static grid grid_of(const lam_gemm *g, int threads)
{
    grid best = {threads, 1};
    for (int down = threads - 1; down > 0; down--) {
        const grid x = {down, threads / down};
        if (threads % down == 0 && (double)g->m / x.down + (double)g->n / x.across <
                                       (double)g->m / best.down + (double)g->n / best.across)
            best = x;
    }
    return best;
}

/* Where part i of `parts` begins: on a vector. */
static size_t cut(int n, int i, int parts)
{
    return i == parts ? (size_t)n : (size_t)n * (size_t)i / (size_t)parts / LAM_VEC * LAM_VEC;
}

/* Block `which` of product i of the batch; 0, or what went wrong. */
static int run(const lam_cpu_dev *dev, const lam_gemm *a, size_t i, grid blocks, int which)
{
    const int down = which / blocks.across, across = which % blocks.across;
    const size_t row = cut(a->m, down, blocks.down), col = cut(a->n, across, blocks.across);
    const product p = {
        .shape = a,
        .m = cut(a->m, down + 1, blocks.down) - row,
        .n = cut(a->n, across + 1, blocks.across) - col,
        .k = (size_t)a->k,
        .lda = a->lda,
        .ldb = a->ldb,
        .a = (const float *)a->a + i * a->step_a + (a->ta == LAM_KEEP ? row * a->lda : row),
        .b = (const float *)a->b + i * a->step_b + (a->tb == LAM_KEEP ? col : col * a->ldb),
        .c = (float *)a->c + i * a->step_c + row * a->ldc + col,
        .beta = a->step_c == 0 && i > 0 ? 1.0f : (float)a->beta};
    if (p.m == 0 || p.n == 0)
        return 0;
    if (p.k == 0)
        multiply_nothing(&p);
    else
        return multiply(dev, &p);
    return 0;
}

/* All products, each cut into blocks. */
static int run_blocks(const lam_cpu_dev *cpu, const lam_gemm *a, int threads)
{
    const size_t batch = (size_t)a->batch, last = batch - 1;
    int wrong = 0;
#pragma omp parallel num_threads(threads) reduction(| : wrong)
    {
        const grid blocks = grid_of(a, omp_get_num_threads());
        for (size_t i = 0; i < batch; i++)
            wrong |= run(cpu, a, i, blocks, omp_get_thread_num());
    }
    for (size_t i = a->step_c == 0 ? last : 0; i < batch; i++)
        finish(cpu, (float *)a->c + i * a->step_c, a, a->step_c == 0 ? 0 : i * (size_t)a->m);
    return wrong;
}

/* Many small products, Muon's say, whole. */
static int run_whole(const lam_cpu_dev *cpu, const lam_gemm *a, int threads)
{
    const size_t batch = (size_t)a->batch;
    int wrong = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(| : wrong)
    for (size_t i = 0; i < batch; i++) {
        wrong |= run(cpu, a, i, (grid){1, 1}, 0);
        finish(cpu, (float *)a->c + i * a->step_c, a, i * (size_t)a->m);
    }
    return wrong;
}

/* Inside a team of the host GEMMs run on one thread.  OpenMP's settings are the host's; of these, only that which would
 * let the number of threads change from call to call is put aside. */
static void run_by_library(lam_cpu_dev *cpu, const lam_gemm *a)
{
    const double one = (double)a->m * a->n * a->k;
    const int most = omp_get_level() > 0 ? 1 : cpu->threads, dynamic = omp_get_dynamic();
    const int team = omp_get_max_threads();
    int wrong;
    if (!cpu->checked)
        lam_gemm_check(cpu);
    if (cpu->broken[0] || a->batch == 0)
        return;
    omp_set_dynamic(0);
    if (a->step_c != 0 && a->batch >= 2 * cpu->threads && one < 3e7)
        wrong = run_whole(cpu, a, most);
    else /* 5e5 MACs take 10 us on one thread: not worth waking another */
        wrong = run_blocks(cpu, a, one * a->batch < 5e5 ? 1 : most);
    omp_set_dynamic(dynamic);
    if (omp_get_max_threads() != team) /* LLVM does not forget multiply's 1 within `omp teams` */
        omp_set_num_threads(team);
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
