/* vocab.h -- which number stands for which symbol; vocab.json.
 *
 * Symbols are ordered as published: special ones first, then by falling count, ties in the order of
 * first appearance.  A vocabulary of bytes is the exception: all 256 values, each its own number, so
 * that any text can be fed to any such model (enwik8, with its 204 ordered symbols, is not one).  Byte pairs (BPE) are
 * numbered as they were learned, or as the tokenizer that they come from numbers them. */
#ifndef LAM_DATA_VOCAB_H
#define LAM_DATA_VOCAB_H

#include "core/status.h"
#include "data/bpe.h"
#include "data/symbols.h"
#include "data/tokenizer.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct lam_vocab lam_vocab;

/* All 256 bytes, number = value, counts 0. */
lam_status lam_vocab_create_bytes(lam_vocab **out);

typedef struct lam_vocab_rules {
    lam_text_kind kind;
    bool lower;         /* the text was put in lower case, so prompts must be */
    bool blanks;        /* words are split at blanks alone */
    bool unk;           /* there is a special <unk>, which rare symbols become */
    bool drop_newlines; /* the newline is no symbol: it is left out (enwik8) */
    int64_t min_count;  /* rarer symbols are left out */
    int max_size;       /* most symbols, special ones included; 0: no limit */
} lam_vocab_rules;

/* Orders `symbols` by counts[] (one per symbol).  remap[i] becomes lam_vocab_number() of symbol i.
 * Words have <eos> as number 0. */
lam_status lam_vocab_create(lam_vocab **out, int32_t *remap, const lam_symbols *symbols,
                            const int64_t *counts, const lam_vocab_rules *rules);
/* Symbols in a given order: number i is list[i]; one that is there twice is LAM_ERR_FORMAT.  Of the
 * rules, those of the text count. */
typedef struct lam_symbol {
    const char *text;
    size_t size;
    int64_t count;
} lam_symbol;
lam_status lam_vocab_create_list(lam_vocab **out, const lam_symbol *list, size_t n,
                                 const lam_vocab_rules *rules);
/* Byte pairs: token i is list[i], any bytes; `label` opens messages. */
lam_status lam_vocab_create_bpe(lam_vocab **out, const lam_symbol *list, size_t n,
                                const lam_bpe_rules *rules, const char *label);
/* The same vocabulary of byte pairs with other counts. */
lam_status lam_vocab_counted(lam_vocab **out, const lam_vocab *vocab, const int64_t *counts);
void lam_vocab_free(lam_vocab *vocab); /* NULL is fine */

lam_status lam_vocab_save(const lam_vocab *vocab, const char *path);
lam_status lam_vocab_load(lam_vocab **out, const char *path);

lam_text_kind lam_vocab_kind(const lam_vocab *vocab);
bool lam_vocab_lower(const lam_vocab *vocab);
bool lam_vocab_blanks(const lam_vocab *vocab); /* of words: these stand between blanks */
int lam_vocab_size(const lam_vocab *vocab);
/* The token that ends a line of words or a document of BPE; -1: none. */
int32_t lam_vocab_eos(const lam_vocab *vocab);
int32_t lam_vocab_unk(const lam_vocab *vocab);                                 /* -1: none */
int32_t lam_vocab_find(const lam_vocab *vocab, const char *text, size_t size); /* -1: none */
/* What a symbol of a text becomes: its number, that of <unk>, or one of these. */
enum {
    LAM_SYMBOL_LACKING = -1, /* not there, and no <unk> either */
    LAM_SYMBOL_DROPPED = -2  /* a newline, where newlines are left out */
};
int32_t lam_vocab_number(const lam_vocab *vocab, const char *text, size_t size);
/* *size bytes, then a NUL; borrowed. */
const char *lam_vocab_symbol(const lam_vocab *vocab, int32_t id, size_t *size);
int64_t lam_vocab_count(const lam_vocab *vocab, int32_t id); /* in the text it was made from */
/* Bytes of text that a token stands for: those of its symbol; of a word, with the blank beside it; 1 of <eos>, a
 * newline; none of a special token.  (The text behind <unk> is unknown: it counts as the bytes of "<unk>".) */
int lam_vocab_bytes(const lam_vocab *vocab, int32_t id);
/* The same for all tokens; *sizes is owned by the caller (free). */
lam_status lam_vocab_sizes(const lam_vocab *vocab, int32_t **sizes);
const lam_bpe *lam_vocab_bpe(const lam_vocab *vocab); /* NULL: not of byte pairs */

/* A symbol as messages show it: 'the', 'é' (U+00E9), byte 13.  Returns out. */
enum { LAM_SYMBOL_SHOWN = 64 };
const char *lam_symbol_show(char out[LAM_SYMBOL_SHOWN], const char *text, size_t size);

/* The same symbols under the same numbers?  Otherwise a model's loss on a text means nothing: LAM_ERR_FORMAT, and
 * the message calls the text `label`. */
lam_status lam_vocab_same(const lam_vocab *model, const lam_vocab *text, const char *label);
/* Does it have the size of the model's vocabulary?  Otherwise LAM_ERR_FORMAT names `path`, its source. */
lam_status lam_vocab_fits(const lam_vocab *vocab, const char *path, int n_token);
/* Is a text read alike for both: the same kind of symbols, lower case, newlines; pattern and merges? */
bool lam_vocab_alike(const lam_vocab *a, const lam_vocab *b);

/* The numbers of a text, by the rules of the vocabulary; *ids is owned by the caller (free).  The
 * last line of a text of words stays open: no <eos> after it.  A symbol that is not in the
 * vocabulary becomes <unk>; without <unk> it is LAM_ERR_FORMAT and the message shows it.  Special tokens in the text
 * are text. */
lam_status lam_vocab_encode(const lam_vocab *vocab, int32_t **ids, size_t *n, const char *text,
                            size_t size);
/* Can it be encoded? */
lam_status lam_vocab_check(const lam_vocab *vocab, const char *text, size_t size);
/* The same for byte pairs, with a say about special tokens; LAM_ERR_ARG where a vocabulary without such is to read
 * them. */
lam_status lam_vocab_encode_special(const lam_vocab *vocab, int32_t **ids, size_t *n,
                                    const char *text, size_t size, lam_special special);

#endif
