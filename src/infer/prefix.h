/* prefix.h -- the prefix cache: states of texts at segment boundaries, looked up by the tokens before the boundary.
 *
 * A prompt that shares whole segments with an earlier one continues after the last shared segment.  Entries are found
 * by the XXH3 hash of their tokens and compared token by token, so a collision costs only time.  The least recently
 * used entries are evicted when the byte limit is reached.  One thread at a time. */
#ifndef LAM_INFER_PREFIX_H
#define LAM_INFER_PREFIX_H

#include "infer/timeline.h"

typedef struct lam_prefix_cache lam_prefix_cache;

/* Creates a cache for segments of `segment` tokens with at most `limit` bytes; 0: caches nothing. */
lam_status lam_prefix_create(lam_prefix_cache **out, int segment, size_t limit);
void lam_prefix_free(lam_prefix_cache *c); /* NULL is fine */

/* Finds the longest cached prefix of tokens[n] that ends at a segment boundary and has more than `from` and fewer than
 * n tokens: returns its length and *past, shared for the caller; 0: none. */
size_t lam_prefix_find(lam_prefix_cache *c, lam_past **past, const int32_t *tokens, size_t n,
                       size_t from);
/* Is the prefix of n tokens, whole segments, cached? */
int lam_prefix_has(const lam_prefix_cache *c, const int32_t *tokens, size_t n);
/* Adds a prefix; one that does not fit, or for which there is no memory, is dropped. */
void lam_prefix_add(lam_prefix_cache *c, const int32_t *tokens, size_t n, lam_past *past);
size_t lam_prefix_bytes(const lam_prefix_cache *c);

#endif
