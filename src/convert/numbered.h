/* numbered.h -- BPE tokens that come with their ids, in any order, and become a vocabulary.
 *
 * Ids without a token are filled with special tokens <|unused_N|>, because the model has rows for them too. */
#ifndef LAM_CONVERT_NUMBERED_H
#define LAM_CONVERT_NUMBERED_H

#include "data/vocab.h"

typedef struct lam_numbered lam_numbered;

lam_status lam_numbered_create(lam_numbered **out, const char *label); /* kept; opens messages */
void lam_numbered_free(lam_numbered *tokens);                          /* NULL is fine */

/* Token `number` has these bytes, copied.  LAM_ERR_FORMAT: a number that is not possible, or taken by another token. */
lam_status lam_numbered_add(lam_numbered *tokens, int64_t number, const char *bytes, size_t size);
/* The same for a special token.  It may be there already, as such or not, with the same bytes. */
lam_status lam_numbered_special(lam_numbered *tokens, int64_t number, const char *text,
                                size_t size);
/* Those added so far. */
int64_t lam_numbered_count(const lam_numbered *tokens);

/* Of the rules, special tokens and separator come from here: the first that is there of <|endoftext|>,
 * <|end_of_text|>, </s> and <eos>. */
lam_status lam_numbered_vocab(lam_vocab **out, lam_numbered *tokens, const lam_bpe_rules *rules);

#endif
