/* job.c -- see job.h: the options and the events of a job, token by token. */
#include "infer/scheduler_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lam_status no_memory(void)
{
    return lam_fail(LAM_ERR_MEMORY, "job: no memory");
}

static lam_status copy_options(lam_job *job, const lam_job_options *o)
{
    int32_t *tokens = malloc((o->n + 1) * sizeof *tokens);
    job->o = *o;
    job->o.tokens = tokens;
    job->o.stops = NULL;
    job->stops = calloc((size_t)o->n_stops + 1, sizeof *job->stops);
    if (!tokens || !job->stops)
        return no_memory();
    if (o->n > 0)
        memcpy(tokens, o->tokens, o->n * sizeof *tokens);
    for (int i = 0; i < o->n_stops; i++)
        if (!(job->stops[i] = strdup(o->stops[i])))
            return no_memory();
    job->o.stops = (const char *const *)job->stops;
    return LAM_OK;
}

static lam_status build(lam_job *job, const lam_job_options *o)
{
    const int V = job->engine->model->cfg.n_token;
    LAM_TRY(copy_options(job, o));
    job->o.top = o->top > LAM_JOB_TOP ? LAM_JOB_TOP : o->top;
    job->o.top = job->o.top > V ? V : job->o.top;
    for (size_t i = 0; i < o->n; i++)
        if (o->tokens[i] < 0 || o->tokens[i] >= V)
            return lam_fail(LAM_ERR_ARG, "token %d is outside the vocabulary of %d", o->tokens[i],
                            V);
    if (o->draw <= 0)
        return LAM_OK;
    if (o->n == 0 && o->text->length > 0 && o->text->done == 0) /* nothing has logits */
        return lam_fail(LAM_ERR_ARG,
                        "nothing was read since the text's segment ended: give at least one token");
    LAM_TRY(lam_sampler_create(&job->sampler, &o->sampler, V, o->sample));
    return lam_emitter_create(&job->emitter, job->engine->vocab, job->o.stops, o->n_stops);
}

lam_status lam_job_create(lam_job **out, const lam_engine *engine, const lam_job_options *options)
{
    *out = NULL;
    lam_job *job = calloc(1, sizeof *job);
    if (!job)
        return no_memory();
    job->engine = engine;
    const lam_status status = build(job, options);
    if (status != LAM_OK) {
        lam_job_free(job);
        return status;
    }
    *out = job;
    return LAM_OK;
}

void lam_job_free(lam_job *job)
{
    if (!job)
        return;
    for (int i = 0; job->stops && i < job->o.n_stops; i++)
        free(job->stops[i]);
    free(job->stops);
    free((int32_t *)job->o.tokens);
    lam_sampler_free(job->sampler);
    lam_emitter_free(job->emitter);
    free(job);
}

void lam_job_cancel(lam_job *job)
{
    atomic_store(&job->cancelled, 1);
}

void lam_job_pause(lam_job *job, bool paused)
{
    atomic_store(&job->paused, paused);
}

size_t lam_job_cached(const lam_job *job)
{
    return job->cached;
}

/* ---- progress of a job ---- */

void lam_job_begin(lam_job *job, const lam_timeline *text)
{
    lam_job_options *o = &job->o;
    job->from_start = text->length == 0 && !text->forgets;
    if (o->n == 0 && text->length == 0 && o->draw > 0) { /* tokens has room for one */
        ((int32_t *)o->tokens)[0] = lam_engine_start_token(job->engine);
        o->n = 1;
        o->score = 0; /* nobody has asked for this one */
    }
    for (size_t i = 0; i < o->n && job->emitter; i++) {
        lam_sampler_note(job->sampler, o->tokens[i]);
        lam_emitter_prompt(job->emitter, o->tokens[i]);
    }
    job->finish = LAM_FINISH_LENGTH;
    job->stage = o->n > 0 ? LAM_READING : o->draw > 0 ? LAM_ASKING : LAM_FINISHED;
}

void lam_job_tell_read(lam_job *job, int32_t token, double logprob, const lam_likely *top)
{
    job->o.sink(job->o.user, &(lam_job_event){.kind = LAM_JOB_READ,
                                              .token = token,
                                              .logprob = logprob,
                                              .top = top,
                                              .n_top = top ? job->o.top : 0});
}

/* The text that is kept has read its last token as well. */
static void stop_drawing(lam_job *job, lam_finish finish)
{
    job->finish = finish;
    job->stage = job->o.keep ? LAM_SETTLING : LAM_FINISHED;
}

lam_status lam_job_draw(lam_job *job, const double *scores)
{
    lam_likely top[LAM_JOB_TOP];
    lam_job_event e = {.kind = LAM_JOB_DRAWN, .top = top, .n_top = job->o.top};
    bool stopped = false;
    LAM_TRY(lam_sampler_draw(job->sampler, scores, &e.token, &e.logprob));
    LAM_TRY(lam_emitter_push(job->emitter, e.token, &e.text, &e.size, &stopped));
    if (e.n_top > 0)
        lam_sampler_likeliest(job->sampler, scores, top, e.n_top);
    job->next = e.token;
    job->drawn++;
    job->stage = LAM_DRAWING;
    if (stopped)
        stop_drawing(job, LAM_FINISH_STOP);
    else if (job->drawn == job->o.draw)
        stop_drawing(job, LAM_FINISH_LENGTH);
    job->o.sink(job->o.user, &e);
    return LAM_OK;
}

void lam_job_end(lam_job *job, lam_status status, const char *reason)
{
    lam_job_event e = {
        .kind = LAM_JOB_ENDED, .finish = job->finish, .status = status, .reason = reason};
    if (job->emitter && lam_emitter_finish(job->emitter, &e.text, &e.size) != LAM_OK)
        e.size = 0;
    job->o.sink(job->o.user, &e);
}
