/* bpe.h -- byte-level BPE: encodes text by merging adjacent tokens in the order of their ranks.
 *
 * A text is cut into pieces (pieces.h).  A piece begins as its bytes, each a token; then the pair of neighbours with
 * the lowest rank is merged into one token, the leftmost such pair first, until no pair has a rank.  So any bytes can
 * be encoded, and the concatenated tokens are the text again; there is no <unk>.
 *
 * Ranks come in two ways: a list of merges (GPT-2, tokenizer.json), where the rank of a pair is its place; or none
 * (tiktoken), where any two adjacent tokens that together are a token are merged and the rank is that token's number.
 *
 * Special tokens (<|endoftext|>) stand for no text.  Plain text never becomes one, whatever it spells, unless the
 * caller requests it (LAM_SPECIAL_READ). */
#ifndef LAM_DATA_BPE_H
#define LAM_DATA_BPE_H

#include "core/status.h"
#include "data/pieces.h"
#include "data/symbols.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAM_TOKEN_MAX = 1 << 10 }; /* bytes of one token */

typedef struct lam_merge {
    int32_t left, right; /* the result is the token of their bytes together */
} lam_merge;

typedef struct lam_bpe_rules {
    const char *pattern;     /* of the pieces */
    const lam_merge *merges; /* by rank; NULL: ranks are the numbers of the tokens */
    size_t n_merges;
    const int32_t *special; /* their numbers, rising */
    size_t n_special;
    int32_t separator; /* the special token between two documents; -1: none */
    bool whole;        /* a piece that is a token is that token, however it would be merged */
    bool nfc;          /* the text is put in Unicode's normal form C before it is cut */
} lam_bpe_rules;

/* Read-only after creation: any number of threads may use it. */
typedef struct lam_bpe lam_bpe;

/* The tokens are `symbols`, kept.  LAM_ERR_FORMAT where a byte has no token, where a merge makes none, where a token is
 * longer than LAM_TOKEN_MAX, or where the pattern is refused; `label` opens the message. */
lam_status lam_bpe_create(lam_bpe **out, const lam_symbols *symbols, const lam_bpe_rules *rules,
                          const char *label);
void lam_bpe_free(lam_bpe *bpe); /* NULL is fine */

/* The rules as given; borrowed. */
const lam_bpe_rules *lam_bpe_rules_of(const lam_bpe *bpe);
bool lam_bpe_is_special(const lam_bpe *bpe, int32_t id);
/* Do both encode a text in the same way, given the same tokens? */
bool lam_bpe_alike(const lam_bpe *a, const lam_bpe *b);

/* ---- iterating over the pieces of a text ---- */

typedef enum lam_special { LAM_SPECIAL_TEXT, LAM_SPECIAL_READ } lam_special;

/* A text, borrowed. */
typedef struct lam_bpe_text {
    const char *text;
    size_t size;
    lam_special special; /* what its special tokens are: text like any other, or those tokens */
} lam_bpe_text;

/* A part of a text: a piece, or a special token. */
typedef struct lam_bpe_item {
    int32_t special; /* its number; -1: a piece */
    const char *text;
    size_t size, room; /* bytes of it, and of the text from there on */
} lam_bpe_item;

typedef lam_status lam_bpe_visitor(void *user, const lam_bpe_item *item);

/* Visits the parts from *at, where a piece begins, to the first end of a piece at or after `goal`, and sets *at to that
 * end. `pieces` are made with lam_bpe_pattern(). */
lam_status lam_bpe_walk(const lam_bpe *bpe, lam_pieces *pieces, const lam_bpe_text *t, size_t *at,
                        size_t goal, lam_bpe_visitor *visit, void *user);
const lam_pattern *lam_bpe_pattern(const lam_bpe *bpe);

/* ---- encoding ---- */

/* A growing list of numbers; start with zeros, free v. */
typedef struct lam_ids {
    int32_t *v;
    size_t n, room;
} lam_ids;

lam_status lam_ids_reserve(lam_ids *ids, size_t more);

/* One thread's workspace: the position in the text, and a cache of recent pieces. */
typedef struct lam_bpe_coder lam_bpe_coder;

lam_status lam_bpe_coder_create(lam_bpe_coder **out, const lam_bpe *bpe); /* kept */
void lam_bpe_coder_free(lam_bpe_coder *coder);                            /* NULL is fine */

/* Appends the tokens of t->text from `from`, where a piece begins, to the first end of a piece at or behind `goal`;
 * *end is there.  The whole text: from 0, goal = size. */
lam_status lam_bpe_encode(lam_bpe_coder *coder, lam_ids *out, const lam_bpe_text *t, size_t from,
                          size_t goal, size_t *end);

#endif
