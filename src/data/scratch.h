/* scratch.h -- a temporary file: written once, then read in memory, as far as the system has room.
 *
 * The vocabulary must be complete before the text can be encoded with it, and standard input can be read only once. */
#ifndef LAM_DATA_SCRATCH_H
#define LAM_DATA_SCRATCH_H

#include "core/status.h"

#include <stddef.h>

typedef struct lam_scratch lam_scratch;

/* The file is in `dir` without a name, and disappears with the object or the process. */
lam_status lam_scratch_create(lam_scratch **out, const char *dir);
void lam_scratch_free(lam_scratch *scratch); /* NULL is fine */

lam_status lam_scratch_put(lam_scratch *scratch, const void *bytes, size_t n);
size_t lam_scratch_size(const lam_scratch *scratch); /* put so far */
/* Ends writing; *text is all of it, valid until free, and not NULL. */
lam_status lam_scratch_map(lam_scratch *scratch, const char **text);

#endif
