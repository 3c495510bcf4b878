/* batcher.h -- the ordered iterator: B streams side by side, each read from its start to its end.
 *
 * n_step = count / B tokens make a column; the rest at the end is left out.  Column b holds tokens
 * [b n_step, (b + 1) n_step).  A batch at row i has n = min(N, n_step - 1 - i) rows: inputs
 * [i, i + n) and targets one further; the last batch of an epoch may be shorter, and B (n_step - 1)
 * tokens are predicted.  Nothing is shuffled: the memory of one batch is the past of the next.
 *
 * roll: before every epoch each column is turned by its own random shift, on top of the former ones;
 * its end then joins its beginning.  varlen: n is drawn for every batch, around N (95 %) or N/2, with
 * standard deviation 5, between 5 and N + 15. */
#ifndef LAM_DATA_BATCHER_H
#define LAM_DATA_BATCHER_H

#include "core/rng.h"
#include "core/status.h"
#include "data/tokens.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct lam_batcher lam_batcher;

typedef struct lam_batcher_options {
    int streams; /* B */
    int length;  /* N */
    bool roll, varlen;
    uint64_t seed;
    int extra; /* E: rows in front of a batch's inputs that the one before had already (ext_len) */
} lam_batcher_options;

/* Where an iteration stands: plain data, to be saved with a checkpoint together with shifts[B]. */
typedef struct lam_batcher_position {
    int64_t epoch; /* 0 is the first */
    int64_t row;   /* of the next batch */
    lam_rng rng;
} lam_batcher_position;

/* LAM_ERR_ARG when a column would have fewer than two tokens. */
lam_status lam_batcher_check(const lam_tokens *tokens, int streams);

/* `tokens` is kept.  Fails as the check does. */
lam_status lam_batcher_create(lam_batcher **out, const lam_tokens *tokens,
                              const lam_batcher_options *options);
void lam_batcher_free(lam_batcher *b); /* NULL is fine */

/* The largest n next() can return: N, or N + 15 with varlen.  Targets hold B times as many, inputs B (n + E). */
int lam_batcher_max_length(const lam_batcher *b);
int64_t lam_batcher_rows(const lam_batcher *b); /* n_step */

/* Fills inputs[B][e + n] and targets[B][n] and returns n, where e = min(E, row); 0 at the end of the epoch, once: the next call
 * begins the next epoch (the moment to empty the memory). */
int lam_batcher_next(lam_batcher *b, int32_t *inputs, int32_t *targets);

int lam_batcher_extra(const lam_batcher *b); /* e of the last batch */

const lam_batcher_position *lam_batcher_where(const lam_batcher *b);
const int64_t *lam_batcher_shifts(const lam_batcher *b); /* [B], each in [0, n_step) */
/* Goes on from a saved position; LAM_ERR_FORMAT when it cannot belong to this corpus and B. */
lam_status lam_batcher_restore(lam_batcher *b, const lam_batcher_position *position,
                               const int64_t *shifts, int n_shifts);

#endif
