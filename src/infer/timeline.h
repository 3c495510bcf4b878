/* timeline.h -- a text between two jobs of a scheduler, and the state that texts share.
 *
 * A past is the content of the memory at a segment boundary, on the host.  It is immutable, so forks, snapshots and the
 * prefix cache share it.  A timeline is a past and the tokens of the unfinished segment after it; these are computed
 * again when the text is continued.  Any thread may share and drop pasts; a timeline is used by one thread at a
 * time. */
#ifndef LAM_INFER_TIMELINE_H
#define LAM_INFER_TIMELINE_H

#include "mem/mem.h"

typedef struct lam_past lam_past;

/* Copies the content of `mem`, of one stream.  LAM_ERR_NUMERIC: it has numbers that are not finite. */
lam_status lam_past_take(lam_past **out, const lam_mem *mem);
/* Restores it; mem belongs to a stack of the same model and lengths.  NULL: empties the memory. */
lam_status lam_past_put(const lam_past *past, lam_mem *mem);
lam_past *lam_past_share(lam_past *past); /* one more owner; NULL is fine */
void lam_past_drop(lam_past *past);       /* one fewer; NULL is fine */
size_t lam_past_bytes(const lam_past *past);
int lam_past_rows(const lam_past *past); /* rows in memory; 0 for NULL */

typedef struct lam_timeline {
    lam_past *past; /* owned; NULL: the memory is empty */
    int64_t length; /* tokens read since the beginning */
    int segment;    /* length of its segments */
    int forgets;    /* 1: the memory stays empty: nothing beyond the segment */
    int done;       /* tokens of the unfinished segment, 0 to `segment` */
    int32_t *open;  /* [segment]: these tokens */
} lam_timeline;

/* Creates an empty text. */
lam_status lam_timeline_create(lam_timeline **out, int segment, int forgets);
/* Creates a second text with the same content. */
lam_status lam_timeline_fork(lam_timeline **out, const lam_timeline *from);
void lam_timeline_free(lam_timeline *t); /* NULL is fine */
size_t lam_timeline_bytes(const lam_timeline *t);

#endif
