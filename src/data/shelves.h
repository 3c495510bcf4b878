/* shelves.h -- documents dealt out to streams: which stream reads which documents, in which order.
 *
 * A document is the tokens after a separator up to and including the next one; every token of the text is in exactly
 * one.  A stream reads its documents in segments of N, each from a segment's start, so what counts is the number of
 * segments: the documents with most segments are dealt out first, each to the stream that has least.  Within a stream
 * they keep the order of the text, or (shuffled) one that is drawn. */
#ifndef LAM_DATA_SHELVES_H
#define LAM_DATA_SHELVES_H

#include "core/rng.h"
#include "core/status.h"
#include "data/tokens.h"

typedef struct lam_document {
    int64_t start, count; /* tokens of the text; the last one is the separator */
    int64_t segments;
    int64_t rank; /* in the order of reading */
    int stream;
} lam_document;

typedef struct lam_shelves {
    int streams;
    int64_t n;
    lam_document *list; /* [n], those of stream 0 first; owned */
    int64_t *first;     /* [streams + 1]: the first document of every stream; owned */
    int64_t rows;       /* of the longest stream, in whole segments */
    int64_t *load;      /* [streams]: segments; owned */
    int *heap;          /* [streams]: while they are dealt out; owned */
} lam_shelves;

/* Documents of `tokens`, which must have a separator.  LAM_ERR_ARG: there are none, or more than fit in memory. */
lam_status lam_shelves_create(lam_shelves *out, const lam_tokens *tokens, int streams);
void lam_shelves_free(lam_shelves *s); /* fine on a zeroed one */

/* Deals them out for segments of `length` tokens; rng NULL: in the order of the text. */
void lam_shelves_deal(lam_shelves *s, int length, lam_rng *rng);

#endif
