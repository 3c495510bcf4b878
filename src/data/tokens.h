/* tokens.h -- one split of a corpus on disk: a header and token numbers, memory-mapped.
 *
 * The numbers take 1, 2 or 4 bytes each, whatever the vocabulary needs, lowest byte first.
 * docs/formats.md gives the header byte by byte. */
#ifndef LAM_DATA_TOKENS_H
#define LAM_DATA_TOKENS_H

#include "core/file.h"
#include "core/status.h"

#include <stdint.h>

enum { LAM_TOKENS_HEADER = 64 };

typedef struct lam_tokens {
    lam_map map;
    const unsigned char *ids; /* in the map */
    int width;                /* bytes of a number: 1, 2 or 4 */
    int vocab_size;           /* every number is below it */
    int64_t count;
    uint32_t crc; /* CRC-32 of the numbers' bytes, by the header */
    char split[16];
    /* Bytes of text that each number stands for (lam_vocab_bytes), borrowed; NULL: unknown.  White space and words that
     * became <unk> make them inexact: so many times that many are the bytes of the text. */
    const int32_t *sizes;
    double scale;
    int32_t separator; /* that ends its documents, by corpus.json; -1: it has none */
} lam_tokens;

/* Opens and checks everything but the numbers themselves: a truncated file, a foreign one or one
 * with a damaged header is LAM_ERR_FORMAT. */
lam_status lam_tokens_open(lam_tokens *out, const char *path);
void lam_tokens_close(lam_tokens *t); /* fine on a zeroed or closed one */

/* Reads everything: the checksum must fit and every number must be below vocab_size. */
lam_status lam_tokens_verify(const lam_tokens *t, const char *path);

/* out[0, n) = numbers [from, from + n), which must exist. */
void lam_tokens_copy(const lam_tokens *t, int32_t *out, int64_t from, size_t n);

/* Bytes of text, by `sizes` alone; scale is then chosen so that the whole is `bytes` of text (0: unknown, as the sizes
 * say). */
double lam_tokens_bytes(const lam_tokens *t);
void lam_tokens_weigh(lam_tokens *t, const int32_t *sizes, int64_t bytes);

/* Writing.  finish() publishes the file; abort() leaves nothing.  Both free the object. */
typedef struct lam_tokens_writer lam_tokens_writer;

lam_status lam_tokens_writer_open(lam_tokens_writer **out, const char *path, const char *split,
                                  int vocab_size);
lam_status lam_tokens_writer_put(lam_tokens_writer *w, const int32_t *ids, size_t n);
lam_status lam_tokens_writer_finish(lam_tokens_writer *w);
void lam_tokens_writer_abort(lam_tokens_writer *w); /* NULL is fine */

#endif
