/* timeline.h -- a text at rest: what a scheduler's texts are between two jobs, and what they share.
 *
 * A past is what the memory holds at a segment boundary, on the host.  It never changes, so forks, snapshots and the
 * prefix cache share it.  A timeline is a past and the tokens of the segment that has begun since; these are computed
 * again when the text goes on.  Pasts may be shared and dropped by any thread; a timeline belongs to one at a time. */
#ifndef LAM_INFER_TIMELINE_H
#define LAM_INFER_TIMELINE_H

#include "mem/mem.h"

typedef struct lam_past lam_past;

/* What `mem`, of one stream, holds.  LAM_ERR_NUMERIC: numbers that are not finite. */
lam_status lam_past_take(lam_past **out, const lam_mem *mem);
/* Puts it back; mem is of a stack of the same model and lengths.  NULL: nothing is remembered. */
lam_status lam_past_put(const lam_past *past, lam_mem *mem);
lam_past *lam_past_share(lam_past *past); /* one more owner; NULL is fine */
void lam_past_drop(lam_past *past);       /* one fewer; NULL is fine */
size_t lam_past_bytes(const lam_past *past);
int lam_past_rows(const lam_past *past); /* remembered rows; 0 of NULL */

typedef struct lam_timeline {
    lam_past *past; /* owned; NULL: nothing is remembered */
    int64_t length; /* tokens read since the beginning */
    int segment;    /* length of its segments */
    int forgets;    /* 1: nothing is remembered beyond the segment */
    int done;       /* tokens of the segment that has begun, 0 to `segment` */
    int32_t *open;  /* [segment]: those */
} lam_timeline;

/* Nothing was read yet. */
lam_status lam_timeline_create(lam_timeline **out, int segment, int forgets);
/* A second text that begins with everything this one has read. */
lam_status lam_timeline_fork(lam_timeline **out, const lam_timeline *from);
void lam_timeline_free(lam_timeline *t); /* NULL is fine */
size_t lam_timeline_bytes(const lam_timeline *t);

#endif
