/* scheduler.c -- see scheduler.h: admission of jobs, and the work of a tick. */
#include "infer/scheduler_int.h"

#include "core/budget.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { LANES = 8, QUEUE = 256, LOGIT_ROWS = 16 };

/* ---- create and free ---- */

static lam_status open_batch(lam_scheduler *s)
{
    if (!lam_stack_can_batch(s->one->stack))
        return LAM_OK;
    LAM_TRY(lam_stack_create(
        &s->batch, s->engine->model,
        &(lam_stack_options){
            .B = s->o.lanes, .N = s->o.segment, .M = s->o.mem_len, .batch = 1, .dev = s->o.dev}));
    lam_stack_open_batch(s->batch, s->o.segment);
    return LAM_OK;
}

static lam_status allocate(lam_scheduler *s)
{
    const size_t V = (size_t)s->engine->model->cfg.n_token, lanes = (size_t)s->o.lanes;
    const size_t longest = (size_t)s->o.segment;
    LAM_TRY(lam_budget_ask_under(s->engine->model->dev->max_memory, "the lanes' scores",
                                 (lanes + LOGIT_ROWS) * V * sizeof *s->scores));
    s->lanes = calloc(lanes, sizeof *s->lanes);
    s->scores = calloc(lanes * V, sizeof *s->scores);
    s->rows = calloc(LOGIT_ROWS * V, sizeof *s->rows);
    s->nll = calloc(longest, sizeof *s->nll);
    s->tokens = calloc(lanes, sizeof *s->tokens);
    s->go = calloc(lanes, sizeof *s->go);
    if (!s->lanes || !s->scores || !s->rows || !s->nll || !s->tokens || !s->go)
        return lam_fail(LAM_ERR_MEMORY, "scheduler: no memory for %d lanes", s->o.lanes);
    for (int i = 0; i < s->o.lanes; i++)
        LAM_TRY(lam_lane_open(s, &s->lanes[i]));
    return LAM_OK;
}

/* A segment and its memory; where segments are short and lanes many, twice what refreshes need at every tick. */
static int usual_rows(const lam_scheduler_options *o)
{
    const double one = (double)o->segment + o->mem_len, all = 2.0 * o->lanes * one / o->segment;
    return (int)(all > one ? all : one);
}

static lam_status build(lam_scheduler *s, const lam_scheduler_options *o)
{
    s->o = *o;
    LAM_TRY(lam_session_create(
        &s->one, s->engine->model,
        &(lam_session_options){.longest = o->segment, .mem_len = o->mem_len, .dev = o->dev}));
    s->o.segment = s->one->longest;
    s->o.mem_len = s->one->mem_len;
    s->o.lanes = o->lanes > 0 ? o->lanes : LANES;
    s->o.queue = o->queue > 0 ? o->queue : QUEUE;
    s->o.rows = o->rows > 0 ? o->rows : usual_rows(&s->o);
    LAM_TRY(open_batch(s));
    LAM_TRY(lam_prefix_create(&s->prefixes, s->o.segment, s->o.prefixes));
    return allocate(s);
}

lam_status lam_scheduler_create(lam_scheduler **out, const lam_engine *engine,
                                const lam_scheduler_options *options)
{
    *out = NULL;
    lam_scheduler *s = calloc(1, sizeof *s);
    if (!s)
        return lam_fail(LAM_ERR_MEMORY, "scheduler: no memory");
    s->engine = engine;
    const lam_status status = build(s, options);
    if (status != LAM_OK) {
        lam_scheduler_free(s);
        return status;
    }
    *out = s;
    return LAM_OK;
}

void lam_scheduler_free(lam_scheduler *s)
{
    if (!s)
        return;
    assert(!s->first && s->load.running == 0);
    if (s->lanes && s->one)
        lam_lane_select(s, NULL);
    for (int i = 0; s->lanes && i < s->o.lanes; i++)
        lam_lane_close(s, &s->lanes[i]);
    lam_prefix_free(s->prefixes);
    lam_stack_free(s->batch);
    lam_stack_free(s->probe);
    lam_session_free(s->one);
    free(s->lanes);
    free(s->scores);
    free(s->rows);
    free(s->nll);
    free(s->tokens);
    free(s->go);
    free(s);
}

int lam_scheduler_segment(const lam_scheduler *s)
{
    return s->o.segment;
}

int lam_scheduler_mem_len(const lam_scheduler *s)
{
    return s->o.mem_len;
}

lam_scheduler_load lam_scheduler_look(const lam_scheduler *s)
{
    lam_scheduler_load load = s->load;
    load.prefix_bytes = lam_prefix_bytes(s->prefixes);
    return load;
}

/* ---- queue and admission ---- */

lam_status lam_scheduler_submit(lam_scheduler *s, lam_job *job)
{
    if (s->load.waiting >= s->o.queue)
        return lam_fail(LAM_ERR_UNSUPPORTED, "the queue is full: %d jobs wait", s->load.waiting);
    if (job->o.text->segment > s->o.segment)
        return lam_fail(LAM_ERR_ARG, "segments of %d tokens, at most %d", job->o.text->segment,
                        s->o.segment);
    job->after = NULL;
    *(s->last ? &s->last->after : &s->first) = job;
    s->last = job;
    s->load.waiting++;
    return LAM_OK;
}

static lam_job *next_job(lam_scheduler *s)
{
    lam_job *job = s->first;
    s->first = job->after;
    s->last = s->first ? s->last : NULL;
    s->load.waiting--;
    return job;
}

/* The job has its last event; its lane is free. */
static void end_job(lam_scheduler *s, lam_lane *lane, lam_status status)
{
    lam_job *job = lane->job;
    if (status == LAM_OK && job->o.keep && job->stage == LAM_FINISHED)
        status = lam_lane_save(s, lane, job->o.text);
    lam_lane_leave(s, lane);
    lane->job = NULL;
    s->load.running--;
    lam_job_end(job, status, status == LAM_OK ? NULL : lam_error());
}

/* A cancelled job of a text that is kept leaves the text as it was. */
static void break_job(lam_scheduler *s, lam_lane *lane)
{
    lane->job->finish = LAM_FINISH_BREAK;
    lane->job->stage = LAM_READING;
    end_job(s, lane, LAM_OK);
}

static void admit(lam_scheduler *s)
{
    for (int i = 0; i < s->o.lanes && s->first; i++) {
        lam_lane *lane = &s->lanes[i];
        if (lane->job)
            continue;
        lane->job = next_job(s);
        s->load.running++;
        lam_job_begin(lane->job, lane->job->o.text);
        const lam_status status = lam_lane_load(s, lane, lane->job->o.text);
        if (status != LAM_OK)
            end_job(s, lane, status);
    }
}

/* Those in the queue need not wait for a lane to be ended. */
static void drop_cancelled(lam_scheduler *s)
{
    lam_job **at = &s->first, *last = NULL;
    while (*at) {
        lam_job *job = *at;
        if (!atomic_load(&job->cancelled)) {
            last = job;
            at = &job->after;
            continue;
        }
        *at = job->after;
        s->load.waiting--;
        job->finish = LAM_FINISH_BREAK;
        lam_job_end(job, LAM_OK, NULL);
    }
    s->last = last;
    for (int i = 0; i < s->o.lanes; i++)
        if (s->lanes[i].job && atomic_load(&s->lanes[i].job->cancelled))
            break_job(s, &s->lanes[i]);
}

/* ---- prefill: prompts and refreshes, one lane at a time ---- */

static int is_awake(const lam_lane *lane)
{
    return lane->job && !atomic_load(&lane->job->paused);
}

/* Has the lane something to do that the batch cannot? */
static int works_alone(const lam_lane *lane)
{
    return is_awake(lane) && !lane->joined;
}

/* Row `row` of the logits of `stack`. */
static lam_status row_is_finite(const lam_scheduler *s, const lam_lane *lane,
                                const lam_stack *stack, int row)
{
    return lam_stack_finite(stack, row) == (size_t)s->engine->model->cfg.n_token
               ? LAM_OK
               : lam_fail(LAM_ERR_NUMERIC, "after %lld tokens a score is not finite",
                          (long long)lane->length);
}

/* The lane's token was fed, in row `row` of `stack`, whose scores were taken: draws the next one, or ends. */
static void after_token(lam_scheduler *s, lam_lane *lane, const lam_stack *stack, int row)
{
    const double *scores = s->scores + (size_t)row * (size_t)s->engine->model->cfg.n_token;
    lam_job *job = lane->job;
    lam_status status = row_is_finite(s, lane, stack, row);
    if (status == LAM_OK && job->stage == LAM_SETTLING) {
        job->stage = LAM_FINISHED;
    } else if (status == LAM_OK) {
        status = lam_job_draw(job, scores);
        s->load.drawn++;
    }
    if (status != LAM_OK || job->stage == LAM_FINISHED)
        end_job(s, lane, lam_engine_blame(s->engine, status));
}

/* One token, the first of a segment or of a text that comes from rest. */
static lam_status feed_alone(lam_scheduler *s, lam_lane *lane)
{
    if (lane->job->stage != LAM_ASKING) {
        if (lane->done == lane->segment)
            lam_lane_commit(s, lane);
        lam_lane_feed(s, lane, &lane->job->next, 1);
    } else {
        lam_lane_hold(s, lane);
    }
    LAM_TRY(lam_stack_logits(lane->stack, s->scores));
    after_token(s, lane, lane->stack, 0);
    return LAM_OK;
}

/* What comes next in this lane.  A failure of its own ends its job, one of the device all of them. */
static lam_status work_alone(lam_scheduler *s, lam_lane *lane)
{
    if (lane->job->stage == LAM_READING) {
        const lam_status status = lam_lane_read(s, lane);
        if (status == LAM_ERR_DEVICE)
            return status;
        if (status != LAM_OK || lane->job->stage == LAM_FINISHED)
            end_job(s, lane, lam_engine_blame(s->engine, status));
    } else if (lane->job->stage == LAM_FINISHED) { /* there was nothing to do */
        end_job(s, lane, LAM_OK);
    } else {
        LAM_TRY(feed_alone(s, lane));
    }
    if (!lane->job || !lane->live || !s->batch)
        return LAM_OK;
    if (lane->done == lane->segment) /* a row of the batch is always free */
        lam_lane_commit(s, lane);
    else
        lane->joined = lane->job->stage != LAM_READING;
    return LAM_OK;
}

static lam_status advance_alone(lam_scheduler *s)
{
    int rows = 0;
    for (int i = 0; i < s->o.lanes; i++) {
        lam_lane *lane = &s->lanes[(s->turn + i) % s->o.lanes];
        if (!works_alone(lane))
            continue;
        const int reads = lane->job->stage == LAM_READING ? lane->segment - lane->done : 1;
        const int cost = lam_lane_cost(s, lane, reads);
        if (s->batch && rows > 0 && rows + cost > s->o.rows) {
            s->turn = (s->turn + i) % s->o.lanes;
            return LAM_OK;
        }
        rows += cost;
        LAM_TRY(work_alone(s, lane));
    }
    return LAM_OK;
}

/* ---- decode: all lanes in one batch ---- */

/* As many streams as those in use need. */
static int width_of(const lam_scheduler *s)
{
    int used = 0, width = 1;
    for (int b = 0; b < s->o.lanes; b++)
        used = s->lanes[b].joined ? b + 1 : used;
    while (width < used)
        width *= 2;
    return s->o.fixed || width > s->o.lanes ? s->o.lanes : width;
}

static lam_status advance_together(lam_scheduler *s)
{
    int going = 0;
    for (int b = 0; b < s->o.lanes; b++) {
        const lam_lane *lane = &s->lanes[b];
        s->go[b] = lane->joined && is_awake(lane);
        s->tokens[b] = s->go[b] ? lane->job->next : 0;
        going += s->go[b];
    }
    if (going == 0)
        return LAM_OK;
    const int width = width_of(s);
    lam_stack_set_width(s->batch, width);
    lam_stack_forward_batch(s->batch, s->tokens, s->go);
    LAM_TRY(lam_stack_logits(s->batch, s->scores));
    s->load.ticks++;
    s->load.streams += going;
    for (int b = 0; b < width; b++)
        if (s->go[b]) {
            lam_lane *lane = &s->lanes[b];
            lam_lane_went(lane, s->tokens[b]);
            after_token(s, lane, s->batch, b);
            if (lane->job && lane->done == lane->segment)
                lam_lane_commit(s, lane);
        }
    return LAM_OK;
}

/* ---- tick ---- */

/* The device has failed: nobody can go on. */
static void end_all(lam_scheduler *s, lam_status status)
{
    char reason[1024];
    snprintf(reason, sizeof reason, "%s", lam_error());
    for (int i = 0; i < s->o.lanes; i++)
        if (s->lanes[i].job)
            end_job(s, &s->lanes[i], lam_fail(status, "%s", reason));
    while (s->first)
        lam_job_end(next_job(s), status, reason);
    lam_fail(status, "%s", reason);
}

lam_status lam_scheduler_tick(lam_scheduler *s, bool *busy)
{
    *busy = false;
    drop_cancelled(s);
    admit(s);
    lam_status status = advance_alone(s);
    if (status == LAM_OK && s->batch)
        status = advance_together(s);
    if (status != LAM_OK)
        end_all(s, status);
    *busy = s->first && s->load.running < s->o.lanes;
    for (int i = 0; i < s->o.lanes; i++)
        *busy |= is_awake(&s->lanes[i]);
    return status;
}
