/* piece_counts.h -- counts how often each piece occurs in a text; merges are learned from these counts.
 *
 * Memory is bounded: when more than `most` different pieces have been met, the rarest are forgotten, all that occurred
 * no more than so often that at most half of them stay; one that comes again is counted from 0. This happens at places
 * that depend on the text alone, so the counts do not depend on the number of threads.  Pieces of more than
 * LAM_TOKEN_MAX bytes are not counted: no token is that long. */
#ifndef LAM_DATA_PIECE_COUNTS_H
#define LAM_DATA_PIECE_COUNTS_H

#include "data/bpe.h"

enum { LAM_PIECES_MOST = 1 << 22 }; /* about 250 MB of English, and the merges another 400 MB */

typedef struct lam_piece_counts lam_piece_counts;

/* Pieces and special tokens are those of `bpe`, kept.  threads: at least 1. */
lam_status lam_piece_counts_create(lam_piece_counts **out, const lam_bpe *bpe, int32_t most,
                                   int threads);
void lam_piece_counts_free(lam_piece_counts *counts); /* NULL is fine */

/* Counts a text; `tell`, if not NULL, is called with how far it is, and a failure of it ends the work. */
typedef lam_status lam_teller(void *user, size_t done);
lam_status lam_piece_counts_add(lam_piece_counts *counts, const lam_bpe_text *t, lam_teller *tell,
                                void *user);

const lam_symbols *lam_piece_counts_pieces(const lam_piece_counts *counts);
const int64_t *lam_piece_counts_of(const lam_piece_counts *counts); /* one for each piece */
/* How often pieces were forgotten: 0 means that all counts are exact. */
int lam_piece_counts_forgot(const lam_piece_counts *counts);

#endif
