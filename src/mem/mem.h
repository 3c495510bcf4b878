/* mem.h -- how a layer uses the past: the one interface behind all memories.
 *
 * Every model in the paper runs the same block (Eq. 3) and differs in what a row reads and in what a finished
 * segment leaves behind.  A mechanism is
 *   slots   what survives a segment, each a copy of the newest M rows of some buffer of the segment;
 *   attend  what context C each row reads: C-> (Eq. 2), C<- (Eq. 9), C<-> (Eq. 10).
 * attend reads the state and never changes it; lam_mem_commit alone writes it, after backward, so a segment
 * evaluated twice gives the same answer twice.  Wo, residual, LayerNorm and FFN are in model/block.c.
 *
 * A segment has T rows per stream: `ctx` memory rows, then the current ones.  In LaMemo the memory
 * rows climb the layers with the current ones ("lead" rows); elsewhere they are constants that only
 * serve as keys.  Current rows may arrive in several calls (decoding): `first` of them are done,
 * `n` are being computed now; lead rows are computed with the first call. */
#ifndef LAM_MEM_MEM_H
#define LAM_MEM_MEM_H

#include "core/arena.h"
#include "nn/config.h"
#include "nn/dims.h"
#include "nn/layer.h"
#include "nn/linear.h"
#include "nn/positions.h"

typedef struct lam_mem lam_mem;
typedef struct lam_segment lam_segment;

/* Buffers of one layer, for all B streams.  [B][T][..] have T rows per stream. */
typedef struct lam_layer_rows {
    void *x;   /* ACT [B][T][D]: input of the layer; ctx rows first */
    void *xn;  /* what attention reads: x itself, or LayerNorm(x) in pre-norm models */
    void *qkv; /* ACT [B][T][3HK] */
    void *c;   /* ACT [B][T][HK]: contexts, before W_o */
    void *lse; /* WIDE [B][T][H]: log s of each context */
    void *c_new, *lse_new, *alpha; /* look-ahead: ACT [B][M][HK], WIDE [B][M][H] twice */
} lam_layer_rows;

struct lam_segment {
    lam_dev *dev;
    const lam_config *cfg;
    lam_dims dims;
    lam_params *params;
    const lam_layer_params *ids; /* [L] */
    lam_positions *pos;
    const lam_mem *mem;
    lam_layer_rows *layer; /* [L + 1]: the last one has only x, the output rows */
    int B, M, N;           /* streams and capacities */
    int T;                 /* rows per stream of this segment: ctx + its planned length */
    int ctx, first, n;
    int full;      /* compute the last layer's lead rows and state too: verify, analyze */
    lam_drop drop; /* seed and step of this segment; p is set where it is used */

    /* Backward: gradient of layer.xn rows from dx_from on is added to dxn. */
    void *dqkv; /* ACT [B][T][3HK] */
    void *dc;   /* ACT [B][T][HK]: given */
    void *dxn;  /* ACT [B][T][D] */
    int dx_from;
    void *dlse_new, *dc_new; /* like lse_new, c_new */
};

typedef enum lam_slot_source { LAM_FROM_X, LAM_FROM_C, LAM_FROM_LSE } lam_slot_source;

/* One piece of state: the newest rows of a layer's buffer, [B][M][width]. */
typedef struct lam_slot {
    lam_slot_source source;
    int layer;
    lam_class type;
    int width;  /* stored */
    void *rows; /* m of them are valid, oldest first */
} lam_slot;

typedef struct lam_mem_ops {
    const char *name;
    /* Fills slots (room for 2L + 1) and returns how many; `full` asks for state nobody reads too. */
    int (*slots)(const lam_config *cfg, int full, lam_slot *out);
    /* Do memory rows climb through `layer`?  Then the block computes them as well. */
    int (*leads)(const lam_config *cfg, int layer);
    void (*attend_fwd)(const lam_segment *s, int layer);
    void (*attend_bwd)(const lam_segment *s, int layer);
} lam_mem_ops;

/* State of B streams. */
struct lam_mem {
    const lam_mem_ops *ops;
    lam_dev *dev;
    int B, M;
    int m;    /* valid rows per stream */
    int prev; /* length of the previous segment: the keys that look-ahead has not seen */
    int n_slots;
    lam_slot *slots; /* [2L + 1], owned by the caller */
};

/* The mechanism called `name`; LAM_ERR_ARG lists them. */
lam_status lam_mem_find(const lam_mem_ops **out, const char *name);

/* Carves the state's buffers.  mem->ops, dev, B, M, slots are set. */
void lam_mem_layout(lam_mem *mem, const lam_config *cfg, int full, lam_arena *arena);
/* Puts the remembered layer inputs in front of the segment's rows. */
void lam_mem_load(const lam_segment *s);
/* Keeps the newest M rows of ctx + done current rows. */
void lam_mem_commit(lam_mem *mem, const lam_segment *s, int done);

#endif
