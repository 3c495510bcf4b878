/* vocab_int.h -- the inside of a vocabulary, shared by vocab.c, vocab_bpe.c and vocab_json.c. */
#ifndef LAM_DATA_VOCAB_INT_H
#define LAM_DATA_VOCAB_INT_H

#include "data/vocab.h"

#include <jansson.h>

struct lam_vocab {
    lam_text_kind kind;
    bool lower, blanks, drop_newlines;
    int32_t eos, unk;     /* -1: none */
    lam_symbols *symbols; /* in the order of their final numbers */
    int64_t *counts;
    lam_bpe *bpe; /* of a vocabulary of byte pairs; else NULL */
};

/* An empty vocabulary with room for `room` symbols; of the rules, those of the text are kept. */
lam_status lam_vocab_start(lam_vocab **out, const lam_vocab_rules *rules, size_t room);
/* Gives a new symbol the next number. */
lam_status lam_vocab_append(lam_vocab *vocab, const char *text, size_t size, int64_t count);

/* ---- vocab_json_bpe.c: byte pairs in vocab.json ---- */

/* A token as text; NULL without memory. */
json_t *lam_vocab_json_token(const lam_vocab *vocab, int32_t id);
/* `root` with pattern, merges and special tokens; NULL without memory. */
json_t *lam_vocab_json_add_bpe(json_t *root, const lam_bpe *bpe);
/* `root` has lists "symbols" and "counts" of one length, which is not 0. */
lam_status lam_vocab_json_bpe(lam_vocab **out, const json_t *root, const char *path);

#endif
