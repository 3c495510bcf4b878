/* stack_int.h -- the buffers of a stack, shared by its files. */
#ifndef LAM_MODEL_STACK_INT_H
#define LAM_MODEL_STACK_INT_H

#include "mem/causal.h"
#include "model/stack.h"

/* Activations of one block beside lam_layer_rows, contiguous over the rows it computes. */
typedef struct lam_block_acts {
    void *sum1, *mean1, *rstd1; /* post-norm: into LN1; pre-norm: into LN2 */
    void *y1;                   /* rows that enter the FFN */
    void *inner;                /* [rows][F] after ReLU and dropout */
    void *sum2, *mean2, *rstd2; /* post-norm: into LN2 */
    void *mean0, *rstd0;        /* pre-norm: of LN1 over all T rows */
} lam_block_acts;

/* One row per stream, for decoding (token.c). */
typedef struct lam_next_rows {
    int32_t *host;       /* [3][B]: rows before it, tokens, valid rows of the memory (G8) */
    void *now;           /* INT [3][B]: the same on the device */
    int *age, *past;     /* [B]: of a batch's streams: tokens, -1: empty; remembered rows; */
    int batch;           /* 1: this is one */
    void *x, *c, *lse;   /* [L][B][D], [L][B][HK], [L][B][H] */
    void *qkv;           /* [B][3HK] */
    lam_put_item *items; /* room for every slot */
    lam_graphs *graphs;
} lam_next_rows;

/* Logits on the host while they are converted, allocated by the first call that needs them (results.c). */
typedef struct lam_host_logits {
    int rows;         /* there is room for */
    char *raw;        /* as the device has them */
    double *clusters; /* adaptive softmax: the head and one tail */
    size_t *finite;   /* [all]: lam_stack_finite() */
    int all;
} lam_host_logits;

struct lam_stack {
    lam_model *model;
    lam_dev *dev; /* where it runs: the model's device, or another context on the same memory */
    lam_stack_options opt;
    const lam_config *cfg; /* the model's, or */
    lam_config fitted;     /* its copy with no length that opt.most tokens never fill */
    lam_arena arena;
    size_t state_bytes;
    lam_mem mem;
    lam_positions pos;
    lam_embedding embed;
    lam_head head;
    lam_segment seg;
    lam_layer_rows *rows;  /* [L + 1] */
    lam_layer_rows *home;  /* [L + 1]: its own, while it sits in a batch (batch.c) */
    const lam_stack *seat; /* that batch, or NULL */
    int seat_stream;
    lam_block_acts *acts;          /* [L] */
    lam_slot *slots;               /* [2 * lam_mem_max_slots]: of the state, of a view of it */
    lam_mem_stream *streams;       /* [B] */
    lam_mem_stream *noted_streams; /* [B], and */
    int *noted_rows; /* [2 * lam_mem_max_slots]: the memory before a pass that may be captured */
    int32_t *valid_host; /* [B] */
    void *valid;         /* INT [B]: the same on the device */
    void *own;           /* the mechanism's struct for all layers, */
    void *layer_own;     /* and its structs of layers, [L] */
    void **r;            /* [2L]: positional keys */

    void *tokens; /* INT [B*N] */
    void *attn_out,
        *ffn_out; /* ACT [B*T][D]: what a block's two branches add; in backward their gradients */
    void *z, *dz; /* ACT [B*N][D]: rows into the softmax */
    void *nll;    /* WIDE [B*N] */
    void *dx[2];  /* ACT [B][T][D]: gradients between layers, alternating */
    void *dinner; /* ACT [B*T][F] */
    void *dy1;    /* ACT [B*T][D] */
    void *drop_step; /* INT [1]: the step that dropout is drawn for (R2) */
    lam_next_rows next;
    lam_host_logits host;
    const lam_pass *pass; /* that is under way, where it is one call; else NULL */
    lam_graphs *graphs;   /* of whole segments */
    int positions_ready;  /* r is valid for these weights and this mask */
    int scored;           /* as lam_stack_set_scored() left it */
};

/* plan.c: lays all buffers out; runs on a measuring arena first. */
void lam_stack_layout(lam_stack *st, lam_arena *arena);

/* block.c: one layer on the rows of the current call. */
void lam_block_fwd(lam_stack *st, int layer);
/* One row per stream, x [B][D]: enter's y, which is computed first, or there already (NULL).  Returns the norm that makes
 * the row behind the layer, whose y the caller sets: the next layer begins with it. */
lam_norm lam_block_next(lam_stack *st, int layer, const lam_next_row *row, const lam_norm *enter,
                        void *x);
/* dx[(layer+1) & 1] holds the gradient of the output; leaves that of the input in dx[layer & 1]. */
void lam_block_bwd(lam_stack *st, int layer);

/* segment.c: rows per stream of the last forward that are scored. */
int lam_stack_scored_rows(const lam_stack *st);
/* results.c: elements of seg.aux. */
size_t lam_stack_aux_count(const lam_stack *st);

/* batch.c: points rows to the seat, if there is one; ctx is set. */
void lam_stack_take_seat(lam_stack *one);

/* token.c: whether the next token of every stream can be computed there, and computing it. */
int lam_stack_can_next(const lam_stack *st, int n);
void lam_stack_next(lam_stack *st, const int32_t *tokens);
/* The same once the rows and tokens are in st->next.host. */
void lam_stack_next_rows(lam_stack *st);

#endif
