/* spool.h -- a temporary file of numbers: written once, read several times from the front.
 *
 * Counting and splitting need the whole text before the first token number is final, and standard input can be read
 * only once.  Small numbers take one byte (seven bits a byte, lowest first). */
#ifndef LAM_DATA_SPOOL_H
#define LAM_DATA_SPOOL_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct lam_spool lam_spool;

/* The file is in `dir` without a name, and disappears with the spool or the process. */
lam_status lam_spool_create(lam_spool **out, const char *dir);
void lam_spool_free(lam_spool *spool); /* NULL is fine */

lam_status lam_spool_put(lam_spool *spool, const int32_t *ids, size_t n); /* numbers >= 0 */
int64_t lam_spool_count(const lam_spool *spool);                          /* put so far */

/* Ends writing for good and goes to the front. */
lam_status lam_spool_rewind(lam_spool *spool);
/* Reads up to `max` numbers and returns how many; 0 only at the end. */
size_t lam_spool_get(lam_spool *spool, int32_t *ids, size_t max);

#endif
