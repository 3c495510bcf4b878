/* scheduler_int.h -- declarations shared by the files of the scheduler: lanes, and the structs of jobs. */
#ifndef LAM_INFER_SCHEDULER_INT_H
#define LAM_INFER_SCHEDULER_INT_H

#include "infer/emitter.h"
#include "infer/prefix.h"
#include "infer/scheduler.h"
#include "infer/session_int.h"

#include <stdatomic.h>

/* The state of a job. */
typedef enum lam_stage {
    LAM_READING,  /* tokens of the prompt, all but the last */
    LAM_ASKING,   /* nothing to feed: sample what follows the text */
    LAM_DRAWING,  /* feed `next`, then sample */
    LAM_SETTLING, /* feed `next`, which belongs to a kept text too, then end */
    LAM_FINISHED
} lam_stage;

struct lam_job {
    const lam_engine *engine;
    lam_job_options o; /* tokens and stops are copies */
    char **stops;
    lam_sampler *sampler;
    lam_emitter *emitter; /* NULL: the job samples nothing */
    lam_stage stage;
    size_t read, cached;
    int drawn;
    int32_t next;
    lam_finish finish;
    int from_start; /* the text was empty, so its tokens identify its state */
    atomic_int cancelled, paused;
    lam_job *after; /* in the queue */
};

/* The resources of one running text. */
typedef struct lam_lane {
    lam_stack *stack; /* where its segments begin: shared by all lanes, or its own */
    lam_mem mem;      /* its memory, unless the stack has it (selected) */
    void *base;
    lam_job *job; /* NULL: free */
    lam_past *past;
    int changed; /* the memory has changed since `past` was taken */
    int64_t length;
    int segment, forgets, done;
    int32_t *open;      /* [longest] */
    int stream;         /* its stream of the batch */
    int live;           /* `done` rows of the current segment are there */
    int joined;         /* the batch feeds it */
    lam_graphs *graphs; /* of beginning segments (ops.h, repeat) */
} lam_lane;

struct lam_scheduler {
    const lam_engine *engine;
    lam_scheduler_options o;
    lam_session *one; /* segments begin in its stack; exports and imports go through it */
    lam_stack *batch; /* NULL: the model cannot */
    lam_stack *probe; /* for views; created with the first one */
    lam_mem home;     /* the stack's own memory while a lane is selected */
    lam_lane *selected;
    lam_lane *lanes;
    int turn; /* the lane whose turn it is to work alone */
    lam_prefix_cache *prefixes;
    lam_job *first, *last;
    lam_scheduler_load load;
    double *scores;     /* [lanes][V] */
    int32_t *tokens;    /* [lanes or longest] */
    unsigned char *go;  /* [lanes] */
    double *nll, *rows; /* [longest], [ROWS][V] */
};

/* ---- lane.c ---- */

lam_status lam_lane_open(lam_scheduler *s, lam_lane *lane);
void lam_lane_close(lam_scheduler *s, lam_lane *lane);
/* Switches the stack to the lane's memory and stream; NULL: to its own. */
void lam_lane_select(lam_scheduler *s, lam_lane *lane);
lam_mem *lam_lane_mem(lam_scheduler *s, lam_lane *lane);

lam_status lam_lane_load(lam_scheduler *s, lam_lane *lane, const lam_timeline *text);
/* Stores the lane's state in the text. */
lam_status lam_lane_save(lam_scheduler *s, lam_lane *lane, lam_timeline *text);
/* The lane's memory as a past, owned by the lane; NULL: an empty memory. */
lam_status lam_lane_past(lam_scheduler *s, lam_lane *lane, lam_past **out);

/* Switches the stack to the lane and its current segment; what that segment has not got yet is computed. */
void lam_lane_hold(lam_scheduler *s, lam_lane *lane);
/* Ends a full segment. */
void lam_lane_commit(lam_scheduler *s, lam_lane *lane);
/* Feeds n tokens, at most as many as fit into the segment, in the stack. */
void lam_lane_feed(lam_scheduler *s, lam_lane *lane, const int32_t *tokens, int n);
/* The number of rows that this would compute. */
int lam_lane_cost(lam_scheduler *s, lam_lane *lane, int n);
/* Empties the lane's stream. */
void lam_lane_leave(lam_scheduler *s, lam_lane *lane);
/* Records that the stream was fed this token. */
void lam_lane_went(lam_lane *lane, int32_t token);

/* ---- job.c ---- */

/* Starts a job in its lane. */
void lam_job_begin(lam_job *job, const lam_timeline *text);
/* Samples the next token from scores [V] and advances the job. */
lam_status lam_job_draw(lam_job *job, const double *scores);
/* Reports a token of the prompt. */
void lam_job_tell_read(lam_job *job, int32_t token, double logprob, const lam_likely *top);
/* Sends the last event; the job must not be used afterwards. */
void lam_job_end(lam_job *job, lam_status status, const char *reason);

/* ---- reading.c ---- */

/* Reads a chunk of the prompt. */
lam_status lam_lane_read(lam_scheduler *s, lam_lane *lane);

#endif
