/* completion.h -- one completion: parsed by the HTTP thread or the clerk (complete.c), run by a worker
 * (completion_jobs.c), written by the HTTP thread as a stream or by the clerk as a whole (completion_json.c). */
#ifndef LAM_SERVE_COMPLETION_H
#define LAM_SERVE_COMPLETION_H

#include "serve/completion_request.h"
#include "serve/server_int.h"

/* A prompt as tokens and as echoed text. */
typedef struct lam_read_prompt {
    int32_t *tokens;
    size_t n;
    lam_text echo;
    int *offsets; /* [n]: characters of the echo before each token; NULL: not requested */
    int chars;    /* of the echo */
} lam_read_prompt;

/* One event of a job; `n_top` lam_likely and `size` bytes of text follow, then padding to 8 bytes. */
typedef struct lam_record {
    int32_t kind, token; /* lam_job_kind */
    double logprob;
    uint32_t n_top, size;
} lam_record;

typedef struct lam_choice {
    lam_completion *c;
    int index;
    const lam_read_prompt *prompt;
    lam_timeline *text; /* its own; NULL: the session's */
    /* Guarded by c->lock. */
    lam_job *job;    /* NULL: it has ended, or not begun */
    lam_text events; /* of lam_record */
    int paused, ended;
    lam_finish finish;
    lam_status status;
    char *reason;
    size_t cached;
    /* Used by the thread that writes the response. */
    lam_text
        taken; /* of `events`; the two change places, so that no thread allocates for each token */
    int begun, closed, chars, drawn;
    size_t read;
} lam_choice;

typedef enum lam_completion_form { LAM_AS_COMPLETION, LAM_AS_FEED } lam_completion_form;

struct lam_completion {
    lam_request *x; /* held while jobs run */
    lam_worker *w;
    lam_completion_form form;
    lam_completion_request r;
    char id[LAM_ID_ROOM];
    time_t created;
    uint64_t seed;
    lam_read_prompt *prompts; /* [r.n_prompts] */
    lam_choice *choices;      /* [n] */
    int n;
    size_t tokens; /* of all prompts */
    lam_call call;
    lam_text head; /* of each object, made by the writing thread */
    /* Used by the worker's thread. */
    lam_completion *next,
        **at; /* in the worker's list of streams that have something new; at NULL: not there */
    lam_held *held;            /* whose text the job has, or NULL */
    char session[LAM_ID_ROOM]; /* "": none */
    long long length;          /* of its text, at the end */
    pthread_mutex_t lock;      /* guards: */
    int left, cancelled;
};

/* Takes ownership of the request, finds the model and encodes the prompts; answers x if that fails. */
void lam_completion_begin(lam_request *x, lam_completion_request *r, lam_completion_form form);

/* completion_jobs.c: the worker's part. */
void lam_completion_start(void *completion);
void lam_completion_cancel(lam_request *x);
/* After a tick: wakes all streams that have new events, unless some were woken just before and `at_once` is 0. */
void lam_completions_tell(lam_worker *w, int at_once);

/* completion_json.c */
int lam_completion_fill(lam_request *x, lam_text *out); /* a stream */
void lam_completion_render(void *request);              /* the whole; the clerk's */

#endif
