/* tokenizer.h -- from a stream of bytes to symbol numbers: bytes, characters or words.  (Byte pairs, the fourth kind of
 * symbols, have a vocabulary before a text is read: bpe.h.)
 *
 * Symbols are numbered as they appear; which number a model sees in the end is decided later, when
 * all have been counted (vocab.h).
 *
 * words of a text: runs of letters and digits, with apostrophes between letters (don't), and single characters of
 * punctuation, with marks where these do not stand as usual (word_marks.h).  Lines end as those below do.
 *
 * words between blanks: the rules of the published preparation (Python's text files): UTF-8, "\r\n" and "\r" are
 * newlines, a line is split at runs of Unicode white space, and ends with <eos>, blank lines too; so
 * does an unfinished last line.  chars: every code point, nothing changed.  bytes: every byte.
 * Characters and words must be valid UTF-8 without U+0000. */
#ifndef LAM_DATA_TOKENIZER_H
#define LAM_DATA_TOKENIZER_H

#include "core/status.h"
#include "data/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum lam_text_kind { LAM_BYTES, LAM_CHARS, LAM_WORDS, LAM_BPE, LAM_KINDS } lam_text_kind;

const char *lam_text_kind_name(lam_text_kind kind); /* "bytes", "chars", "words", "bpe" */
/* The kind called `name`; LAM_KINDS: there is none. */
lam_text_kind lam_text_kind_find(const char *name);

typedef lam_status lam_token_sink(void *user, const int32_t *ids, size_t n);

typedef struct lam_tokenizer_options {
    lam_text_kind kind;   /* not LAM_BPE */
    bool lower;           /* words and characters in lower case */
    bool blanks;          /* words are split at blanks alone */
    lam_symbols *symbols; /* kept; new symbols are added to it */
    lam_token_sink *sink; /* gets the numbers, in blocks */
    void *user;           /* kept; first argument of sink */
} lam_tokenizer_options;

typedef struct lam_tokenizer lam_tokenizer;

lam_status lam_tokenizer_create(lam_tokenizer **out, const lam_tokenizer_options *options);
void lam_tokenizer_free(lam_tokenizer *t); /* NULL is fine */

/* A new text begins; `name` is kept for messages, and offsets in them count from here. */
void lam_tokenizer_start(lam_tokenizer *t, const char *name);
/* The next bytes of it, cut anywhere. */
lam_status lam_tokenizer_feed(lam_tokenizer *t, const void *bytes, size_t n);
/* The text ends here.  LAM_TEXT_COMPLETE closes the last line with its <eos>; LAM_TEXT_OPEN leaves
 * it open (a prompt goes on). */
typedef enum lam_text_end { LAM_TEXT_COMPLETE, LAM_TEXT_OPEN } lam_text_end;
lam_status lam_tokenizer_finish(lam_tokenizer *t, lam_text_end end);

#endif
