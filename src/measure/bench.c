/* bench.c -- see bench.h. */
#include "measure/bench.h"

#include "core/clock.h"
#include "core/rng.h"
#include "infer/session.h"
#include "measure/bench_read.h"
#include "model/macs.h"
#include "train/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1 << 16, LEAST_ROUNDS = 5, READ_EVERY = 32, SLACK = 5 };

typedef struct bench {
    lam_dev *dev;
    const lam_bench_options *opt;
    lam_config cfg;
    lam_model *model;
    lam_stack *stack;
    lam_optimizer *optimizer;
    lam_session *session;
    int32_t *tokens; /* [B][N] */
    double *scores;
    uint32_t step;
    lam_bench_read read;
    double times[MOST_ROUNDS];
} bench;

/* The most memory this process has ever had resident. */
static size_t peak_bytes(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lu kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (size_t)kib * 1024;
}

static lam_status build(bench *b)
{
    const lam_bench_options *o = b->opt;
    const size_t n = (size_t)o->batch * (size_t)b->cfg.tgt_len;
    const lam_class weights = lam_store_class(o->storage.weights, LAM_ACT);
    const lam_class cache =
        lam_store_class(o->storage.cache, weights == LAM_ACT ? LAM_ACT : LAM_HALF);
    if (o->kind == LAM_BENCH_TRAIN && (weights != LAM_ACT || cache != LAM_ACT))
        return lam_fail(LAM_ERR_ARG, "a model with bf16 or int8 weights cannot be trained");
    LAM_TRY(lam_model_create_as(&b->model, &b->cfg, b->dev, weights, cache));
    LAM_TRY(lam_model_init(b->model, 1));
    if (o->kind == LAM_BENCH_GENERATE) {
        LAM_TRY(
            lam_session_create(&b->session, b->model, &(lam_session_options){.streams = o->batch}));
    } else {
        const int train = o->kind == LAM_BENCH_TRAIN;
        LAM_TRY(lam_stack_create(
            &b->stack, b->model,
            &(lam_stack_options){
                .B = o->batch, .N = b->cfg.tgt_len, .M = b->cfg.mem_len, .train = train}));
    }
    if (o->kind == LAM_BENCH_TRAIN) {
        lam_optimizer_options rule = lam_optimizer_defaults();
        rule.rule = lam_rules[o->optim];
        LAM_TRY(lam_optimizer_create(&b->optimizer, b->model, &rule));
    }
    b->tokens = malloc(n * sizeof *b->tokens);
    b->scores = malloc((size_t)o->batch * (size_t)b->cfg.n_token * sizeof *b->scores);
    if (!b->tokens || !b->scores)
        return lam_fail(LAM_ERR_MEMORY, "bench: no memory");
    lam_rng rng = {.key = 7};
    for (size_t i = 0; i < n; i++)
        b->tokens[i] = (int32_t)lam_rng_below(&rng, (uint64_t)b->cfg.n_token);
    return LAM_OK;
}

/* One round of the work, finished when it returns. */
static lam_status round_of(bench *b)
{
    const int N = b->cfg.tgt_len, train = b->opt->kind == LAM_BENCH_TRAIN;
    if (b->opt->kind == LAM_BENCH_GENERATE) {
        LAM_TRY(lam_session_feed(b->session, b->tokens, 1));
        return lam_session_logits(b->session, b->scores);
    }
    if (train)
        lam_optimizer_zero(b->optimizer);
    lam_stack_pass(b->stack,
                   &(lam_pass){.inputs = b->tokens,
                               .targets = b->tokens,
                               .n = N,
                               .grad_scale = train ? 1.0 / ((double)b->opt->batch * N) : 0.0,
                               .dropout = {train, 1, b->step++}});
    if (train)
        lam_optimizer_step(b->optimizer, 1e-4);
    return b->dev->ops->sync(b->dev);
}

/* How long it takes to compute with NaN says nothing of a model; lam_session_logits() looks by itself. */
static lam_status check_finite(bench *b)
{
    const size_t n = (size_t)b->opt->batch * (size_t)b->cfg.tgt_len;
    if (!b->stack)
        return LAM_OK;
    double *nll = malloc(n * sizeof *nll);
    lam_status status =
        nll ? lam_stack_nll(b->stack, nll) : lam_fail(LAM_ERR_MEMORY, "bench: no memory");
    if (status == LAM_OK && lam_finite_count(nll, LAM_F64, n) < n)
        status = lam_fail(LAM_ERR_NUMERIC, "bench: the loss of a model of these sizes is not "
                                           "finite: its numbers overflow");
    free(nll);
    return status;
}

/* Fills the memory, so that every measured round has the full cost. */
static lam_status warm_up(bench *b)
{
    const int N = b->cfg.tgt_len, M = b->cfg.mem_len;
    if (b->opt->kind != LAM_BENCH_GENERATE) {
        for (int i = 0; i < (M + N - 1) / N + 2; i++)
            LAM_TRY(round_of(b));
        return LAM_OK;
    }
    for (int i = 0; i < M; i += N)
        LAM_TRY(lam_session_feed(b->session, b->tokens, N));
    return round_of(b);
}

/* One of the products of a step, y = x W^T and its gradients. */
typedef struct product {
    int m, n, k;
    lam_trans ta, tb;
} product;

static lam_status gemm_rate(bench *b, const product *p, double *best)
{
    const size_t size = lam_class_size(b->dev, LAM_WIDE), m = (size_t)p->m, n = (size_t)p->n,
                 k = (size_t)p->k;
    void *a = NULL, *w = NULL, *c = NULL;
    lam_status status = b->dev->ops->alloc(b->dev, &a, m * k * size);
    if (status == LAM_OK)
        status = b->dev->ops->alloc(b->dev, &w, n * k * size);
    if (status == LAM_OK)
        status = b->dev->ops->alloc(b->dev, &c, m * n * size);
    const lam_gemm g = {.m = p->m,
                        .n = p->n,
                        .k = p->k,
                        .batch = 1,
                        .ta = p->ta,
                        .tb = p->tb,
                        .a = a,
                        .b = w,
                        .c = c,
                        .c_class = LAM_ACT,
                        .lda = p->ta == LAM_KEEP ? k : m,
                        .ldb = p->tb == LAM_KEEP ? n : k,
                        .ldc = n};
    for (int i = 0; i < 6 && status == LAM_OK; i++) {
        const double start = lam_clock();
        b->dev->ops->gemm(b->dev, &g);
        status = b->dev->ops->sync(b->dev);
        const double rate = 2e-9 * (double)p->m * p->n * p->k / (lam_clock() - start);
        *best = i > 0 && rate > *best ? rate : *best;
    }
    b->dev->ops->release(b->dev, a);
    b->dev->ops->release(b->dev, w);
    b->dev->ops->release(b->dev, c);
    return status;
}

static lam_status best_gemm(bench *b, double *best)
{
    const lam_dims d = b->model->dims;
    const int leads = b->model->mem->leads != NULL;
    const int rows = b->opt->kind == LAM_BENCH_GENERATE
                         ? b->opt->batch
                         : b->opt->batch * (b->cfg.tgt_len + (leads ? b->cfg.mem_len : 0));
    const int maps[4][2] = {{3 * d.HK, d.D}, {d.D, d.HK}, {d.F, d.D}, {d.D, d.F}}; /* out, in */
    for (int i = 0; i < 4; i++) {
        const int out = maps[i][0], in = maps[i][1];
        const product products[3] = {{rows, out, in, LAM_KEEP, LAM_FLIP},
                                     {rows, in, out, LAM_KEEP, LAM_KEEP},
                                     {out, in, rows, LAM_FLIP, LAM_KEEP}};
        for (int j = 0; j < (b->opt->kind == LAM_BENCH_TRAIN ? 3 : 1); j++)
            LAM_TRY(gemm_rate(b, &products[j], best));
    }
    return LAM_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double macs_of_round(const bench *b)
{
    const lam_macs m = lam_macs_token(&b->cfg, b->cfg.memory);
    switch (b->opt->kind) {
    case LAM_BENCH_TRAIN:
        return lam_macs_step(&b->cfg, b->opt->batch);
    case LAM_BENCH_EVAL:
        return lam_macs_segment(&b->cfg, b->opt->batch);
    default:
        return m.total * b->opt->batch;
    }
}

/* Is there another round?  A token costs more the later it stands in its segment, and the first one refreshes the memory:
 * generation ends with whole segments, unless that takes SLACK times as long again. */
static int goes_on(const bench *b, int rounds, double stop)
{
    const double now = lam_clock();
    if (rounds == MOST_ROUNDS)
        return 0;
    if (rounds < LEAST_ROUNDS || now < stop)
        return 1;
    return b->opt->kind == LAM_BENCH_GENERATE && rounds % b->cfg.tgt_len != 0 &&
           now < stop + SLACK * b->opt->seconds;
}

/* Work and GEMM in turns until the time is used up. */
static lam_status measure(bench *b, lam_bench_result *out)
{
    LAM_TRY(warm_up(b));
    const double start = lam_clock();
    double next_gemm = start, stop = start + b->opt->seconds;
    while (goes_on(b, out->rounds, stop)) {
        if (lam_clock() >= next_gemm) {
            const double before = lam_clock();
            LAM_TRY(best_gemm(b, &out->gemm_gflops));
            const double took = lam_clock() - before;
            stop += took; /* measuring GEMM is not counted */
            next_gemm = lam_clock() + b->opt->seconds / 4.0;
        }
        if (b->opt->kind == LAM_BENCH_GENERATE && out->rounds % READ_EVERY == 0) {
            const double before = lam_clock();
            LAM_TRY(lam_bench_read_once(&b->read));
            stop += lam_clock() - before;
        }
        const double begin = lam_clock();
        LAM_TRY(round_of(b));
        b->times[out->rounds++] = lam_clock() - begin;
    }
    double sum = 0.0;
    const int N = b->cfg.tgt_len, whole = out->rounds < N ? out->rounds : out->rounds / N * N;
    for (int i = 0; i < whole; i++)
        sum += b->times[i];
    qsort(b->times, (size_t)out->rounds, sizeof *b->times, ascending);
    out->best_seconds = b->times[0];
    out->seconds = b->opt->kind == LAM_BENCH_GENERATE ? sum / whole : b->times[out->rounds / 2];
    const double per_round =
        (double)b->opt->batch * (b->opt->kind == LAM_BENCH_GENERATE ? 1 : b->cfg.tgt_len);
    out->tokens_per_second = per_round / out->seconds;
    out->gflops = 2e-9 * macs_of_round(b) / out->seconds;
    out->share = out->gemm_gflops > 0.0 ? out->gflops / out->gemm_gflops : 0.0;
    return LAM_OK;
}

static void resolve_reads(bench *b, lam_bench_result *out)
{
    lam_bench_read *r = &b->read;
    double sum = 0.0;
    for (int i = 0; i < r->n; i++)
        sum += r->times[i];
    qsort(r->times, (size_t)r->n, sizeof *r->times, ascending);
    out->median_seconds = b->times[out->rounds / 2];
    out->token_bytes = r->bytes;
    out->read_seconds = sum / r->n;
    out->read_median = r->times[r->n / 2];
    out->read_best = r->times[0];
}

/* What training adds: gradients, and what the optimiser needs. */
static size_t planned_training(bench *b)
{
    size_t bytes;
    if (!b->optimizer || lam_optimizer_measure(&bytes, b->model, &b->optimizer->opt) != LAM_OK)
        return 0;
    return bytes + b->model->params.total * lam_class_size(b->dev, LAM_WIDE);
}

static lam_status plan(size_t *out, bench *b)
{
    const int train = b->opt->kind == LAM_BENCH_TRAIN;
    const lam_stack_options o = {
        .B = b->opt->batch, .N = b->cfg.tgt_len, .M = b->cfg.mem_len, .train = train};
    lam_stack_sizes s;
    LAM_TRY(lam_stack_measure(&s, b->model, &o));
    *out = lam_params_bytes(&b->model->params) + planned_training(b) + s.activations + s.state +
           s.scratch;
    return LAM_OK;
}

lam_status lam_bench_run(lam_bench_result *out, const lam_config *cfg, lam_dev *dev,
                         const lam_bench_options *options)
{
    *out = (lam_bench_result){0};
    bench *b = calloc(1, sizeof *b);
    if (!b)
        return lam_fail(LAM_ERR_MEMORY, "bench: no memory");
    b->dev = dev;
    b->opt = options;
    b->cfg = *cfg;
    const size_t before = peak_bytes();
    lam_status status = build(b);
    if (status == LAM_OK)
        status = warm_up(b);
    if (status == LAM_OK) {
        out->bytes_peak = b->dev->ops->peak(b->dev); /* the device's own memory, or the host's */
        if (out->bytes_peak == 0)
            out->bytes_peak = peak_bytes() - before;
        status = plan(&out->bytes_planned, b);
        if (status == LAM_OK && options->kind == LAM_BENCH_GENERATE)
            status = lam_bench_read_open(
                &b->read, dev,
                lam_bench_token_bytes(b->model, options->batch, b->cfg.tgt_len, b->cfg.mem_len));
        if (status == LAM_OK)
            status = measure(b, out);
        if (status == LAM_OK)
            status = check_finite(b);
        if (status == LAM_OK && options->kind == LAM_BENCH_GENERATE)
            resolve_reads(b, out);
    }
    lam_bench_read_close(&b->read);
    lam_session_free(b->session);
    lam_optimizer_free(b->optimizer);
    lam_stack_free(b->stack);
    lam_model_free(b->model);
    free(b->tokens);
    free(b->scores);
    free(b);
    return status;
}
