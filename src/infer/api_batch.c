/* api_batch.c -- the public interface, include/lamemo.h: many texts on one model. */
#include "infer/api_int.h"

#include "infer/scheduler.h"

#include <stdlib.h>

SAME(LAM_JOB_READ, LAMEMO_EVENT_READ);
SAME(LAM_JOB_DRAWN, LAMEMO_EVENT_DRAWN);
SAME(LAM_JOB_ENDED, LAMEMO_EVENT_ENDED);
_Static_assert(sizeof(lam_likely) == sizeof(lamemo_likely), "lamemo_likely");

/* A job that has not ended. */
typedef struct pending {
    lamemo_batch *batch;
    lam_job *job;
    lamemo_text *text;
    lamemo_event_sink *sink;
    void *user;
    uint64_t number;
    struct pending *next, **at;
} pending;

struct lamemo_batch {
    const lam_engine *engine; /* kept */
    lam_dev *dev;
    lam_scheduler *scheduler;
    pending *jobs;
    uint64_t numbers; /* given so far */
};

struct lamemo_text {
    lam_timeline *inner;
    int busy;
};

static lam_status build(lamemo_batch *b, lamemo_engine *engine, const lamemo_batch_options *o)
{
    LAM_TRY(lam_api_size("slots", o->slots));
    LAM_TRY(lam_api_size("segment", o->segment));
    LAM_TRY(lam_api_size("memory", o->memory));
    LAM_TRY(lam_api_not_negative("rows", o->rows));
    LAM_TRY(lam_api_not_negative("queue", o->queue));
    b->engine = engine->inner;
    LAM_TRY(lam_api_context(&b->dev, engine, o->threads));
    return lam_scheduler_create(&b->scheduler, b->engine,
                                &(lam_scheduler_options){.lanes = o->slots,
                                                         .segment = o->segment,
                                                         .mem_len = o->memory,
                                                         .rows = o->rows,
                                                         .queue = o->queue,
                                                         .fixed = o->fixed,
                                                         .prefixes = o->prefix_cache,
                                                         .dev = b->dev});
}

lamemo_status lamemo_batch_create(lamemo_engine *engine, const lamemo_batch_options *options,
                                  lamemo_batch **batch)
{
    const lamemo_batch_options o = options ? *options : (lamemo_batch_options){0};
    *batch = NULL;
    lamemo_batch *b = calloc(1, sizeof *b);
    if (!b)
        return lam_api_status(lam_fail(LAM_ERR_MEMORY, "batch: no memory"));
    const lam_status status = build(b, engine, &o);
    if (status == LAM_OK)
        *batch = b;
    else
        lamemo_batch_free(b);
    return lam_api_status(status);
}

void lamemo_batch_free(lamemo_batch *b)
{
    bool busy;
    if (!b)
        return;
    for (pending *p = b->jobs; p; p = p->next)
        lam_job_cancel(p->job);
    while (b->jobs) /* one tick ends them all */
        lam_scheduler_tick(b->scheduler, &busy);
    lam_scheduler_free(b->scheduler);
    if (b->dev)
        b->dev->ops->close(b->dev);
    free(b);
}

/* ---- texts ---- */

static lamemo_status hold(lamemo_text **out, lam_status status, lam_timeline *inner)
{
    *out = status == LAM_OK ? calloc(1, sizeof **out) : NULL;
    if (*out) {
        (*out)->inner = inner;
        return LAMEMO_OK;
    }
    lam_timeline_free(inner);
    return lam_api_status(status != LAM_OK ? status : lam_fail(LAM_ERR_MEMORY, "text: no memory"));
}

lamemo_status lamemo_text_create(lamemo_batch *b, lamemo_text **text)
{
    lam_timeline *inner;
    const lam_status status = lam_timeline_create(&inner, lam_scheduler_segment(b->scheduler), 0);
    return hold(text, status, inner);
}

lamemo_status lamemo_text_fork(const lamemo_text *text, lamemo_text **fork)
{
    lam_timeline *inner = NULL;
    const lam_status status = text->busy ? lam_fail(LAM_ERR_ARG, "text: a job has it")
                                         : lam_timeline_fork(&inner, text->inner);
    return hold(fork, status, inner);
}

void lamemo_text_free(lamemo_text *text)
{
    if (!text)
        return;
    lam_timeline_free(text->inner);
    free(text);
}

int64_t lamemo_text_length(const lamemo_text *text)
{
    return text->inner->length;
}

/* ---- jobs ---- */

static void tell(void *user, const lam_job_event *e)
{
    pending *p = user;
    const lamemo_event event = {.job = p->number,
                                .kind = (lamemo_event_kind)e->kind,
                                .token = e->token,
                                .logprob = e->logprob,
                                .top = (const lamemo_likely *)e->top,
                                .n_top = e->n_top,
                                .text = e->text,
                                .size = e->size,
                                .finish = (lamemo_finish)e->finish,
                                .status = lam_api_status(e->status)};
    if (e->kind != LAM_JOB_ENDED) {
        p->sink(p->user, &event);
        return;
    }
    p->text->busy = 0;
    *p->at = p->next;
    if (p->next)
        p->next->at = p->at;
    p->sink(p->user, &event);
    lam_job_free(p->job);
    free(p);
}

static lam_status submit(lamemo_batch *b, pending *p, const lamemo_job *job)
{
    if (job->text->busy)
        return lam_fail(LAM_ERR_ARG, "job: another one has the text");
    LAM_TRY(lam_api_not_negative("draw", job->draw));
    LAM_TRY(lam_api_not_negative("top", job->top));
    LAM_TRY(lam_job_create(
        &p->job, b->engine,
        &(lam_job_options){.text = job->text->inner,
                           .tokens = job->tokens,
                           .n = job->n,
                           .score = job->score,
                           .top = job->top,
                           .draw = job->draw,
                           .keep = !job->forget,
                           .sampler = lam_api_sampler(job->sampling, b->engine->vocab),
                           .stops = job->stops,
                           .n_stops = job->n_stops,
                           .sink = tell,
                           .user = p}));
    return lam_scheduler_submit(b->scheduler, p->job);
}

lamemo_status lamemo_batch_submit(lamemo_batch *b, const lamemo_job *job, uint64_t *number)
{
    pending *p = calloc(1, sizeof *p);
    *number = 0;
    if (!p)
        return lam_api_status(lam_fail(LAM_ERR_MEMORY, "job: no memory"));
    *p = (pending){.batch = b, .text = job->text, .sink = job->sink, .user = job->user};
    const lam_status status = submit(b, p, job);
    if (status != LAM_OK) {
        lam_job_free(p->job);
        free(p);
        return lam_api_status(status);
    }
    job->text->busy = 1;
    p->number = *number = ++b->numbers;
    p->next = b->jobs;
    p->at = &b->jobs;
    if (p->next)
        p->next->at = &p->next;
    b->jobs = p;
    return LAMEMO_OK;
}

void lamemo_batch_cancel(lamemo_batch *b, uint64_t number)
{
    for (pending *p = b->jobs; p; p = p->next)
        if (p->number == number)
            lam_job_cancel(p->job);
}

lamemo_status lamemo_batch_step(lamemo_batch *b, int *busy)
{
    bool more;
    const lam_status status = lam_scheduler_tick(b->scheduler, &more);
    *busy = more;
    return lam_api_status(status);
}
