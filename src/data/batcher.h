/* batcher.h -- the ordered iterator: B streams side by side, each read from its start to its end.
 *
 * A stream has n_step = count / B tokens; the rest at the end is left out.  Stream b holds tokens [b n_step, (b + 1)
 * n_step).  A batch at row i has n = min(N, n_step - 1 - i) rows: inputs [i, i + n) and targets one further; the last
 * batch of an epoch may be shorter, and B (n_step - 1) tokens are predicted.  Nothing is shuffled: the memory of one
 * batch is the past of the next.
 *
 * roll: before every epoch each stream is rotated by its own random shift, in addition to earlier ones; its end is then
 * followed by its beginning. varlen: n is drawn for every batch, around N (95 %) or N/2, with standard deviation 5,
 * between 5 and N + 15.
 *
 * documents: a stream reads whole documents (shelves.h), each from the start of a batch: its inputs are the separator
 * before it and its tokens but the last, its targets its tokens, so every token of the text is predicted once.  The
 * rest of a batch after the end of a document is padding: inputs are the separator, targets LAM_NO_TARGET. n is N, or
 * what the longest document that is being read has left. roll shuffles the order of documents for each epoch. */
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
    int first,
        only; /* next() fills `only` streams from `first` on; only 0: all.  The position is that of all */
    bool documents; /* then E must be 0 */
} lam_batcher_options;

/* The position of an iteration: plain data, saved in a checkpoint together with shifts[B]. */
typedef struct lam_batcher_position {
    int64_t epoch; /* 0 is the first */
    int64_t row;   /* of the next batch */
    lam_rng rng;
} lam_batcher_position;

/* LAM_ERR_ARG if a stream would have fewer than two tokens. */
lam_status lam_batcher_check(const lam_tokens *tokens, int streams);

enum { LAM_NO_TARGET = -1 }; /* of padding */

/* A stream's part of a batch. */
typedef struct lam_stream_rows {
    bool fresh; /* a document begins: the memory must be empty */
    int rows;   /* without padding; 0: the stream has no more documents */
} lam_stream_rows;

/* `tokens` is kept.  Fails as the check does. */
lam_status lam_batcher_create(lam_batcher **out, const lam_tokens *tokens,
                              const lam_batcher_options *options);
void lam_batcher_free(lam_batcher *b); /* NULL is fine */

/* The largest n next() can return: N, or N + 15 with varlen.  Targets hold B times as many, inputs B (n + E),
 * or as many streams instead of B as are filled. */
int lam_batcher_max_length(const lam_batcher *b);
/* n_step; with documents that of the longest stream: its segments, whole, and a token. */
int64_t lam_batcher_rows(const lam_batcher *b);

/* Fills inputs[B][e + n] and targets[B][n], of the streams asked for, and returns n, where e = min(E, row); 0 at the end of the epoch, once: the next call
 * begins the next epoch (the moment to empty the memory). */
int lam_batcher_next(lam_batcher *b, int32_t *inputs, int32_t *targets);

int lam_batcher_extra(const lam_batcher *b); /* e of the last batch */
/* Of the last batch: what the streams asked for have of it (NULL without documents), and how many targets all streams
 * have behind their first `skip` rows, without padding. */
const lam_stream_rows *lam_batcher_streams(const lam_batcher *b);
int64_t lam_batcher_targets(const lam_batcher *b, int skip);

const lam_batcher_position *lam_batcher_where(const lam_batcher *b);
/* [B], each in [0, n_step); with documents: tokens of the epoch that a stream has read */
const int64_t *lam_batcher_shifts(const lam_batcher *b);
/* Continues from a saved position; LAM_ERR_FORMAT if it cannot belong to this corpus and B. */
lam_status lam_batcher_restore(lam_batcher *b, const lam_batcher_position *position,
                               const int64_t *shifts, int n_shifts);

#endif
