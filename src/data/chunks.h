/* chunks.h -- processes a long text with several threads, with the same result as one thread.
 *
 * Text is processed from border to border (of a piece, say), and the next border depends only on the current position.
 * So a thread may start in the middle of the text, at a position that is likely to be a border: after a newline that no
 * blank follows.  If the previous chunk ended at another position, the chunk is processed again from there.  The chunks
 * depend on the text alone, not on the number of threads. */
#ifndef LAM_DATA_CHUNKS_H
#define LAM_DATA_CHUNKS_H

#include "core/status.h"

#include <stddef.h>

typedef struct lam_chunks {
    const char *text;
    size_t size;
    size_t chunk; /* about so many bytes; at least 1 */
    int threads;
    /* Processes the text from *at, a border, to the first border at or after `goal`, and sets *at to it.  Discards
     * earlier results of slot `slot` (less than `threads`). */
    lam_status (*work)(void *user, int slot, size_t *at, size_t goal);
    /* Gets the results of the chunks one by one, in the order of the text; the text is done up to `end`. */
    lam_status (*take)(void *user, int slot, size_t end);
    void *user;
} lam_chunks;

lam_status lam_chunks_run(const lam_chunks *chunks);

#endif
