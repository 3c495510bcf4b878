/* detok.h -- from numbers back to text, one token at a time.
 *
 * Bytes and characters come back exactly.  Words and punctuation come back as they were, with single blanks
 * (word_marks.h).  Words between blanks were separated by the preparation of their corpus, so the way back is a guess
 * that reads well: no blank before closing punctuation, WikiText's "@-@" joined again.  <eos> is a newline. */
#ifndef LAM_DATA_DETOK_H
#define LAM_DATA_DETOK_H

#include "data/vocab.h"

typedef struct lam_detok {
    const lam_vocab *vocab; /* kept */
    bool glue;              /* the next word follows without a blank */
    bool quoted;            /* inside "double quotes" */
} lam_detok;

void lam_detok_start(lam_detok *d, const lam_vocab *vocab);
/* The text that token `id` adds: first "" or " " (*space), then *size bytes, borrowed. */
const char *lam_detok_next(lam_detok *d, int32_t id, const char **space, size_t *size);

/* The text of n tokens; *text is owned by the caller (free) and ends with a NUL. */
lam_status lam_detok_all(const lam_vocab *vocab, char **text, size_t *size, const int32_t *ids,
                         size_t n);

#endif
