/* segment.h -- one segment of B streams: its buffers, and the rules that all code working on it relies on.
 *
 * A stream's text is cut into segments.  The stack (model/stack.h) computes a segment with rows of the memory in
 * front of it; a memory (mem.h) says what those rows are and what the segment leaves behind.  The rules below are
 * stated here and nowhere else; code that relies on one cites its number.
 *
 * Geometry.  A stream has T rows in every [B][T][..] buffer:
 *
 *      0            ctx        ctx + first     ctx + first + n          T
 *      | remembered  | done      | computed now  | not yet               |
 *
 *   G1  T = ctx + the planned length.  begin sets ctx and T; they stay until the next begin.  T is the distance of two
 *       streams in all buffers, so every address follows from the stack and T.
 *   G2  ctx = lam_mem_context() at begin, at most M: the rows the memory puts in front, oldest first.
 *   G3  first + n <= T - ctx.  Forward alone moves them: first += n, then n = the rows it was given.  Training and
 *       evaluation compute a segment in one call (first = 0), decoding in many.
 *   G4  Remembered rows are computed with the segment's first call (first = 0), as far as a layer computes them at all
 *       (lam_mem_climbs), and are constants for all later calls.
 *   G5  A row is final once its call has ended: no row reads what comes after it, except remembered rows, whose
 *       look-ahead ends at the first current row.  So a segment cut into calls gives the numbers of one call.
 *   G6  Nothing reads the rows behind ctx + first + n: they hold whatever earlier segments left there.
 *   G7  Backward follows one forward of the whole segment: first = 0 and n = T - ctx.
 *   G8  In a batch of texts of different age (model/batch.c) stream b is at row ctx + age[b] and reads the newest valid[b]
 *       of its ctx remembered rows; ctx is M for all of them, and G4 happened before the text joined.
 *
 * State.  What survives a segment is in the memory's slots:
 *   C1  begin reads the state, commit alone writes it.  A segment without commit can be repeated with the same result.
 *   C2  commit of `done` rows keeps the newest min(M, m + done) of the rows before ctx + done of every slot that is not
 *       the memory's own; then m is that number, prev = done, seen += done.  done = first + n - E: the last E rows come
 *       again with the next segment (ext_len).  After a segment that left the memory as it was (lam_mem_rests) prev is
 *       the sum of both.
 *   C3  The memory's own slots are written before those of C2, while the segment's rows and the old state are there.
 *   C4  All slots of C2 hold m rows; slots of the memory's own hold equally many in all layers.
 *
 * Documents.  Streams may remember different amounts, since one is emptied where a document ends (mem/streams.c):
 *   D1  A stream's own rows are the newest valid[b] of the ctx rows in front; attention reads no others.  What the rest
 *       hold is finite and reaches neither a result nor a gradient.
 *   D2  Current rows behind rows[b] are padding: nothing before them sees them, they have no target and so no gradient.
 *       A stream that has padding remembers nothing of the segment or before it.
 *   D3  All streams have segments of the same length and all rows of a slot are moved by C2, so valid[b] is 0 or at least
 *       min(prev, m).  A memory that may rest is refused (lam_mem_takes_documents).
 *   D4  A mechanism with slots or a loss of its own does that work for one stream after the other (lam_mem_each), on a
 *       view in which the stream is the only one, has no padding, and has the m, seen and slots that are its own.
 *
 * Repetition.  A whole segment (model/segment.c) and a decoded token (model/token.c) go through ops->repeat, which may
 * capture their operations and replay them, on cuda as a CUDA graph:
 *   R1  Equal keys mean equal operations with equal arguments.  What decides about them is in the key: lengths, m and
 *       prev, the addresses of the state; for a token T alone, by G1.
 *   R2  What changes from one replay to the next is in device memory and uploaded by the work itself: tokens, targets,
 *       the step of dropout, the row numbers.  Work uploads to an address once, before anything reads it.
 *   R3  Work does not wait for the device, and no operation depends on what the device computed.
 *   R4  A replay still runs the work's host code, so that ctx, first, n, m, prev and seen move as without one.  A token's
 *       changes nothing on the host, and its uploads come in front of it: it is replayed without being run.
 *   R5  Work that could not be captured runs a second time, and finds what R4 moves where it was before the first. */
#ifndef LAM_MEM_SEGMENT_H
#define LAM_MEM_SEGMENT_H

#include "nn/config.h"
#include "nn/dims.h"
#include "nn/layer.h"
#include "nn/positions.h"

typedef struct lam_mem lam_mem; /* mem.h */

/* Buffers of one layer, for all B streams.  [B][T][..] have T rows per stream (G1). */
typedef struct lam_layer_rows {
    void *x;  /* ACT [B][T][D]: input of the layer; ctx rows first */
    void *xn; /* what attention reads: x itself, or LayerNorm(x) in pre-norm models */
    void *
        qkv; /* ACT [B][T][3HK]; with a cache of another class only q, [B][T][HK], the same for all layers */
    void *kv;       /* HALF or BYTE [B][T][2HK], or NULL */
    void *kv_scale; /* WIDE [B][T][2H]: of each head of a BYTE cache; otherwise NULL */
    void *c;        /* ACT [B][T][HK]: contexts, before W_o */
    void *lse;      /* WIDE [B][T][H]: log s of each context */
    void *own;      /* the mechanism's struct of this layer, zeroed before its layout */
} lam_layer_rows;

typedef struct lam_segment {
    lam_dev *dev;
    const lam_config *cfg;
    lam_dims dims;
    lam_params *params;
    const lam_layer_params *ids; /* [L] */
    lam_positions *pos;
    const lam_mem *mem;
    lam_layer_rows *layer; /* [L + 1]: the last one has only x, the output rows */
    int B, M, N;           /* streams and capacities: remembered rows in front, current rows */
    int ctx, first, n, T;  /* G1-G3 */
    lam_class cache;       /* of keys and values: ACT, or HALF or BYTE (inference) */
    int full;              /* compute the last layer's lead rows and state too: verify, analyze */
    int train;             /* there will be a backward */
    int dropout;           /* it is on: each place has the model's probability for it */
    lam_drop
        drop;  /* seed and step of this segment, and the probability of all places but attention */
    void *own; /* the mechanism's struct for all layers */
    void *out; /* ACT [B][n][D]: C W_o^T of the layer at work; in attend_bwd its gradient */

    /* Backward: gradient of layer.xn rows from dx_from on is added to dxn. */
    void *dqkv; /* ACT [B][T][3HK] */
    void *dc;   /* ACT [B][T][HK]: given */
    void *dxn;  /* ACT [B][T][D] */
    int dx_from;
    /* A mechanism with an auxiliary loss of its own adds the gradient of grad_scale times it, and writes it
     * here, in nats and in as many parts as it likes: the loss is their sum. */
    void *aux; /* WIDE [L][B][N][H], zero before backward; NULL where there is no such loss */
    double grad_scale;

    const void *valid; /* INT [B]: D1; NULL: all rows in front are valid */
    const int *rows;   /* [B], host: D2; NULL: no stream has padding */
    int stream;        /* of a view of one stream: which it is; otherwise 0 */
} lam_segment;

#endif
