/* overlap.h -- text that occurs in two splits.
 *
 * A held-out split is cut into pieces of a few hundred bytes of text; their hashes are looked for at every token of
 * another split (a rolling hash), and what is found is compared token by token.  So whatever text of two pieces'
 * length the splits have in common is found, wherever it stands.  Memory is bounded: of a long split, not every piece
 * is looked for. */
#ifndef LAM_DATA_OVERLAP_H
#define LAM_DATA_OVERLAP_H

#include "data/tokens.h"
#include "data/tokenizer.h"

enum { LAM_OVERLAP_PIECES = 1 << 20 }; /* looked for, at most */

typedef struct lam_overlap {
    int piece;      /* tokens of one */
    int64_t looked; /* pieces that were searched for: those with more than a few different tokens */
    int64_t found;  /* of them, in the other split */
    int64_t at, other; /* the first that was found: its first token in both splits */
} lam_overlap;

/* Called from time to time with the number of tokens searched; a return value other than LAM_OK ends the search. */
typedef lam_status lam_overlap_tell(void *user, int64_t done, int64_t total);

lam_status lam_overlap_find(lam_overlap *out, const lam_tokens *held_out, const lam_tokens *other,
                            lam_text_kind kind, lam_overlap_tell *tell, void *user);

#endif
