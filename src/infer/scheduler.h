/* scheduler.h -- many texts on one model: continuous batching.
 *
 * Jobs (job.h) wait in a bounded queue.  Each running job has a lane: the memory of its text, and a stream of the batch
 * (model/batch.c).  A tick does a bounded amount of work, in two parts:
 *   alone     prompts are read segment by segment, and memories refreshed where a segment begins, in a stack of one
 *             stream; lanes take turns, at most `rows` rows are computed, or one piece of work where that is more;
 *   together  every other lane that has a token to feed gets it in one call.
 * Texts join and leave the batch at any tick.  The results of a text do not depend on the other texts (ops/decode.h has
 * the details): on ref to the last bit; on cpu and cuda to the last bit with `fixed`, which always computes as many
 * streams as there are lanes.  Without `fixed` the batch has as many streams as the lanes in use, rounded up to a power
 * of two, which may change rounding.
 *
 * Models that do not decode with cached keys run their lanes one after the other, each in its own stack.
 *
 * One thread at a time; other threads may only call lam_job_cancel() and lam_job_pause(). */
#ifndef LAM_INFER_SCHEDULER_H
#define LAM_INFER_SCHEDULER_H

#include "infer/job.h"
#include "infer/session.h"

typedef struct lam_scheduler lam_scheduler;

/* 0 in a field means its default. */
typedef struct lam_scheduler_options {
    int lanes;       /* texts that run side by side; 8 */
    int segment;     /* longest segment, and the default of texts; the model's */
    int mem_len;     /* the model's */
    int rows;        /* rows computed alone per tick; a segment and its memory, or more */
    int queue;       /* maximum number of waiting jobs; 256 */
    int fixed;       /* 1: always as many streams as lanes */
    size_t prefixes; /* bytes of the prefix cache; none */
    lam_dev *dev;    /* kept; the model's */
} lam_scheduler_options;

/* `engine` is kept. */
lam_status lam_scheduler_create(lam_scheduler **out, const lam_engine *engine,
                                const lam_scheduler_options *options);
/* Frees the scheduler.  Every job must have ended: cancel them and tick until none is left.  NULL is fine. */
void lam_scheduler_free(lam_scheduler *s);

int lam_scheduler_segment(const lam_scheduler *s);
int lam_scheduler_mem_len(const lam_scheduler *s);

/* Queues the job, which is kept until its last event.  LAM_ERR_UNSUPPORTED: the queue is full. */
lam_status lam_scheduler_submit(lam_scheduler *s, lam_job *job);
/* Runs one tick.  *busy: there is more to do now; otherwise no job is left or all are paused.  A failure first ends all
 * jobs with that status. */
lam_status lam_scheduler_tick(lam_scheduler *s, bool *busy);

typedef struct lam_scheduler_load {
    int running, waiting;   /* jobs */
    int64_t read, drawn;    /* tokens so far */
    int64_t cached;         /* tokens taken from the prefix cache */
    int64_t ticks, streams; /* calls of the batch, and streams advanced by them */
    size_t prefix_bytes;
} lam_scheduler_load;
lam_scheduler_load lam_scheduler_look(const lam_scheduler *s);

/* Converts a text that no job is using to a snapshot for files and sessions, and back; refuses what does not fit the
 * model, as lam_session_restore() does. */
lam_status lam_scheduler_export(lam_scheduler *s, lam_snapshot **out, const lam_timeline *text);
lam_status lam_scheduler_import(lam_scheduler *s, lam_timeline **out, const lam_snapshot *snapshot);

/* Measures what the memory of a text does, by computing its unfinished segment again; free with lam_memory_view_free().
 * For a text in use by a job, the view shows the job's current position. */
typedef struct lam_memory_view {
    int64_t length;
    int layers, heads, slots; /* slots: the memory length */
    int segment, done, remembered;
    int alpha_layers; /* layers that refresh their slots */
    double *alpha;    /* [alpha_layers][remembered], mean over heads; NULL: there is none */
    int interval, bins;
    double *weight; /* [layers][bins]: NaN where no token attends that far; see docs/serve.md */
    double *share, *entropy; /* [layers] */
    int32_t *tokens;         /* [done] */
    double *surprise;        /* [done]: -log p; NaN: its prediction is in an earlier segment */
} lam_memory_view;
lam_status lam_scheduler_view(lam_scheduler *s, lam_memory_view *out, const lam_timeline *text);
void lam_memory_view_free(lam_memory_view *v);

#endif
