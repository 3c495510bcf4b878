/* chunks.h -- a long text, worked on by several threads, with the result of one.
 *
 * Work on a text goes from border to border (of a piece, say), and where the next border is follows from the place alone.
 * So a thread may begin in the middle of the text, at a place that is likely to be a border: after a newline that no
 * blank follows.  Where the chunk before ended at another place, the chunk is done again from there.  Where chunks begin
 * depends on the text alone, not on the number of threads. */
#ifndef LAM_DATA_CHUNKS_H
#define LAM_DATA_CHUNKS_H

#include "core/status.h"

#include <stddef.h>

typedef struct lam_chunks {
    const char *text;
    size_t size;
    size_t chunk; /* about so many bytes; at least 1 */
    int threads;
    /* Works from *at, a border, to the first border at or behind `goal`, and leaves *at there.  What slot `slot` (below
     * `threads`) found before is forgotten. */
    lam_status (*work)(void *user, int slot, size_t *at, size_t goal);
    /* Gets the results of the chunks one by one, in the order of the text; the text is done up to `end`. */
    lam_status (*take)(void *user, int slot, size_t end);
    void *user;
} lam_chunks;

lam_status lam_chunks_run(const lam_chunks *chunks);

#endif
