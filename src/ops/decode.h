/* decode.h -- what decoding needs so that every token is the same work: places come from memory.
 *
 * A token's row number changes with every token.  As an argument it would make every call a new one; read
 * from memory by the operation itself, the same calls serve a whole segment and can be recorded once
 * (ops.h, repeat). */
#ifndef LAM_OPS_DECODE_H
#define LAM_OPS_DECODE_H

#include "ops/attn.h"

enum { LAM_NEXT_WIDTH = 512 }; /* widest head of attn_next */

/* Attention of one new row per stream to the rows before it and to itself.  `a` is a forward CAUSAL call
 * with one query, without dropout and with keys in ACT, except that a.shift is not read and a.keys only
 * bounds: there are *at rows before this one, *at < a.keys.  The new key and value are first put into row
 * *at of a.k and a.value. */
typedef struct lam_attn_next {
    lam_attn a;
    lam_view k, value; /* ACT: H * K columns of stream b at b * step */
    const void *at;    /* INT [1] */
} lam_attn_next;

/* Puts one row per stream into row *at of several buffers:
 *   out[b * step + *at * width + c] = in[b * width + c],  c < width.  Rows are whole multiples of 4 bytes. */
typedef struct lam_place_item {
    lam_class type;
    int width;
    const void *in; /* [B][width] */
    lam_view out;
} lam_place_item;

typedef struct lam_place {
    int B, n;
    const lam_place_item *items; /* host memory, borrowed for the call */
    const void *at;              /* INT [1] */
} lam_place;

#endif
