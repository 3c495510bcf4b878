/* job.h -- one thing to do with one text: read tokens, say how likely they were, draw more.
 *
 * A job is made and freed by whoever wants it done, and carried out by a scheduler (scheduler.h), which calls its
 * sink.  Cancelling and pausing are allowed from any thread while the job exists. */
#ifndef LAM_INFER_JOB_H
#define LAM_INFER_JOB_H

#include "infer/engine.h"
#include "infer/generate.h"
#include "infer/sampler.h"
#include "infer/timeline.h"

#include <stdbool.h>

enum { LAM_JOB_TOP = 64 }; /* most likely tokens that can be reported */

typedef enum lam_job_kind {
    LAM_JOB_READ,  /* a token of the prompt and how likely it was, if that was asked for */
    LAM_JOB_DRAWN, /* a new token, with the text that may be shown now */
    LAM_JOB_ENDED  /* the last event: held-back text, and how it ended */
} lam_job_kind;

typedef struct lam_job_event {
    lam_job_kind kind;
    int32_t token;
    double logprob;        /* under the model itself; NaN: there was nothing before the token */
    const lam_likely *top; /* [n_top], most likely first */
    int n_top;
    const char *text; /* `size` bytes, whole characters */
    size_t size;
    lam_finish finish;  /* of LAM_JOB_ENDED; LAM_FINISH_BREAK: it was cancelled, or */
    lam_status status;  /* not LAM_OK: it failed, and */
    const char *reason; /* why */
} lam_job_event;

/* Everything in the event is borrowed for the call.  Called by the scheduler's thread. */
typedef void lam_job_sink(void *user, const lam_job_event *event);

typedef struct lam_job_options {
    lam_timeline *text;    /* kept until the job has ended; nobody else may use it meanwhile */
    const int32_t *tokens; /* [n], copied: read first; each in the vocabulary */
    size_t n;
    int score; /* 1: report every token that is read */
    int top;   /* and so many of the most likely ones with every token, up to LAM_JOB_TOP */
    int draw;  /* tokens to draw, at most */
    int keep;  /* 1: the text has then read all of it; 0: it stays as it was */
    lam_sampler_options sampler;
    uint64_t sample;          /* makes jobs of one seed draw independently */
    const char *const *stops; /* [n_stops], copied: the job ends before them */
    int n_stops;
    lam_job_sink *sink;
    void *user;
} lam_job_options;

typedef struct lam_job lam_job;

/* An empty text that is to be continued begins with the engine's start token.  engine is kept. */
lam_status lam_job_create(lam_job **out, const lam_engine *engine, const lam_job_options *options);
/* Before it was submitted, or after LAM_JOB_ENDED; also from within that call.  NULL is fine. */
void lam_job_free(lam_job *job);

/* The job ends with LAM_FINISH_BREAK at the next tick. */
void lam_job_cancel(lam_job *job);
/* It waits where it is, until it is resumed. */
void lam_job_pause(lam_job *job, bool paused);
/* Tokens of the prompt that a prefix cache spared; once it has ended. */
size_t lam_job_cached(const lam_job *job);

#endif
