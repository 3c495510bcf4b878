/* alphabet.h -- what is coded one at a time, and how it relates to the tokens of a model.
 *
 * With a vocabulary of byte pairs the symbols are its tokens.  With one of bytes they are the 256 bytes, whether the
 * vocabulary has all of them or not: bytes that it lacks share a part of the total that grows with how often they came,
 * and the model reads the start token in their place.  Vocabularies that do not give every text back byte for byte
 * (words, characters, byte pairs with NFC) are refused. */
#ifndef LAM_COMPRESS_ALPHABET_H
#define LAM_COMPRESS_ALPHABET_H

#include "data/bpe.h"
#include "infer/engine.h"

typedef struct lam_alphabet lam_alphabet;

/* Does the vocabulary give every text back?  LAM_ERR_UNSUPPORTED names the engine and says what does. */
lam_status lam_alphabet_check(const lam_engine *engine);

/* `engine` is kept. */
lam_status lam_alphabet_create(lam_alphabet **out, const lam_engine *engine);
void lam_alphabet_free(lam_alphabet *a); /* NULL is fine */
/* Forgets which bytes came. */
void lam_alphabet_reset(lam_alphabet *a);

int lam_alphabet_size(const lam_alphabet *a); /* symbols */

/* Appends the symbols of a text to `out`. */
lam_status lam_alphabet_encode(lam_alphabet *a, lam_ids *out, const uint8_t *text, size_t size);
/* The bytes of a symbol, *size of them; 0: it stands for no text.  Borrowed until the next call. */
const uint8_t *lam_alphabet_text(lam_alphabet *a, int symbol, size_t *size);
/* The token that the model reads for it. */
int32_t lam_alphabet_token(const lam_alphabet *a, int symbol);

/* Cumulative frequencies cum [size + 1], which end with LAM_TOTAL, of a model's logits. */
void lam_alphabet_cum(lam_alphabet *a, uint32_t *cum, const double *logits);
/* A symbol was coded. */
void lam_alphabet_note(lam_alphabet *a, int symbol);

#endif
