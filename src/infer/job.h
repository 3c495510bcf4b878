/* job.h -- work on one text: read tokens, report their log-probabilities, sample new ones.
 *
 * The caller creates and frees a job; a scheduler (scheduler.h) runs it and calls its sink.  Any thread may cancel or
 * pause a job while it exists. */
#ifndef LAM_INFER_JOB_H
#define LAM_INFER_JOB_H

#include "infer/engine.h"
#include "infer/generate.h"
#include "infer/sampler.h"
#include "infer/timeline.h"

#include <stdbool.h>

enum { LAM_JOB_TOP = 64 }; /* most likely tokens that can be reported */

typedef enum lam_job_kind {
    LAM_JOB_READ,  /* a token of the prompt and its log-probability, if requested */
    LAM_JOB_DRAWN, /* a new token, with the text that can be shown now */
    LAM_JOB_ENDED  /* the last event: held-back text, and how it ended */
} lam_job_kind;

typedef struct lam_job_event {
    lam_job_kind kind;
    int32_t token;
    double logprob;        /* before sampling settings apply; NaN: no token came before this one */
    const lam_likely *top; /* [n_top], most likely first */
    int n_top;
    const char *text; /* `size` bytes, whole characters */
    size_t size;
    lam_finish finish;  /* of LAM_JOB_ENDED; LAM_FINISH_BREAK: cancelled or failed */
    lam_status status;  /* not LAM_OK: the job failed */
    const char *reason; /* the message of that failure */
} lam_job_event;

/* Everything in the event is borrowed for the call.  Called by the scheduler's thread. */
typedef void lam_job_sink(void *user, const lam_job_event *event);

typedef struct lam_job_options {
    lam_timeline *text;    /* kept until the job has ended; nothing else may use it meanwhile */
    const int32_t *tokens; /* [n], copied: read first; each in the vocabulary */
    size_t n;
    int score; /* 1: report every token that is read */
    int top;   /* report this many of the most likely tokens too, up to LAM_JOB_TOP */
    int draw;  /* maximum number of tokens to sample */
    int keep;  /* 1: add all tokens to the text; 0: leave the text as it was */
    lam_sampler_options sampler;
    uint64_t sample;          /* makes jobs with the same seed sample independently */
    const char *const *stops; /* [n_stops], copied: stop strings */
    int n_stops;
    lam_job_sink *sink;
    void *user;
} lam_job_options;

typedef struct lam_job lam_job;

/* Creates a job.  An empty text starts with the engine's start token.  LAM_ERR_ARG, among others: no tokens to read, and the
 * text has none of its segment to draw from.  engine is kept. */
lam_status lam_job_create(lam_job **out, const lam_engine *engine, const lam_job_options *options);
/* Frees a job that was not submitted or has ended; its sink may call this on LAM_JOB_ENDED.  NULL is fine. */
void lam_job_free(lam_job *job);

/* The job ends with LAM_FINISH_BREAK at the next tick. */
void lam_job_cancel(lam_job *job);
/* Pauses the job until it is resumed. */
void lam_job_pause(lam_job *job, bool paused);
/* Tokens of the prompt taken from the prefix cache; valid when the job has ended. */
size_t lam_job_cached(const lam_job *job);

#endif
