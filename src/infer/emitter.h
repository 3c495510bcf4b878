/* emitter.h -- converts generated tokens to text: whole characters only, and never past a stop string.
 *
 * Bytes that may still become part of a character or of a stop string are held back.  Bytes that cannot
 * become a character are replaced by U+FFFD, so the text is always valid UTF-8. */
#ifndef LAM_INFER_EMITTER_H
#define LAM_INFER_EMITTER_H

#include "data/detok.h"

typedef struct lam_emitter lam_emitter;

/* `vocab` and the stop strings are kept; an empty stop string is LAM_ERR_ARG. */
lam_status lam_emitter_create(lam_emitter **out, const lam_vocab *vocab, const char *const *stops,
                              int n_stops);
void lam_emitter_free(lam_emitter *e); /* NULL is fine */

/* Shows the detokeniser a token of the prompt, so that the continuation is joined correctly. */
void lam_emitter_prompt(lam_emitter *e, int32_t token);

/* Adds a token; *text gets the text that can be shown now, *size bytes, valid until the next call.  *stopped: a stop
 * string was completed; the text before it was returned, and no more follows. */
lam_status lam_emitter_push(lam_emitter *e, int32_t token, const char **text, size_t *size,
                            bool *stopped);
/* Ends the text: returns what was held back. */
lam_status lam_emitter_finish(lam_emitter *e, const char **text, size_t *size);

#endif
