/* completion_jobs.c -- completions in the worker's thread: starts the jobs of a completion and records their events. */
#include "serve/completion.h"

#include "core/clock.h"

#include <stdlib.h>
#include <string.h>

/* Seconds from one waking of readers to the next, at least: the tokens of a stream that come in between share one event.
 * Nobody reads faster, and an event costs about as much processor time as computing a token of a small model. */
static const double EVERY = 0.02;

/* ---- events of jobs ---- */

static void add_record(lam_choice *ch, const lam_job_event *e)
{
    static const char zeros[8] = {0};
    const lam_record r = {.kind = (int32_t)e->kind,
                          .token = e->token,
                          .logprob = e->logprob,
                          .n_top = (uint32_t)e->n_top,
                          .size = (uint32_t)e->size};
    lam_text_bytes(&ch->events, &r, sizeof r);
    lam_text_bytes(&ch->events, e->top, (size_t)e->n_top * sizeof *e->top);
    lam_text_bytes(&ch->events, e->text, e->size);
    lam_text_bytes(&ch->events, zeros, (8 - e->size % 8) % 8);
}

/* ---- streams: when to wake their readers ---- */

static void remember(lam_completion *c)
{
    lam_worker *w = c->w;
    if (c->at)
        return;
    c->next = w->untold;
    c->at = &w->untold;
    if (c->next)
        c->next->at = &c->next;
    w->untold = c;
}

static void forget(lam_completion *c)
{
    if (!c->at)
        return;
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    c->at = NULL;
}

/* Requests that are held until they have been woken.  To wake one takes locks that the HTTP thread uses and a system call,
 * several microseconds, in which the worker would not compute. */
enum { TOLD_TOGETHER = 64 };
typedef struct news {
    lam_call call;
    int n;
    lam_request *x[TOLD_TOGETHER];
} news;

static void wake_all(void *arg)
{
    news *told = arg;
    for (int i = 0; i < told->n; i++) {
        lam_request_wake(told->x[i]);
        lam_request_drop(told->x[i]);
    }
    free(told);
}

/* All together: to wake the herald and the HTTP thread for each stream at its own time took several times as many
 * switches between threads. */
void lam_completions_tell(lam_worker *w, int at_once)
{
    lam_calls *herald = &w->server->herald;
    news *told = NULL;
    if (!w->untold)
        return;
    const double now = lam_clock();
    if (!at_once && now - w->told < EVERY)
        return;
    w->told = now;
    while (w->untold) {
        lam_completion *c = w->untold;
        if (!told && !(told = calloc(1, sizeof *told)))
            break; /* no memory: at another tick */
        forget(c);
        told->x[told->n++] = lam_request_hold(c->x);
        if (told->n == TOLD_TOGETHER) {
            lam_calls_put(herald, &told->call, wake_all, told);
            told = NULL;
        }
    }
    if (told)
        lam_calls_put(herald, &told->call, wake_all, told);
}

/* All jobs have ended: the text is the session's again, and the response can be written. */
static void finish(lam_completion *c)
{
    lam_request *x = c->x;
    forget(c);
    if (c->held) {
        c->held->busy = 0;
        lam_shelf_moved(&x->server->shelf, c->held);
        c->length = c->held->text->length;
    }
    lam_worker_let_out(c->w, c->n, c->tokens);
    if (c->r.stream) {
        lam_request_wake(x);
        lam_request_drop(x);
    } else {
        lam_request_clerk(x, lam_completion_render); /* which drops it */
    }
}

static void end(lam_choice *ch, const lam_job_event *e)
{
    ch->ended = 1;
    ch->finish = e->finish;
    ch->status = e->status;
    ch->reason = e->reason ? strdup(e->reason) : NULL;
    ch->cached = lam_job_cached(ch->job);
    lam_job_free(ch->job);
    ch->job = NULL;
    ch->c->left--;
}

static void on_event(void *user, const lam_job_event *e)
{
    lam_choice *ch = user;
    lam_completion *c = ch->c;
    pthread_mutex_lock(&c->lock);
    add_record(ch, e);
    if (e->kind == LAM_JOB_ENDED) {
        end(ch, e);
    } else if (c->r.stream && ch->events.size > LAM_STREAM_BYTES && !ch->paused) {
        ch->paused = 1; /* its reader is slow; whoever writes resumes it */
        lam_job_pause(ch->job, true);
    }
    const int last = c->left == 0;
    pthread_mutex_unlock(&c->lock);
    if (last)
        finish(c);
    else if (c->r.stream)
        remember(c);
}

void lam_completion_cancel(lam_request *x)
{
    lam_completion *c = x->user;
    pthread_mutex_lock(&c->lock);
    c->cancelled = 1;
    for (int i = 0; c->choices && i < c->n; i++)
        if (c->choices[i].job)
            lam_job_cancel(c->choices[i].job);
    pthread_mutex_unlock(&c->lock);
    if (c->w)
        lam_calls_wake(&c->w->calls);
}

/* ---- starting jobs ---- */

/* The text of a choice: the session's own where that is kept, else a fork of it or a new one. */
static lam_status find_text(lam_completion *c, lam_choice *ch, lam_timeline **out)
{
    const lam_timeline *from = NULL;
    *out = c->held ? c->held->text : NULL;
    if (*out)
        return LAM_OK;
    if (c->session[0] != '\0')
        from = lam_shelf_find(&c->x->server->shelf, c->w, LAM_SESSION, c->session)->text;
    if (from)
        LAM_TRY(lam_timeline_fork(&ch->text, from));
    else
        LAM_TRY(lam_timeline_create(&ch->text, lam_scheduler_segment(c->w->scheduler), 0));
    *out = ch->text;
    return LAM_OK;
}

static lam_status make_job(lam_completion *c, lam_choice *ch)
{
    const lam_completion_request *r = &c->r;
    lam_timeline *text;
    LAM_TRY(find_text(c, ch, &text));
    const lam_job_options o = {.text = text,
                               .tokens = ch->prompt->tokens,
                               .n = ch->prompt->n,
                               .score = r->echo && r->logprobs >= 0,
                               .top = r->logprobs > 0 ? r->logprobs : 0,
                               .draw = r->max_tokens,
                               .keep = c->held != NULL,
                               .sampler = {.temperature = r->temperature,
                                           .top_k = r->top_k,
                                           .top_p = r->top_p,
                                           .min_p = r->min_p,
                                           .repeat_penalty = r->repetition_penalty,
                                           .repeat_last = 64,
                                           .seed = c->seed,
                                           .never = lam_vocab_unk(c->w->engine->vocab)},
                               .sample = (uint64_t)ch->index,
                               .stops = (const char *const *)r->stops,
                               .n_stops = r->n_stops,
                               .sink = on_event,
                               .user = ch};
    return lam_job_create(&ch->job, c->w->engine, &o);
}

/* The session that the request names or makes.  Returns the status of HTTP; 0: fine. */
static int find_session(lam_completion *c)
{
    lam_shelf *shelf = &c->x->server->shelf;
    lam_held *held = NULL;
    lam_timeline *text;
    if (c->r.session[0] != '\0') {
        held = lam_shelf_find(shelf, c->w, LAM_SESSION, c->r.session);
        if (!held)
            return lam_fail(LAM_ERR_ARG, "there is no session %s", c->r.session), 404;
        if (held->busy)
            return lam_fail(LAM_ERR_ARG, "session %s is at work", held->id), 409;
    } else if (c->r.keep) {
        if (lam_timeline_create(&text, lam_scheduler_segment(c->w->scheduler), 0) != LAM_OK)
            return 503;
        if (lam_shelf_put(shelf, &held, c->w, LAM_SESSION, text, NULL) != LAM_OK)
            return 429;
    }
    if (held)
        memcpy(c->session, held->id, sizeof c->session);
    c->held = c->r.keep ? held : NULL;
    return 0;
}

/* Nothing was submitted: the response is an error. */
static void refuse(lam_completion *c, int status, const char *param)
{
    pthread_mutex_lock(&c->lock); /* the client may leave right now, which cancels the jobs */
    for (int i = 0; i < c->n; i++) {
        lam_job_free(c->choices[i].job);
        c->choices[i].job = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    lam_reply_error(&c->x->reply, status, param, "%s", lam_error());
    lam_worker_let_out(c->w, c->n, c->tokens);
    lam_request_done(c->x);
    lam_request_drop(c->x);
}

void lam_completion_start(void *arg)
{
    lam_completion *c = arg;
    const int problem = find_session(c);
    if (problem != 0) {
        refuse(c, problem, "session");
        return;
    }
    lam_status status = LAM_OK;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->n && status == LAM_OK; i++)
        status = make_job(c, &c->choices[i]);
    if (status == LAM_OK && (c->cancelled || lam_request_is_gone(c->x)))
        status = lam_fail(LAM_ERR_INTERRUPTED, "the client is gone");
    c->left = c->n;
    pthread_mutex_unlock(&c->lock);
    if (status != LAM_OK) {
        refuse(c, status == LAM_ERR_ARG ? 400 : 503, NULL);
        return;
    }
    if (c->held)
        c->held->busy = 1;
    if (c->r.stream)
        lam_request_stream(c->x);
    /* Let in, so there is room; the last one may have ended when this returns. */
    for (int i = 0, n = c->n; i < n; i++)
        if (lam_scheduler_submit(c->w->scheduler, c->choices[i].job) != LAM_OK) {
            const lam_job_event ended = {.kind = LAM_JOB_ENDED,
                                         .finish = LAM_FINISH_BREAK,
                                         .status = LAM_ERR_UNSUPPORTED,
                                         .reason = lam_error()};
            on_event(&c->choices[i], &ended);
        }
}
