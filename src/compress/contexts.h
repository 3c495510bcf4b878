/* contexts.h -- adaptive probabilities of bits, found by the hash of what stands before them.
 *
 * A row holds the 15 probabilities of four bits (one for each beginning: none, 0, 1, 00, ..) and is a line of the
 * cache.  The number of rows is fixed; a new context takes the place of the rarer of two others. */
#ifndef LAM_COMPRESS_CONTEXTS_H
#define LAM_COMPRESS_CONTEXTS_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* The probability of a 1 (22 bits) and how often it was learned, up to a limit (10 bits). */
typedef uint32_t lam_chance;

static inline uint32_t lam_chance_one(lam_chance c)
{
    return c >> 10;
}

static inline uint32_t lam_chance_count(lam_chance c)
{
    return c & 0x3ff;
}

/* Moves it towards the bit, by 1 / (count + 1.5). */
void lam_chance_learn(lam_chance *c, int bit);

typedef struct lam_contexts lam_contexts;

/* For a text of about n symbols. */
lam_status lam_contexts_create(lam_contexts **out, size_t n);
void lam_contexts_free(lam_contexts *c); /* NULL is fine */
void lam_contexts_reset(lam_contexts *c);

/* The row of a context, [16] of which 1 .. 15 are used; all counts are 0 where it is new.  Valid until the next
 * call. */
lam_chance *lam_contexts_find(lam_contexts *c, uint32_t hash);

#endif
