/* prefix.h -- the prefix cache: what a text remembers at its segment boundaries, found by the tokens before them.
 *
 * A prompt that begins like an earlier one begins where that one's last common segment ended.  Entries are found by
 * the XXH3 hash of their tokens and compared token by token, so that a collision costs time and nothing else.  The
 * least recently used ones make room when the byte limit is reached.  One thread at a time. */
#ifndef LAM_INFER_PREFIX_H
#define LAM_INFER_PREFIX_H

#include "infer/timeline.h"

typedef struct lam_prefix_cache lam_prefix_cache;

/* For segments of `segment` tokens; `limit` bytes at most, 0: keeps nothing. */
lam_status lam_prefix_create(lam_prefix_cache **out, int segment, size_t limit);
void lam_prefix_free(lam_prefix_cache *c); /* NULL is fine */

/* The longest known beginning of tokens[n] that ends at a segment boundary and has more than `from` and fewer than n
 * tokens: returns its length and *past, shared for the caller; 0: none. */
size_t lam_prefix_find(lam_prefix_cache *c, lam_past **past, const int32_t *tokens, size_t n,
                       size_t from);
/* Is the beginning of n tokens, whole segments, there? */
int lam_prefix_has(const lam_prefix_cache *c, const int32_t *tokens, size_t n);
/* Keeps it.  What does not fit, or for which there is no memory, is not kept. */
void lam_prefix_add(lam_prefix_cache *c, const int32_t *tokens, size_t n, lam_past *past);
size_t lam_prefix_bytes(const lam_prefix_cache *c);

#endif
