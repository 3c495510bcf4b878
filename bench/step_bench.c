/* step_bench.c -- where a step goes: step_bench [train|eval|generate] PRESET MEMORY THREADS SECONDS [BATCH [WEIGHTS]]
 *
 * Runs lam_bench_run on a copy of the cpu device's table whose entries are timed, and prints time per operation, GEMMs
 * by shape.  It is wall time; with one thread that thread's CPU time, which other work on the machine disturbs little.
 * What the program does between operations, its start included, is the line "rest".  The GEMMs by which the bench
 * calibrates itself are counted as well. */
#include "measure/bench.h"
#include "model/configure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_PARTS = 256 };

typedef struct part {
    char name[96];
    long calls;
    double seconds, best, gflop; /* gflop of one call; 0: unknown */
} part;

static part parts[MOST_PARTS];
static int n_parts;
static lam_ops table;
static const lam_ops *real;
static clockid_t meter = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(meter, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void count(const char *name, double seconds, double gflop)
{
    int i = 0;
    while (i < n_parts && strcmp(parts[i].name, name) != 0)
        i++;
    if (i == MOST_PARTS)
        return;
    if (i == n_parts) {
        parts[n_parts].best = seconds;
        snprintf(parts[n_parts++].name, sizeof parts->name, "%s", name);
    }
    parts[i].calls++;
    parts[i].seconds += seconds;
    parts[i].gflop = gflop;
    if (seconds < parts[i].best)
        parts[i].best = seconds;
}

static void shape_of_lam_gemm(char *out, size_t size, const lam_gemm *g, double *gflop)
{
    static const char *const classes[] = {"", " wide", " int", " half", " byte"};
    snprintf(out, size, "gemm %c%c %5d x %4d x %4d  %3d%s%s%s%s", g->ta == LAM_FLIP ? 'T' : 'N',
             g->tb == LAM_FLIP ? 'T' : 'N', g->m, g->n, g->k, g->batch,
             g->b_class != LAM_ACT ? classes[g->b_class] : "", g->relu ? " relu" : "",
             g->drop.p > 0.0 ? " drop" : "", g->h ? " back" : "");
    *gflop = 2e-9 * (double)g->m * g->n * g->k * g->batch;
}

static void shape_of_lam_attn(char *out, size_t size, const char *name, const lam_attn *a)
{
    snprintf(out, size, "%s %d x %d %s", name, a->queries, a->keys,
             a->mode == LAM_AHEAD ? "ahead" : "past");
}

#define TIMED(op, argument)                                                                        \
    static void timed_##op(lam_dev *dev, const argument *a)                                        \
    {                                                                                              \
        const double start = now();                                                                \
        real->op(dev, a);                                                                          \
        count(#op, now() - start, 0.0);                                                            \
    }
LAM_OPS(TIMED)
#undef TIMED

static void timed_gemm_by_shape(lam_dev *dev, const lam_gemm *g)
{
    char name[96];
    double gflop;
    shape_of_lam_gemm(name, sizeof name, g, &gflop);
    const double start = now();
    real->gemm(dev, g);
    count(name, now() - start, gflop);
}

static void timed_attn_fwd_by_shape(lam_dev *dev, const lam_attn *a)
{
    char name[96];
    shape_of_lam_attn(name, sizeof name, "attn_fwd", a);
    const double start = now();
    real->attn_fwd(dev, a);
    count(name, now() - start, 0.0);
}

static void timed_attn_bwd_by_shape(lam_dev *dev, const lam_attn *a)
{
    char name[96];
    shape_of_lam_attn(name, sizeof name, "attn_bwd", a);
    const double start = now();
    real->attn_bwd(dev, a);
    count(name, now() - start, 0.0);
}

static void timed_zero(lam_dev *dev, void *dst, size_t bytes)
{
    const double start = now();
    real->zero(dev, dst, bytes);
    count("zero", now() - start, 0.0);
}

static int by_time(const void *x, const void *y)
{
    const part *a = x, *b = y;
    return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

static void print_parts(double rounds_seconds)
{
    double all = 0.0;
    qsort(parts, (size_t)n_parts, sizeof *parts, by_time);
    for (int i = 0; i < n_parts; i++)
        all += parts[i].seconds;
    printf("%-52s %8s %10s %10s %7s %9s\n", "operation", "calls", "mean us", "best us", "share",
           "GFLOP/s");
    for (int i = 0; i < n_parts; i++) {
        const part *p = &parts[i];
        const double mean = p->seconds / (double)p->calls;
        printf("%-52s %8ld %10.1f %10.1f %6.2f %%", p->name, p->calls, 1e6 * mean, 1e6 * p->best,
               100.0 * p->seconds / rounds_seconds);
        if (p->gflop > 0.0)
            printf(" %9.1f", p->gflop / mean);
        printf("\n");
    }
    printf("%-52s %8s %10s %10s %6.2f %%\n", "rest", "", "", "",
           100.0 * (rounds_seconds - all) / rounds_seconds);
}

static lam_bench_kind kind_of(const char *name)
{
    return strcmp(name, "generate") == 0 ? LAM_BENCH_GENERATE
           : strcmp(name, "eval") == 0   ? LAM_BENCH_EVAL
                                         : LAM_BENCH_TRAIN;
}

static lam_store store_of(const char *name)
{
    return strcmp(name, "int8") == 0   ? LAM_STORE_INT8
           : strcmp(name, "bf16") == 0 ? LAM_STORE_BF16
                                       : LAM_STORE_F32;
}

static lam_status run(char **argv, int argc)
{
    lam_config cfg;
    lam_dev *dev = NULL;
    lam_bench_result result;
    lam_bench_options options = {.kind = kind_of(argv[1]),
                                 .seconds = atof(argv[5]),
                                 .batch = argc > 6 ? atoi(argv[6]) : 8,
                                 .storage = {.weights = store_of(argc > 7 ? argv[7] : "")}};
    if (atoi(argv[4]) == 1)
        meter = CLOCK_THREAD_CPUTIME_ID;
    LAM_TRY(lam_config_preset(&cfg, argv[2], argv[3]));
    LAM_TRY(lam_ops_find(&real, "cpu"));
    LAM_TRY(real->open(&dev, &(lam_dev_options){.threads = atoi(argv[4])}));
    table = *real;
#define ENTRY(op, argument) table.op = timed_##op;
    LAM_OPS(ENTRY)
#undef ENTRY
    table.gemm = timed_gemm_by_shape;
    table.attn_fwd = timed_attn_fwd_by_shape;
    table.attn_bwd = timed_attn_bwd_by_shape;
    table.zero = timed_zero;
    dev->ops = &table;
    const double start = now();
    const lam_status status = lam_bench_run(&result, &cfg, dev, &options);
    const double took = now() - start;
    if (status == LAM_OK) {
        print_parts(took);
        printf(
            "%.1f tokens/s, %.3f ms median, best %.3f, %d rounds; %.1f GFLOP/s, %.1f %% of %.1f\n",
            result.tokens_per_second, 1e3 * result.seconds, 1e3 * result.best_seconds,
            result.rounds, result.gflops, 100.0 * result.share, result.gemm_gflops);
    }
    real->close(dev);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: step_bench train|eval|generate PRESET MEMORY THREADS SECONDS "
                        "[BATCH [float32|bf16|int8]]\n");
        return 2;
    }
    if (run(argv, argc) == LAM_OK)
        return 0;
    fprintf(stderr, "step_bench: %s\n", lam_error());
    return 1;
}
