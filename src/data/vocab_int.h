/* vocab_int.h -- the inside of a vocabulary, shared by vocab.c and vocab_json.c. */
#ifndef LAM_DATA_VOCAB_INT_H
#define LAM_DATA_VOCAB_INT_H

#include "data/vocab.h"

struct lam_vocab {
    lam_text_kind kind;
    bool lower, drop_newlines;
    int32_t eos, unk;     /* -1: none */
    lam_symbols *symbols; /* in the order of their final numbers */
    int64_t *counts;
};

/* An empty vocabulary with room for `room` symbols; of the rules, those of the text are kept. */
lam_status lam_vocab_start(lam_vocab **out, const lam_vocab_rules *rules, size_t room);
/* Gives a new symbol the next number. */
lam_status lam_vocab_append(lam_vocab *vocab, const char *text, size_t size, int64_t count);

#endif
