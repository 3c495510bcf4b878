/* ops_bench.c -- how far is each operation of a back-end from what the machine can do?
 *
 *     ops_bench [THREADS [ROUNDS]]
 *
 * Runs the operations of ops/cpu, attention apart, at the shapes of preset `small` (8 streams of 128 +
 * 128 rows, D 256, F 1024, 256 symbols) and prints the best and the median time, and the rate next to
 * its floor: for products the fastest product of the run, for the rest a copy of the same number of
 * bytes.  All operations take turns in every round, so that a noisy neighbour slows all of them.
 * Not a test: nothing is checked, and nothing here runs in CTest. */
#include "core/clock.h"
#include "core/rng.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 8, N = 128, M = 128, D = 256, H = 4, K = 64, F = 1024, V = 256 };
enum { ROWS = B * (N + M), SLOTS = 12, BIG = ROWS * F, PARAMS = 6 << 20, MAX_ROUNDS = 1000 };

typedef struct bench {
    const lam_ops *ops;
    lam_dev *dev;
    float *big[SLOTS];           /* BIG floats each */
    float *vec[8];               /* 4096 floats each: gains, biases, statistics */
    float *param, *grad, *m, *v; /* PARAMS floats each */
    int32_t *ids, *order;        /* ROWS each */
    const struct kernel *kernel; /* the one that runs */
} bench;

typedef struct kernel {
    const char *name;
    void (*run)(bench *x);
    double elements;     /* for ns per element */
    double bytes, flops; /* that must be moved, or done; one of them is 0 */
    int m, n, k;         /* products only */
    lam_trans ta, tb;
    int relu, drop, back; /* back: C goes on through ReLU, with h */
} kernel;

static const lam_drop dropout = {.p = 0.1, .seed = 1, .step = 2, .site = 3};

static lam_view rows_of(float *p, size_t width)
{
    return (lam_view){p, (size_t)(N + M) * width};
}

static void run_gemm(bench *x)
{
    const kernel *k = x->kernel;
    const lam_gemm g = {.m = k->m,
                        .n = k->n,
                        .k = k->k,
                        .batch = 1,
                        .ta = k->ta,
                        .tb = k->tb,
                        .a = x->big[0],
                        .b = x->big[1],
                        .c = x->big[2],
                        .lda = (size_t)(k->ta == LAM_FLIP ? k->m : k->k),
                        .ldb = (size_t)(k->tb == LAM_FLIP ? k->k : k->n),
                        .ldc = (size_t)k->n,
                        .beta = k->ta == LAM_FLIP ? 1.0 : 0.0,
                        .bias = k->relu ? x->vec[0] : NULL,
                        .relu = k->relu,
                        .drop = k->drop ? dropout : (lam_drop){0},
                        .h = k->back ? x->big[7] : NULL,
                        .h_scale = 1.0,
                        .dbias = x->vec[0]};
    x->ops->gemm(x->dev, &g);
}

static lam_norm norm_of(bench *x)
{
    return (lam_norm){.blocks = B,
                      .rows = N + M,
                      .width = D,
                      .ld = D,
                      .eps = 1e-5,
                      .drop = x->kernel->drop ? dropout : (lam_drop){0},
                      .x = rows_of(x->big[0], D),
                      .y = rows_of(x->big[1], D),
                      .add = x->big[2],
                      .bias = x->vec[0],
                      .sum = x->big[3],
                      .mean = x->vec[1],
                      .rstd = x->vec[2],
                      .gain = x->vec[3],
                      .shift = x->vec[4],
                      .dy = rows_of(x->big[4], D),
                      .dx = rows_of(x->big[5], D),
                      .dadd = x->big[6],
                      .dgain = x->vec[5],
                      .dshift = x->vec[6],
                      .dbias = x->vec[7]};
}

static void run_norm_fwd(bench *x)
{
    const lam_norm a = norm_of(x);
    x->ops->norm_fwd(x->dev, &a);
}

static void run_norm_bwd(bench *x)
{
    const lam_norm a = norm_of(x);
    x->ops->norm_bwd(x->dev, &a);
}

static void run_dropout(bench *x)
{
    const lam_dropout a = {.blocks = B,
                           .rows = N + M,
                           .width = D,
                           .ld = D,
                           .drop = dropout,
                           .in = rows_of(x->big[0], D),
                           .out = rows_of(x->big[1], D)};
    x->ops->dropout(x->dev, &a);
}

static void run_copy(bench *x)
{
    const lam_copy a = {.blocks = B,
                        .count = (size_t)M * D,
                        .type = LAM_ACT,
                        .in = rows_of(x->big[0], D),
                        .out = rows_of(x->big[1], D)};
    x->ops->copy(x->dev, &a);
}

static void run_colsum(bench *x)
{
    const lam_colsum a = {.rows = ROWS, .width = F, .ld = F, .in = x->big[7], .out = x->vec[0]};
    x->ops->colsum(x->dev, &a);
}

static lam_interp interp_of(bench *x)
{
    lam_interp a = {.B = B, .rows = M, .H = H, .K = K, .eps = 1e-6};
    lam_view *const c[] = {&a.c_old, &a.c_new, &a.c_out, &a.dc_out, &a.dc_new};
    lam_view *const s[] = {&a.lse_old, &a.lse_new, &a.lse_out, &a.alpha, &a.dlse_new};
    for (int i = 0; i < 5; i++) {
        *c[i] = (lam_view){x->big[i], (size_t)M * D};
        *s[i] = (lam_view){x->vec[i], (size_t)M * H};
    }
    return a;
}

static void run_interp_fwd(bench *x)
{
    const lam_interp a = interp_of(x);
    x->ops->interp_fwd(x->dev, &a);
}

static void run_interp_bwd(bench *x)
{
    const lam_interp a = interp_of(x);
    x->ops->interp_bwd(x->dev, &a);
}

static lam_embed embed_of(bench *x)
{
    return (lam_embed){.rows = B * N,
                       .count = V,
                       .width = D,
                       .ld = D,
                       .scale = 16.0,
                       .ids = x->ids,
                       .table = x->big[0],
                       .out = x->big[1],
                       .dout = x->big[2],
                       .dtable = x->big[3]};
}

static void run_embed_fwd(bench *x)
{
    const lam_embed a = embed_of(x);
    x->ops->embed_fwd(x->dev, &a);
}

static void run_embed_bwd(bench *x)
{
    const lam_embed a = embed_of(x);
    x->ops->embed_bwd(x->dev, &a);
}

static void run_xent(bench *x)
{
    const lam_xent a = {.rows = B * N,
                        .cols = V,
                        .ld = V,
                        .grad_scale = 1.0,
                        .logits = x->big[9],
                        .target = x->ids,
                        .nll = x->vec[0]};
    x->ops->xent(x->dev, &a);
}

static lam_pick pick_of(bench *x)
{
    return (lam_pick){.rows = B * N,
                      .width = D,
                      .ld_in = D,
                      .ld_out = D,
                      .index = x->order,
                      .in = x->big[0],
                      .out = x->big[1]};
}

static void run_gather(bench *x)
{
    const lam_pick a = pick_of(x);
    x->ops->gather(x->dev, &a);
}

static void run_scatter(bench *x)
{
    const lam_pick a = pick_of(x);
    x->ops->scatter(x->dev, &a);
}

static const lam_part all_params = {.count = PARAMS, .lr = 1e-9, .fix1 = 0.5, .fix2 = 0.5};

static void run_gnorm(bench *x)
{
    const lam_gnorm a = {.parts = &all_params, .n_parts = 1, .grad = x->grad, .norm = x->vec[0]};
    x->ops->gnorm(x->dev, &a);
}

static void run_adam(bench *x)
{
    const lam_update a = {.kind = LAM_ADAM,
                          .parts = &all_params,
                          .n_parts = 1,
                          .beta1 = 0.9,
                          .beta2 = 0.999,
                          .eps = 1e-8,
                          .clip = 0.25,
                          .norm = x->vec[1],
                          .grad = x->grad,
                          .master = x->param,
                          .m = x->m,
                          .v = x->v};
    x->ops->update(x->dev, &a);
}

/* Floors: the same number of bytes by the C library, in one block, from and to memory that the
 * operations also use. */
static void run_memcpy(bench *x)
{
    memcpy(x->big[1], x->big[0], (size_t)x->kernel->bytes / 2);
}

#define PRODUCT(NAME, TA, TB, m_, n_, k_)                                                          \
    .name = NAME, .run = run_gemm, .elements = (double)(m_) * (n_),                                \
    .flops = 2.0 * (m_) * (n_) * (k_), .m = (m_), .n = (n_), .k = (k_), .ta = (TA), .tb = (TB)
#define GEMM(...)                                                                                  \
    {                                                                                              \
        PRODUCT(__VA_ARGS__)                                                                       \
    }
#define ROWWISE(NAME, RUN, COUNT, TIMES)                                                           \
    .name = NAME, .run = RUN, .elements = (double)(COUNT), .bytes = 4.0 * (TIMES) * (double)(COUNT)

static const kernel kernels[] = {
    {ROWWISE("memcpy 2 MiB, 1 thread", run_memcpy, ROWS *D, 2)},
    {ROWWISE("memcpy 8 MiB, 1 thread", run_memcpy, ROWS *F, 2)},
    GEMM("qkv   y  NT", LAM_KEEP, LAM_FLIP, ROWS, 3 * D, D),
    GEMM("out   y  NT", LAM_KEEP, LAM_FLIP, ROWS, D, D),
    GEMM("ff1   y  NT", LAM_KEEP, LAM_FLIP, ROWS, F, D),
    {PRODUCT("ff1   y  NT bias relu drop", LAM_KEEP, LAM_FLIP, ROWS, F, D), .relu = 1, .drop = 1},
    GEMM("ff2   y  NT", LAM_KEEP, LAM_FLIP, ROWS, D, F),
    GEMM("head  y  NT", LAM_KEEP, LAM_FLIP, B *N, V, D),
    GEMM("qkv  dx  NN", LAM_KEEP, LAM_KEEP, ROWS, D, 3 * D),
    GEMM("ff1  dx  NN", LAM_KEEP, LAM_KEEP, ROWS, D, F),
    GEMM("ff2  dx  NN", LAM_KEEP, LAM_KEEP, ROWS, F, D),
    {PRODUCT("ff2  dx  NN relu", LAM_KEEP, LAM_KEEP, ROWS, F, D), .back = 1},
    GEMM("qkv  dW  TN", LAM_FLIP, LAM_KEEP, 3 * D, D, ROWS),
    GEMM("out  dW  TN", LAM_FLIP, LAM_KEEP, D, D, ROWS),
    GEMM("ff1  dW  TN", LAM_FLIP, LAM_KEEP, F, D, ROWS),
    GEMM("ff2  dW  TN", LAM_FLIP, LAM_KEEP, D, F, ROWS),
    GEMM("qkv   y  NT, 1 row", LAM_KEEP, LAM_FLIP, 1, 3 * D, D),
    GEMM("ff2   y  NT, 1 row", LAM_KEEP, LAM_FLIP, 1, D, F),
    {ROWWISE("norm_fwd", run_norm_fwd, ROWS *D, 4)},
    {ROWWISE("norm_fwd drop", run_norm_fwd, ROWS *D, 4), .drop = 1},
    {ROWWISE("norm_bwd", run_norm_bwd, ROWS *D, 4)},
    {ROWWISE("norm_bwd drop", run_norm_bwd, ROWS *D, 4), .drop = 1},
    {ROWWISE("dropout", run_dropout, ROWS *D, 2)},
    {ROWWISE("copy", run_copy, B *M *D, 2)},
    {ROWWISE("colsum", run_colsum, ROWS *F, 1)},
    {ROWWISE("interp_fwd", run_interp_fwd, B *M *D, 3)},
    {ROWWISE("interp_bwd", run_interp_bwd, B *M *D, 4)},
    {ROWWISE("embed_fwd", run_embed_fwd, B *N *D, 2)},
    {ROWWISE("embed_bwd", run_embed_bwd, B *N *D, 3)},
    {ROWWISE("xent", run_xent, B *N *V, 2)},
    {ROWWISE("gather", run_gather, B *N *D, 2)},
    {ROWWISE("scatter", run_scatter, B *N *D, 3)},
    {ROWWISE("gnorm", run_gnorm, PARAMS, 1)},
    {ROWWISE("adam", run_adam, PARAMS, 7)},
};

enum { KERNELS = sizeof kernels / sizeof *kernels };

static void need(lam_status st)
{
    if (st == LAM_OK)
        return;
    fprintf(stderr, "ops_bench: %s\n", lam_error());
    exit(1);
}

static float *floats(bench *x, size_t n)
{
    void *p;
    need(x->ops->alloc(x->dev, &p, n * sizeof(float)));
    float *f = p;
    for (size_t i = 0; i < n; i++)
        f[i] = (float)(i * 2654435761u % 1024) / 512.0f - 0.998f;
    return f;
}

static void prepare(bench *x, int threads)
{
    const lam_work largest = {.B = B,
                              .H = H,
                              .K = K,
                              .queries = N + M,
                              .keys = N + M,
                              .r_rows = N + M,
                              .rows = ROWS,
                              .width = F};
    need(lam_ops_find(&x->ops, "cpu"));
    need(x->ops->open(&x->dev, &(lam_dev_options){.threads = threads}));
    need(x->ops->reserve(x->dev, &largest));
    for (int i = 0; i < SLOTS; i++)
        x->big[i] = floats(x, BIG);
    for (int i = 0; i < 8; i++)
        x->vec[i] = floats(x, 4096);
    float **const flat[] = {&x->param, &x->grad, &x->m, &x->v};
    for (int i = 0; i < 4; i++)
        *flat[i] = floats(x, PARAMS);
    for (size_t i = 0; i < PARAMS; i++)
        x->v[i] *= x->v[i];
    lam_rng rng = {.key = 4};
    x->ids = (int32_t *)(void *)floats(x, ROWS);
    x->order = (int32_t *)(void *)floats(x, ROWS);
    for (int i = 0; i < ROWS; i++) {
        x->ids[i] = (int32_t)lam_rng_below(&rng, V);
        x->order[i] = i * 5 % (B * N);
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(double (*times)[MAX_ROUNDS], int rounds)
{
    double best_flops = 0.0, best_copy = 0.0;
    for (int i = 0; i < KERNELS; i++) {
        qsort(times[i], (size_t)rounds, sizeof(double), by_size);
        const double flops = kernels[i].flops / times[i][0];
        best_flops = flops > best_flops ? flops : best_flops;
    }
    best_copy = kernels[0].bytes / times[0][0];
    printf("%-28s %10s %10s %8s %10s %7s\n", "operation", "best us", "median us", "ns/elem", "rate",
           "floor");
    for (int i = 0; i < KERNELS; i++) {
        const kernel *k = &kernels[i];
        const double best = times[i][0], floor = k->flops > 0.0 ? best_flops : best_copy;
        const double rate = (k->flops > 0.0 ? k->flops : k->bytes) / best;
        printf("%-28s %10.1f %10.1f %8.3f %6.1f %s %6.0f%%\n", k->name, 1e6 * best,
               1e6 * times[i][rounds / 2], 1e9 * best / k->elements, 1e-9 * rate,
               k->flops > 0.0 ? "GF " : "GB ", 100.0 * rate / floor);
    }
}

int main(int argc, char **argv)
{
    static double times[KERNELS][MAX_ROUNDS];
    const int threads = argc > 1 ? atoi(argv[1]) : 0;
    int rounds = argc > 2 ? atoi(argv[2]) : 40;
    rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    bench x = {0};
    prepare(&x, threads);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < KERNELS; i++) {
            x.kernel = &kernels[i];
            x.kernel->run(&x); /* once to have its operands where they would be */
            const double start = lam_clock();
            x.kernel->run(&x);
            times[i][round] = lam_clock() - start;
        }
    printf("%s, %d rounds\n", x.ops->summary, rounds);
    report(times, rounds);
    return 0;
}
