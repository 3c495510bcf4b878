/* decode.h -- decoding: one new row per stream, each stream at a row number of its own, read from memory.
 *
 * A token's row number changes with every token.  As an argument it would make every call a new one; read from
 * memory by the operation itself, the same calls serve a whole segment and can be captured once (ops.h, repeat).
 * Streams may be of different age: stream b is at row at[b], and of its remembered rows it reads the newest
 * valid[b] (attn.h), so that texts which began at different times share one batch.
 *
 * What a stream gets does not depend on what its neighbours hold or where they are:
 *   ref, ref16  to the last bit, whatever the batch; all exact devices likewise;
 *   cpu, cuda   to the last bit in a batch of the same B (on cuda: and the same a.keys).  Another B or a.keys may choose
 *               another GEMM kernel or another division of the keys, and changes rounding alone. */
#ifndef LAM_OPS_DECODE_H
#define LAM_OPS_DECODE_H

#include "ops/attn.h"
#include "ops/gemm.h"
#include "ops/rowwise.h"

enum { LAM_NEXT_WIDTH = 512 }; /* widest head of attn_next */

/* Attention of one new row per stream to the rows before it and to itself.  `a` is a forward CAUSAL call with one query
 * and without dropout, except that a.shift is not read and a.keys only bounds: stream b has at[b] rows before this
 * one, 0 <= at[b] < a.keys.  The new key and value are first put into row at[b] of a.k and a.value, rounded where
 * these are HALF or BYTE. */
typedef struct lam_attn_next {
    lam_attn a;
    lam_view k, value; /* ACT: H * K columns of stream b at b * step */
    const void *at;    /* INT [B] */
} lam_attn_next;

/* norm_fwd(norm), then gemm(gemm), whose A is norm's y: what a layer does with its rows twice.  Where rows are few the
 * time of both is that of starting them, so a device may do them as one.  y and sum overlap neither x nor add. */
typedef struct lam_norm_gemm {
    lam_norm norm;
    lam_gemm gemm;
} lam_norm_gemm;

/* Puts one row per stream into row at[b] of several buffers:
 *   out[b * step + at[b] * width + c] = in[b * width + c],  c < width.  Rows are whole multiples of 4 bytes. */
typedef struct lam_put_item {
    lam_class type;
    int width;
    const void *in; /* [B][width] */
    lam_view out;
} lam_put_item;

typedef struct lam_put_rows {
    int B, n;
    const lam_put_item *items; /* host memory, borrowed for the call */
    const void *at;            /* INT [B] */
} lam_put_rows;

#endif
