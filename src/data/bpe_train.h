/* bpe_train.h -- learning merges from counted pieces.
 *
 * Every piece begins as its bytes.  Then the most frequent pair of adjacent tokens in all pieces, weighted by the
 * counts of the pieces, becomes one token; this is repeated.  Of pairs with equal counts the one whose left token has
 * the lower number is taken, then the one with the lower right number; so the merges follow from the counts alone.  Two
 * merges may lead to the same bytes, which are one token.
 *
 * Tokens are numbered: the 256 bytes by value, then what merges make in their order, then the special tokens. */
#ifndef LAM_DATA_BPE_TRAIN_H
#define LAM_DATA_BPE_TRAIN_H

#include "data/vocab.h"

#define LAM_END_OF_TEXT "<|endoftext|>"

typedef struct lam_bpe_training {
    const char *pattern;
    int size; /* tokens wanted, bytes and <|endoftext|> included: at least LAM_BPE_SMALLEST */
    int64_t min_count; /* pairs that occur less often are not merged; at least 1 */
    /* Called from time to time with the number of tokens so far; a failure ends the work.  May be NULL. */
    lam_status (*tell)(void *user, size_t done);
    void *user;
} lam_bpe_training;

enum { LAM_BPE_SMALLEST = 257, LAM_BPE_LARGEST = 1 << 22 };

/* A vocabulary without merges: the bytes and <|endoftext|>, which is special and the separator.  Its pieces are counted. */
lam_status lam_bpe_untrained(lam_vocab **out, const char *pattern);

/* Learns the vocabulary from counts[i] of piece i; smaller than requested if no pair is left that occurs often
 * enough. */
lam_status lam_bpe_train(lam_vocab **out, const lam_symbols *pieces, const int64_t *counts,
                         const lam_bpe_training *training);

#endif
