/* cpu/gemm.c -- matrix products by our own tiles, by oneDNN, or by any CBLAS where that is missing.
 *
 * The library multiplies on one thread; the threads are ours.  Each has a block of C, or whole products of a batch, and does
 * with it what ops/gemm.h fuses behind the product (gemm_finish.c).
 * oneDNN's own division lost a quarter of two threads' speed where k is large (it cuts k), starts a team for each
 * product of a sum, and left parts of C unwritten where OpenMP started fewer threads than it had said.
 * Only call_library() knows which library there is.  A few rows, and whatever is narrow, goes another way (gemv.h). */
#include "ops/cpu/gemm_int.h"
#include "ops/cpu/gemv.h"

#include <omp.h>
#include <stdio.h>

#if defined(LAM_HAVE_ONEDNN)
#include <oneapi/dnnl/dnnl.h>
#elif defined(LAM_HAVE_CBLAS)
#include <cblas.h>
#else
#error "ops/cpu needs LAM_HAVE_ONEDNN or LAM_HAVE_CBLAS"
#endif

/* 0, or what went wrong: the libraries allocate buffers of their own. */
static int call_library(const lam_product *p)
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

/* Each thread's, for such copies or for those of our own tiles. */
enum { ROOM = COPIES * COPY > LAM_GEMM_ROOM ? COPIES *COPY : LAM_GEMM_ROOM };

size_t lam_gemm_copies_bytes(int threads)
{
    return (size_t)threads * ROOM * sizeof(float);
}

static float *own_room(const lam_cpu_dev *dev)
{
    return dev->copies + (size_t)omp_get_thread_num() * ROOM;
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
static int multiply_copies(const lam_product *p, float *const to[2], const int bad[2])
{
    const size_t rows = bad[0] ? BLOCK : p->m, columns = bad[1] ? BLOCK : p->n;
    int wrong = 0;
    for (size_t i = 0; i < p->m; i += rows) {
        lam_product x = *p;
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
static int multiply(const lam_cpu_dev *dev, const lam_product *p)
{
    const int gradient = p->shape->ta == LAM_FLIP && dev->copies;
    const int bad[2] = {gradient && p->lda % FEW_SETS == 0, gradient && COPIES > 1 &&
                                                                p->shape->tb == LAM_KEEP &&
                                                                p->ldb % FEW_SETS == 0};
    float *const own = bad[0] || bad[1] ? own_room(dev) : NULL;
    float *const to[2] = {own, own ? own + (COPIES - 1) * COPY : NULL};
    int wrong = 0;
    omp_set_num_threads(1); /* how both libraries are told; forgotten with the team */
    for (size_t t = 0; t < p->k && (bad[0] || bad[1]); t += TERMS) {
        lam_product x = *p;
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
static void multiply_nothing(const lam_product *p)
{
    for (size_t row = 0; p->beta == 0.0f && row < p->m; row++)
        memset(p->c + row * p->shape->ldc, 0, p->n * sizeof *p->c);
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

/* Where part i of `parts` begins: on a multiple of `unit`. */
static size_t cut(int n, int i, int parts, size_t unit)
{
    return i == parts ? (size_t)n : (size_t)n * (size_t)i / (size_t)parts / unit * unit;
}

/* A GEMM on its way. */
typedef struct job {
    lam_cpu_dev *dev;
    const lam_gemm *g;
    lam_finish finish;
    int tiles; /* by our own */
} job;

/* Block `which` of product i of the batch. */
static lam_product block_of(const job *x, size_t i, grid blocks, int which)
{
    const lam_gemm *a = x->g;
    const size_t unit = a->h ? x->finish.chunks.size : LAM_VEC; /* a chunk belongs to one thread */
    const int down = which / blocks.across, across = which % blocks.across;
    const size_t row = cut(a->m, down, blocks.down, unit);
    const size_t col = cut(a->n, across, blocks.across, LAM_VEC);
    return (lam_product){
        .shape = a,
        .which = i,
        .row = row,
        .col = col,
        .m = cut(a->m, down + 1, blocks.down, unit) - row,
        .n = cut(a->n, across + 1, blocks.across, LAM_VEC) - col,
        .k = (size_t)a->k,
        .lda = a->lda,
        .ldb = a->ldb,
        .a = (const float *)a->a + i * a->step_a + (a->ta == LAM_KEEP ? row * a->lda : row),
        .b = (const float *)a->b + i * a->step_b + (a->tb == LAM_KEEP ? col : col * a->ldb),
        .c = (float *)a->c + i * a->step_c + row * a->ldc + col,
        .beta = a->step_c == 0 && i > 0 ? 1.0f : (float)a->beta};
}

/* One block, finished if `last` says that nothing is added to it later; 0, or what went wrong. */
static int run(const job *x, const lam_product *p, int last)
{
    int wrong = 0;
    if (p->m == 0 || p->n == 0)
        return 0;
    if (p->k == 0)
        multiply_nothing(p);
    else
        wrong = multiply(x->dev, p);
    if (last && x->finish.some)
        lam_finish_rows(&x->finish, p, 0, p->m, 0, p->n);
    return wrong;
}

/* The same block of products i to end - 1, by the calling thread; 0, or what went wrong. */
static int run_products(const job *x, size_t i, size_t end, grid blocks, int which)
{
    static const lam_finish nothing;
    const lam_gemm *g = x->g;
    const int alike = g->step_b == 0 && g->step_c != 0; /* B is copied once for all of them */
    int wrong = 0;
    for (size_t step = 1; i < end; i += step) {
        const lam_product p = block_of(x, i, blocks, which);
        const int last = g->step_c != 0 || i + 1 == (size_t)g->batch;
        step = x->tiles && alike ? end - i : 1;
        if (!x->tiles)
            wrong |= run(x, &p, last);
        else if (p.m > 0 && p.n > 0)
            lam_gemm_tiles(&p, step, own_room(x->dev), last ? &x->finish : &nothing);
    }
    return wrong;
}

/* All products, each cut into blocks. */
static int run_blocks(const job *x, int threads)
{
    int wrong = 0;
#pragma omp parallel num_threads(threads) reduction(| : wrong)
    wrong |= run_products(x, 0, (size_t)x->g->batch, grid_of(x->g, omp_get_num_threads()),
                          omp_get_thread_num());
    return wrong;
}

/* Many small products, Muon's say, whole. */
static int run_whole(const job *x, int threads)
{
    const size_t batch = (size_t)x->g->batch;
    int wrong = 0;
#pragma omp parallel num_threads(threads) reduction(| : wrong)
    {
        const size_t all = (size_t)omp_get_num_threads(), own = (size_t)omp_get_thread_num();
        wrong |= run_products(x, batch * own / all, batch * (own + 1) / all, (grid){1, 1}, 0);
    }
    return wrong;
}

/* Inside a team of the host GEMMs run on one thread.  OpenMP's settings are the host's; of these, only that which would
 * let the number of threads change from call to call is put aside. */
static void run_by_blocks(lam_cpu_dev *cpu, const lam_gemm *a)
{
    const double one = (double)a->m * a->n * a->k;
    const int most = omp_get_level() > 0 ? 1 : cpu->threads, dynamic = omp_get_dynamic();
    const int team = omp_get_max_threads();
    int wrong;
    if (!cpu->checked)
        lam_gemm_check(cpu);
    if (cpu->broken[0] || a->batch == 0)
        return;
    const job x = {cpu, a, lam_finish_make(cpu, a), cpu->copies && lam_gemm_tiles_take(a)};
    omp_set_dynamic(0);
    if (a->step_c != 0 && a->batch >= 2 * cpu->threads && one < 3e7)
        wrong = run_whole(&x, most);
    else /* 5e5 MACs take 10 us on one thread: not worth waking another */
        wrong = run_blocks(&x, one * a->batch < 5e5 ? 1 : most);
    omp_set_dynamic(dynamic);
    if (omp_get_max_threads() != team) /* LLVM does not forget multiply's 1 within `omp teams` */
        omp_set_num_threads(team);
    lam_finish_sums(&x.finish, a);
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
        run_by_blocks(lam_cpu(dev), a);
}
