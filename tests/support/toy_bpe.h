/* toy_bpe.h -- a small vocabulary of byte pairs: the 256 bytes, what `merges` make of them, <|endoftext|>. */
#ifndef TEST_TOY_BPE_H
#define TEST_TOY_BPE_H

#include "data/vocab.h"

typedef struct toy_merge {
    const char *left, *right;
} toy_merge;

/* Tokens are numbered 0-255 (bytes), 256 and on (each merge that makes a new one); the last is <|endoftext|>, special and
 * the separator.  Pattern (GPT-2's if NULL), whole and nfc are those of `more`; `ranked`: without a list of merges, by
 * number.  A failure ends the test. */
lam_vocab *toy_bpe(const toy_merge *merges, size_t n, const lam_bpe_rules *more, bool ranked);

/* "the", " the", "in", "ing", ...: enough for English to look merged. */
lam_vocab *toy_bpe_english(void);

#endif
