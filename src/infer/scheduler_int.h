/* scheduler_int.h -- what the files of the scheduler share: lanes, and the insides of jobs. */
#ifndef LAM_INFER_SCHEDULER_INT_H
#define LAM_INFER_SCHEDULER_INT_H

#include "infer/emitter.h"
#include "infer/prefix.h"
#include "infer/scheduler.h"
#include "infer/session_int.h"

#include <stdatomic.h>

/* Where a job is. */
typedef enum lam_stage {
    LAM_READING,  /* tokens of the prompt, all but the last */
    LAM_ASKING,   /* nothing to feed: what follows what the text has read? */
    LAM_DRAWING,  /* feed `next`, then draw */
    LAM_SETTLING, /* feed `next`, which a text that is kept has read too, then end */
    LAM_FINISHED
} lam_stage;

struct lam_job {
    const lam_engine *engine;
    lam_job_options o; /* tokens and stops are copies */
    char **stops;
    lam_sampler *sampler;
    lam_emitter *emitter; /* NULL: nothing is drawn */
    lam_stage stage;
    size_t read, cached;
    int drawn;
    int32_t next;
    lam_finish finish;
    int from_start; /* the text was empty, so its tokens name what it remembers */
    atomic_int cancelled, paused;
    lam_job *after; /* in the queue */
};

/* Room for one running text. */
typedef struct lam_lane {
    lam_stack *stack; /* where its segments begin: one for all lanes, or its own */
    lam_mem mem;      /* its memory, unless the stack has it (selected) */
    void *base;
    lam_job *job; /* NULL: free */
    lam_past *past;
    int changed; /* the memory went on since it was `past` */
    int64_t length;
    int segment, forgets, done;
    int32_t *open; /* [longest] */
    int live;      /* the stack holds the segment that has begun */
    int stream;    /* of the batch, which holds it; -1: none */
} lam_lane;

struct lam_scheduler {
    const lam_engine *engine;
    lam_scheduler_options o;
    lam_session *one; /* segments begin in its stack; exports and imports go through it */
    lam_stack *batch; /* NULL: the model cannot */
    lam_stack *probe; /* for views; made when the first one is asked for */
    lam_mem home;     /* the stack's own memory while a lane is selected */
    lam_lane *selected;
    lam_lane *lanes;
    int turn; /* whose it is to work alone */
    lam_prefix_cache *prefixes;
    lam_job *first, *last;
    lam_scheduler_load load;
    double *scores;       /* [lanes][V] */
    int32_t *tokens;      /* [lanes or longest] */
    unsigned char *go;    /* [lanes] */
    lam_lane **by_stream; /* [lanes] */
    double *nll, *rows;   /* [longest], [ROWS][V] */
};

/* ---- lane.c ---- */

lam_status lam_lane_open(lam_scheduler *s, lam_lane *lane);
void lam_lane_close(lam_scheduler *s, lam_lane *lane);
/* The stack's memory becomes the lane's; NULL: nobody's. */
void lam_lane_select(lam_scheduler *s, lam_lane *lane);
lam_mem *lam_lane_mem(lam_scheduler *s, lam_lane *lane);

lam_status lam_lane_load(lam_scheduler *s, lam_lane *lane, const lam_timeline *text);
/* The text becomes what the lane has read. */
lam_status lam_lane_save(lam_scheduler *s, lam_lane *lane, lam_timeline *text);
/* What the lane remembers, kept by the lane; NULL: nothing. */
lam_status lam_lane_past(lam_scheduler *s, lam_lane *lane, lam_past **out);

/* The segment that has begun is in the stack afterwards. */
void lam_lane_hold(lam_scheduler *s, lam_lane *lane);
/* Ends a full segment. */
void lam_lane_commit(lam_scheduler *s, lam_lane *lane);
/* Feeds n tokens, no more than the segment has room for, in the stack. */
void lam_lane_feed(lam_scheduler *s, lam_lane *lane, const int32_t *tokens, int n);
/* Rows that this would compute. */
int lam_lane_cost(lam_scheduler *s, lam_lane *lane, int n);
/* What the stack holds goes to a stream of the batch. */
void lam_lane_join(lam_scheduler *s, lam_lane *lane);
void lam_lane_leave(lam_scheduler *s, lam_lane *lane);
/* The stream was fed this token. */
void lam_lane_went(lam_lane *lane, int32_t token);

/* ---- job.c ---- */

/* What stands between a job and its lane: where it begins. */
void lam_job_begin(lam_job *job, const lam_timeline *text);
/* The token that follows, drawn from scores [V]; moves the job on. */
lam_status lam_job_draw(lam_job *job, const double *scores);
/* A token of the prompt. */
void lam_job_tell_read(lam_job *job, int32_t token, double logprob, const lam_likely *top);
/* The last event; nothing of the job may be used afterwards. */
void lam_job_end(lam_job *job, lam_status status, const char *reason);

/* ---- reading.c ---- */

/* Reads a piece of the prompt. */
lam_status lam_lane_read(lam_scheduler *s, lam_lane *lane);

#endif
