/* batch_bench.c -- continuous batching against a plain batch: B texts of a scheduler, and B of a batch of the public
 * interface (lamemo.h), beside B streams of a session that all have the same age, as `lamemo bench generate` runs them.
 *
 * By turns, a segment each, and by processor time of the calling thread if that computes alone: the machine may be busy.
 * The first two also draw their tokens and make text of them; the session only computes logits.
 *
 *     build/bench/batch_bench MODEL [STREAMS [TURNS [THREADS]]]
 *
 * With several threads by wall time: what one of them computes alone, the others wait for. */
#include "infer/scheduler.h"
#include "lamemo.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void require(lam_status status)
{
    if (status != LAM_OK) {
        fprintf(stderr, "batch_bench: %s\n", lam_error());
        exit(1);
    }
}

static int threads = 1;

static double clock_of_turns(void)
{
    struct timespec t;
    clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void ignore(void *user, const lam_job_event *e)
{
    (void)user;
    if (e->status != LAM_OK) {
        fprintf(stderr, "batch_bench: %s\n", e->reason);
        exit(1);
    }
}

/* ---- the public batch ---- */

static void succeed(lamemo_status status)
{
    if (status != LAMEMO_OK) {
        fprintf(stderr, "batch_bench: %s\n", lamemo_error());
        exit(1);
    }
}

static void count(void *user, const lamemo_event *e)
{
    *(int64_t *)user += e->kind == LAMEMO_EVENT_DRAWN;
}

static lamemo_batch *open_public(const char *model, int B, int64_t *drawn)
{
    lamemo_engine *engine;
    lamemo_batch *batch;
    lamemo_sampling sampling;
    succeed(lamemo_engine_open(model, &(lamemo_engine_options){.device = "cpu", .threads = threads},
                               &engine));
    succeed(lamemo_batch_create(engine, &(lamemo_batch_options){.slots = B}, &batch));
    lamemo_sampling_defaults(&sampling);
    sampling.top_p = 1.0;
    for (int i = 0; i < B; i++) {
        lamemo_text *text;
        uint64_t number;
        sampling.seed = (uint64_t)i;
        succeed(lamemo_text_create(batch, &text));
        succeed(lamemo_batch_submit(
            batch,
            &(lamemo_job){
                .text = text, .draw = 1 << 30, .sampling = &sampling, .sink = count, .user = drawn},
            &number));
    }
    return batch;
}

static double public_turn(lamemo_batch *batch, const int64_t *drawn, int B, int N)
{
    const double begun = clock_of_turns();
    const int64_t before = *drawn;
    int busy;
    while (*drawn - before < (int64_t)B * N)
        succeed(lamemo_batch_step(batch, &busy));
    return (clock_of_turns() - begun) / (double)(*drawn - before);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

/* Seconds for a token of a stream: one segment of B streams of the same age. */
static double session_turn(lam_session *s, const int32_t *tokens, double *scores, int B, int N)
{
    const double begun = clock_of_turns();
    for (int i = 0; i < N; i++) {
        require(lam_session_feed(s, tokens, 1));
        require(lam_session_logits(s, scores));
    }
    return (clock_of_turns() - begun) / ((double)B * N);
}

/* The same of as many tokens that the scheduler draws. */
static double scheduler_turn(lam_scheduler *s, int B, int N)
{
    const double begun = clock_of_turns();
    const int64_t before = lam_scheduler_look(s).drawn;
    bool busy;
    while (lam_scheduler_look(s).drawn - before < (int64_t)B * N)
        require(lam_scheduler_tick(s, &busy));
    return (clock_of_turns() - begun) / (double)(lam_scheduler_look(s).drawn - before);
}

int main(int argc, char **argv)
{
    const int B = argc > 2 ? atoi(argv[2]) : 64, turns = argc > 3 ? atoi(argv[3]) : 8;
    const lam_ops *ops;
    lam_dev *dev;
    lam_engine *engine;
    lam_session *session;
    lam_scheduler *scheduler;
    threads = argc > 4 ? atoi(argv[4]) : 1;
    if (argc < 2 || B < 1 || turns < 1 || threads < 1) {
        fprintf(stderr, "usage: batch_bench MODEL [STREAMS [TURNS [THREADS]]]\n");
        return 2;
    }
    require(lam_ops_find(&ops, "cpu"));
    require(ops->open(&dev, &(lam_dev_options){.threads = threads}));
    require(lam_engine_open(&engine, argv[1], dev, &(lam_storage){0}));
    const int N = engine->model->cfg.tgt_len, V = engine->model->cfg.n_token;
    int32_t *tokens = calloc((size_t)B, sizeof *tokens);
    double *scores = calloc((size_t)B * (size_t)V, sizeof *scores);
    double *plain = calloc((size_t)turns, sizeof *plain), *own = calloc((size_t)turns, sizeof *own);
    double *open = calloc((size_t)turns, sizeof *open);
    int64_t drawn = 0;
    lamemo_batch *const batch = open_public(argv[1], B, &drawn);
    lam_sampler_options sampling = lam_sampler_defaults();
    sampling.top_p = 1.0;
    require(lam_session_create(&session, engine->model, &(lam_session_options){.streams = B}));
    require(lam_scheduler_create(&scheduler, engine, &(lam_scheduler_options){.lanes = B}));
    for (int i = 0; i < B; i++) {
        lam_timeline *text;
        lam_job *job;
        require(lam_timeline_create(&text, N, 0));
        sampling.seed = (uint64_t)i;
        require(lam_job_create(
            &job, engine,
            &(lam_job_options){
                .text = text, .draw = 1 << 30, .sampler = sampling, .sink = ignore}));
        require(lam_scheduler_submit(scheduler, job));
    }
    for (int i = 0; i < 2; i++) { /* fills the memories */
        session_turn(session, tokens, scores, B, N);
        scheduler_turn(scheduler, B, N);
        public_turn(batch, &drawn, B, N);
    }
    for (int i = 0; i < turns; i++) {
        plain[i] = session_turn(session, tokens, scores, B, N);
        own[i] = scheduler_turn(scheduler, B, N);
        open[i] = public_turn(batch, &drawn, B, N);
    }
    const double a = median(plain, turns), b = median(own, turns), c = median(open, turns);
    printf("%d streams, segments of %d: session %.2f us a token, scheduler %.2f us: %.1f %%, "
           "lamemo_batch %.2f us: %.1f %%\n",
           B, N, 1e6 * a, 1e6 * b, 100.0 * a / b, 1e6 * c, 100.0 * a / c);
    return 0; /* the process ends with everything it has */
}
