/* stack.h -- B streams running through a model: activations, memory state, forward and backward.
 *
 * The life of a segment; mem/segment.h numbers the rules (G1.. of its rows, C1.. of the state, R1.. of repetition):
 *
 *   begin     fixes ctx and T, loads the remembered rows in front, projects the positions       (G1, G2, C1)
 *   forward   computes the next n rows of every stream, layer by layer                          (G3 - G6)
 *   loss      cross-entropy of the scored rows, and the gradient that backward starts from
 *   backward  the same layers in reverse; adds to the parameters' gradients                     (G7)
 *   commit    writes what the memory keeps of the segment                                       (C2 - C4)
 *
 * Training and evaluation run all of it in one call, lam_stack_pass.  Decoding begins a segment, calls forward
 * for each token and commits when the segment is full; the numbers are the same (G5).
 *
 * The files: stack.c creates a stack, plan.c lays out its buffers, segment.c is the path above from top to bottom,
 * block.c one layer on it, token.c the same path for one decoded token, batch.c decodes texts of different age
 * together, results.c reads back losses and logits. */
#ifndef LAM_MODEL_STACK_H
#define LAM_MODEL_STACK_H

#include "model/model.h"

typedef struct lam_stack_options {
    int B, N, M; /* streams, longest segment, memory length (cfg->mem_len is not read) */
    int64_t
        most; /* maximum number of tokens per stream: nothing is allocated for more; 0: no limit */
    int E; /* rows at a segment's end that are computed again with the next one: not stored in the memory (ext_len) */
    int train; /* keep activations of all layers and room for gradients */
    int batch; /* only for lam_stack_open_batch(): nothing is allocated that decoding does not use */
    int wide; /* keys and values in ACT, whatever the model's cache is: needed to measure attention */
    int full;     /* compute state that nothing reads (traces, analysis); keys and values in ACT */
    lam_dev *dev; /* kept; NULL: the model's.  Several threads may run stacks of one model, each on
                     a device context of its own of the same back-end. */
} lam_stack_options;

typedef struct lam_stack lam_stack;

/* `model` is kept and must outlive the stack.  For training the model's gradients are placed. */
lam_status lam_stack_create(lam_stack **out, lam_model *model, const lam_stack_options *options);
void lam_stack_free(lam_stack *st); /* NULL is fine */

/* Bytes of device memory that such a stack would allocate, and their parts.  Fails where lam_stack_create() would fail
 * for another reason than lack of memory. */
typedef struct lam_stack_sizes {
    size_t activations, state, scratch;
} lam_stack_sizes;
lam_status lam_stack_measure(lam_stack_sizes *out, lam_model *model,
                             const lam_stack_options *options);

/* Empties the memory, and discards everything derived from weights that may have changed. */
void lam_stack_reset(lam_stack *st);
/* Empties the memory of one stream; the others keep theirs. */
void lam_stack_forget(lam_stack *st, int stream);

/* Dropout of a segment: the masks are a pure function of seed and step.  Probabilities are the model's when `on`. */
typedef struct lam_stack_dropout {
    int on;
    uint64_t seed;
    uint32_t step;
} lam_stack_dropout;

/* A whole segment: begin, forward, loss, backward unless grad_scale is 0, commit unless it is left open. */
typedef struct lam_pass {
    const int32_t *inputs, *targets; /* [B][n], [B][scored] */
    int n;                           /* rows per stream */
    int scored;                      /* the last ones, which have targets; 0: all */
    const int *rows;                 /* [B]: rows without padding (D2); NULL: n */
    double grad_scale;
    lam_stack_dropout dropout;
    int open; /* the caller commits */
    /* Called in backward, layer by layer from the last one on, when the gradients from place `from` to `end` of the flat
     * vector are final: the matrices of this layer, and first all that comes behind them.  What it queues belongs to the
     * pass, by the rules R1 - R3.  NULL: not called. */
    void (*final)(void *user, size_t from, size_t end);
    void *user;
} lam_pass;
void lam_stack_pass(lam_stack *st, const lam_pass *pass);

/* Its parts.  Starts a segment of at most `length` <= N tokens per stream. */
void lam_stack_begin(lam_stack *st, int length, lam_stack_dropout dropout);
/* Only the last n rows per stream of the next forwards are scored, until the segment ends; 0, as at its beginning,
 * all of them. */
void lam_stack_set_scored(lam_stack *st, int n);
/* Computes n more tokens of every stream; tokens are [B][n] in host memory, each in [0, n_token). */
void lam_stack_forward(lam_stack *st, const int32_t *tokens, int n);
/* Loss of the scored rows of the last forward against targets [B][n]; one whose target is negative has none.
 * grad_scale != 0 prepares backward with the gradient of grad_scale * sum(nll). */
void lam_stack_loss(lam_stack *st, const int32_t *targets, double grad_scale);
/* Adds the parameters' gradients of the prepared loss to model->params.grad, and of grad_scale times the memory's
 * auxiliary loss if it has one. */
void lam_stack_backward(lam_stack *st);
/* Ends the segment: updates the memory with all its rows but the last E. */
void lam_stack_commit(lam_stack *st);

/* ---- Texts of different age, decoded in one batch (batch.c) ----
 *
 * A segment is begun in a stack of one stream, which reads the prompt and refreshes the memory, and which sits in the
 * batch: it computes in the rows of one of its streams.  Then the text joins the batch, whose streams decode together,
 * each at a row of its own (G8).  When its segment is full, the stack of one stream sits there again, commits the
 * segment and begins the next.  Results do not depend on the other streams (ops/decode.h says how exactly).  Both
 * stacks are of one model and have the same M, and the model can decode by token: lam_stack_can_batch(). */

int lam_stack_can_batch(const lam_stack *st);
/* Creates an empty batch of st's B streams, for segments of `length` <= N tokens. */
void lam_stack_open_batch(lam_stack *st, int length);
/* From here on `one` (B = 1) begins segments in the rows of stream b; NULL: in its own. */
void lam_stack_sit(lam_stack *one, const lam_stack *batch, int b);
/* Goes on with the segment in the seat's rows, `done` of which are computed: commit or forward follows.  The memory is the
 * one that it was begun with, or has the same lengths. */
void lam_stack_resume(lam_stack *one, int length, int done);
/* begin and forward of a segment's first token; what is captured of it goes to *graphs (ops.h, repeat). */
void lam_stack_begin_token(lam_stack *st, int length, const int32_t *tokens, lam_graphs **graphs);
/* The stream that `one` sits in has as many rows as were computed there. */
void lam_stack_join(lam_stack *batch, const lam_stack *one);
/* From here on only the first `streams` streams are computed, 1 to B; the others keep their state.  This is cheaper
 * while few streams are in use.  A different number may select other GEMM kernels, which changes only rounding
 * (ops/decode.h). */
void lam_stack_set_width(lam_stack *batch, int streams);
/* Decodes one more token of every stream with go[b]; NULL: of all streams that are not empty.  The other streams do not
 * advance.  A stream whose segment is full must have been dropped. lam_stack_logits() follows; only streams that
 * advanced have logits. */
void lam_stack_forward_batch(lam_stack *batch, const int32_t *tokens, const unsigned char *go);
/* Empties stream b: its segment is committed, or its text is gone. */
void lam_stack_drop(lam_stack *batch, int b);
/* The number of tokens in the segment of stream b; -1: the stream is empty. */
int lam_stack_age(const lam_stack *batch, int b);

/* Adds the last loss to totals, and the auxiliary loss to totals + 4 (each as in lam_tally).  Does not wait. */
enum { LAM_TOTALS = 8 };
void lam_stack_tally(lam_stack *st, void *totals);
/* nll [B][n] of the last loss, as doubles. Waits for the device. */
lam_status lam_stack_nll(lam_stack *st, double *nll);
int lam_stack_has_aux(const lam_stack *st); /* does the memory have an auxiliary loss? */
/* The auxiliary loss of the last backward pass, in nats summed over the tokens; 0 if there is none.  Waits. */
lam_status lam_stack_aux(lam_stack *st, double *sum);
/* Logits (log-probabilities up to a constant) of the last row of every stream over the whole
 * vocabulary, [B][n_token].  Adaptive softmax: log-probabilities. */
lam_status lam_stack_logits(lam_stack *st, double *logits);
/* The same of row `row` of the scored rows of the last forward, from 0. */
lam_status lam_stack_logits_at(lam_stack *st, int row, double *logits);

/* The same of the scored rows first .. first + rows of the last forward, of a stack of one stream: [rows][n_token]. */
lam_status lam_stack_row_logits(lam_stack *st, int first, int rows, double *logits);

/* Of the rows of logits asked for last, row `row` has this many tokens in front of the first whose logit is not finite:
 * n_token where all are. */
size_t lam_stack_finite(const lam_stack *st, int row);

/* State: for verification, snapshots and checkpoints. */
lam_mem *lam_stack_mem(lam_stack *st);
const lam_segment *lam_stack_segment(const lam_stack *st);
/* The captured passes (ops.h, repeat); code that exchanges the memory must exchange these with it (R1). */
lam_graphs **lam_stack_graphs(lam_stack *st);

#endif
