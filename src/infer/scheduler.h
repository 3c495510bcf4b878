/* scheduler.h -- many texts on one model: continuous batching.
 *
 * Jobs (job.h) wait in a bounded queue.  Each that runs has a lane: room for what its text remembers, and a stream of
 * the batch (model/batch.c).  A tick does a bounded amount of work, in two parts:
 *   alone     prompts are read segment by segment, and memories refreshed where a segment begins, in a stack of one
 *             stream; lanes take turns, at most `rows` rows are computed, or one piece of work where that is more;
 *   together  every other lane that has a token to feed gets it in one call.
 * Texts join and leave the batch at any tick.  What a text gets does not depend on its neighbours (ops/decode.h says how
 * exactly): on ref to the last bit; on cpu and cuda to the last bit with `fixed`, which always computes as many streams as
 * there are lanes; without it the batch is as wide as the lanes in use need, rounded up to a power of two, which may
 * change rounding.
 *
 * Models that do not decode with cached keys run their lanes one after the other, in stacks of their own.
 *
 * One thread at a time.  Only lam_job_cancel() and lam_job_pause() may be called by others. */
#ifndef LAM_INFER_SCHEDULER_H
#define LAM_INFER_SCHEDULER_H

#include "infer/job.h"
#include "infer/session.h"

typedef struct lam_scheduler lam_scheduler;

/* 0 in a field means its default. */
typedef struct lam_scheduler_options {
    int lanes;       /* texts that run side by side; 8 */
    int segment;     /* longest segment, and that of texts that name none; the model's */
    int mem_len;     /* the model's */
    int rows;        /* of work alone in a tick; as many as a segment and its memory have */
    int queue;       /* jobs that wait, at most; 256 */
    int fixed;       /* 1: always as many streams as lanes */
    size_t prefixes; /* bytes of the prefix cache; none */
    lam_dev *dev;    /* kept; the model's */
} lam_scheduler_options;

/* `engine` is kept. */
lam_status lam_scheduler_create(lam_scheduler **out, const lam_engine *engine,
                                const lam_scheduler_options *options);
/* Every job must have ended: cancel them and tick until nothing is left.  NULL is fine. */
void lam_scheduler_free(lam_scheduler *s);

int lam_scheduler_segment(const lam_scheduler *s);
int lam_scheduler_mem_len(const lam_scheduler *s);

/* Takes the job, kept until its last event.  LAM_ERR_UNSUPPORTED: the queue is full. */
lam_status lam_scheduler_submit(lam_scheduler *s, lam_job *job);
/* One tick.  *busy: there is something to do at once; otherwise all jobs that are left are paused.  A failure ends
 * all jobs with that status first. */
lam_status lam_scheduler_tick(lam_scheduler *s, bool *busy);

typedef struct lam_scheduler_load {
    int running, waiting;   /* jobs */
    int64_t read, drawn;    /* tokens so far */
    int64_t cached;         /* tokens that the prefix cache spared */
    int64_t ticks, streams; /* calls of the batch, and streams that went on in them */
    size_t prefix_bytes;
} lam_scheduler_load;
lam_scheduler_load lam_scheduler_look(const lam_scheduler *s);

/* A text that no job has, as a snapshot for files and sessions, and back; what does not fit the model is refused as
 * lam_session_restore() does. */
lam_status lam_scheduler_export(lam_scheduler *s, lam_snapshot **out, const lam_timeline *text);
lam_status lam_scheduler_import(lam_scheduler *s, lam_timeline **out, const lam_snapshot *snapshot);

/* What the memory of a text does, found by reading its unfinished segment once more; free with
 * lam_memory_view_free().  A text that a job has is looked at where the job is. */
typedef struct lam_memory_view {
    int64_t length;
    int layers, heads, slots; /* slots: the memory length */
    int segment, done, remembered;
    int alpha_layers; /* layers that refresh their slots */
    double *alpha;    /* [alpha_layers][remembered], mean over heads; NULL: there is none */
    int interval, bins;
    double *weight;          /* [layers][bins]: NaN where no token sees so far; see docs/serve.md */
    double *share, *entropy; /* [layers] */
    int32_t *tokens;         /* [done] */
    double *surprise;        /* [done]: -log p; NaN: what predicted it is past */
} lam_memory_view;
lam_status lam_scheduler_view(lam_scheduler *s, lam_memory_view *out, const lam_timeline *text);
void lam_memory_view_free(lam_memory_view *v);

#endif
