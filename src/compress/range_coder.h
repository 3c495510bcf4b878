/* range_coder.h -- from symbols with frequencies to bytes, and back.
 *
 * A range coder with 64 bits and totals of 2^24.  The range never has fewer than 56 bits, so that a symbol costs
 * what its frequency says to within 2^-32.  Bytes behind the end of the coded ones count as 0: the encoder leaves
 * trailing zeros out. */
#ifndef LAM_COMPRESS_RANGE_CODER_H
#define LAM_COMPRESS_RANGE_CODER_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { LAM_TOTAL_BITS = 24, LAM_TOTAL = 1 << LAM_TOTAL_BITS };

/* ---- encoding ---- */

typedef struct lam_range_encoder {
    uint8_t *bytes; /* borrowed, [room] */
    size_t n, room;
    int full; /* the room was not enough: the bytes are worth nothing */
    uint64_t low, range;
} lam_range_encoder;

void lam_range_start(lam_range_encoder *e, uint8_t *bytes, size_t room);
/* The symbol that owns [first, first + count) of LAM_TOTAL; count > 0. */
void lam_range_put(lam_range_encoder *e, uint32_t first, uint32_t count);
/* Writes what is left.  LAM_OK or not, `full` says whether there was room. */
void lam_range_finish(lam_range_encoder *e);

/* ---- decoding ---- */

typedef struct lam_range_decoder {
    const uint8_t *bytes; /* borrowed, [size] */
    size_t at, size;
    uint64_t code, range, unit;
} lam_range_decoder;

void lam_range_open(lam_range_decoder *d, const uint8_t *bytes, size_t size);
/* A number below LAM_TOTAL that the next symbol owns.  LAM_ERR_FORMAT: no encoder wrote this. */
lam_status lam_range_peek(lam_range_decoder *d, uint32_t *value);
/* Takes that symbol, which owns [first, first + count). */
void lam_range_take(lam_range_decoder *d, uint32_t first, uint32_t count);
/* Were all bytes read, as far as a decoder can tell?  After the last symbol. */
int lam_range_at_end(const lam_range_decoder *d);

#endif
