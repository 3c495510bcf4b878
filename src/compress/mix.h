/* mix.h -- `--adapt mix`: what the text itself has shown so far, mixed into the model's prediction.
 *
 * A symbol is coded as the bits of its number, from the highest.  For each bit there are seven opinions: the model's,
 * from the frequencies of the symbols on both sides, and those of six contexts, the last 1 to 6 symbols of the stream
 * with the bits before: an adaptive probability for each context that was met.  All are log-odds; a mixer adds them up
 * with weights that it learns by gradient descent on the coding cost, as the family of PAQ does.  It begins with
 * weight 1 for the model and 0 for the others, so that on a text like the training text nothing is lost to begin with.
 *
 * All numbers are integers, all divisions and shifts defined: the same bits on every machine.  The streams of a block
 * share the contexts and weights; symbols must come in the same order when coding and decoding. */
#ifndef LAM_COMPRESS_MIX_H
#define LAM_COMPRESS_MIX_H

#include "compress/range_coder.h"

typedef struct lam_mix lam_mix;

/* For an alphabet of `symbols` (at least 2) and `streams` streams.  It takes memory for about `n` symbols, at most 100 MB:
 * contexts of longer texts replace rare ones. */
lam_status lam_mix_create(lam_mix **out, int symbols, int streams, size_t n);
void lam_mix_free(lam_mix *m); /* NULL is fine */
/* Forgets everything. */
void lam_mix_reset(lam_mix *m);

/* Codes the next symbol of a stream, whose cumulative frequencies under the model are cum [symbols + 1]. */
void lam_mix_put(lam_mix *m, int stream, const uint32_t *cum, int symbol, lam_range_encoder *e);
/* The other way. */
lam_status lam_mix_take(lam_mix *m, int stream, const uint32_t *cum, int *symbol,
                        lam_range_decoder *d);

#endif
