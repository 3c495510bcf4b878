/* stack.h -- B streams running through a model: activations, memory state, forward and backward.
 *
 * Time is cut into segments.  One segment:
 *     begin(length)  forward(tokens)...  loss(targets)  [backward]  commit
 * Training and evaluation give a whole segment to one forward; decoding gives it token by token, and gets
 * the same numbers, because what a row reads is settled before it is computed (design: the memory is
 * final once the first token of the segment is known).
 * begin reads the state, commit alone writes it: without commit a segment can be repeated. */
#ifndef LAM_MODEL_STACK_H
#define LAM_MODEL_STACK_H

#include "model/model.h"

typedef struct lam_stack_options {
    int B, N, M; /* streams, longest segment, memory length (cfg->mem_len is not read) */
    int64_t
        most; /* tokens that a stream will ever be fed: nothing is allocated for more; 0: any number */
    int E;    /* rows at a segment's end that the next one brings again: not remembered (ext_len) */
    int train;    /* keep activations of all layers and room for gradients */
    int full;     /* compute state that nothing reads (traces, analysis); keys and values in ACT */
    lam_dev *dev; /* kept; NULL: the model's.  Several threads may run stacks of one model, each on
                     a device context of its own of the same back-end. */
} lam_stack_options;

typedef struct lam_stack lam_stack;

/* `model` is kept and must outlive the stack.  For training the model's gradients are placed. */
lam_status lam_stack_create(lam_stack **out, lam_model *model, const lam_stack_options *options);
void lam_stack_free(lam_stack *st); /* NULL is fine */

/* Bytes of device memory such a stack would take, and how they divide.  Fails where lam_stack_create() would, but for
 * want of that memory. */
typedef struct lam_stack_sizes {
    size_t activations, state, scratch;
} lam_stack_sizes;
lam_status lam_stack_measure(lam_stack_sizes *out, lam_model *model,
                             const lam_stack_options *options);

/* Forgets the past, and everything derived from weights that may have changed since. */
void lam_stack_reset(lam_stack *st);

/* Dropout of the segments to come: p is the model's when `on`. */
typedef struct lam_noise {
    int on;
    uint64_t seed;
    uint32_t step;
} lam_noise;

/* Starts a segment of at most `length` <= N tokens per stream. */
void lam_stack_begin(lam_stack *st, int length, lam_noise noise);
/* Only the last n rows per stream of the next forwards are scored, until the segment ends; 0, as at its beginning,
 * all of them. */
void lam_stack_score(lam_stack *st, int n);
/* Computes n more tokens of every stream; tokens are [B][n] in host memory, each in [0, n_token). */
void lam_stack_forward(lam_stack *st, const int32_t *tokens, int n);
/* Loss of the scored rows of the last forward against targets [B][n].  grad_scale != 0 prepares backward with
 * the gradient of grad_scale * sum(nll), and is only for a whole-segment forward. */
void lam_stack_loss(lam_stack *st, const int32_t *targets, double grad_scale);
/* Adds the parameters' gradients of the prepared loss to model->params.grad, and of grad_scale times the
 * memory's own loss where it has one. */
void lam_stack_backward(lam_stack *st);
/* Ends the segment: keeps what the memory keeps of all its rows but the last E. */
void lam_stack_commit(lam_stack *st);

/* A whole segment: begin, forward, loss, backward unless grad_scale is 0, commit unless it is left open. */
typedef struct lam_pass {
    const int32_t *inputs, *targets; /* [B][n], [B][scored] */
    int n;                           /* rows per stream */
    int scored;                      /* the last ones, which have targets; 0: all */
    double grad_scale;
    lam_noise noise;
    int open; /* the caller commits */
} lam_pass;
void lam_stack_pass(lam_stack *st, const lam_pass *pass);

/* Adds the last loss to totals, and the memory's own to totals + 4 (each as in lam_tally).  Does not wait. */
enum { LAM_TOTALS = 8 };
void lam_stack_tally(lam_stack *st, void *totals);
/* nll [B][n] of the last loss, as doubles. Waits for the device. */
lam_status lam_stack_nll(lam_stack *st, double *nll);
int lam_stack_has_aux(const lam_stack *st); /* is there a loss of the memory's own? */
/* The memory's own loss in the last backward, in nats summed over the tokens; 0 where it has none.  Waits. */
lam_status lam_stack_aux(lam_stack *st, double *sum);
/* Logits (log-probabilities up to a constant) of the last row of every stream over the whole
 * vocabulary, [B][n_token].  Adaptive softmax: log-probabilities. */
lam_status lam_stack_scores(lam_stack *st, double *scores);

/* State: for verification, snapshots and checkpoints. */
lam_mem *lam_stack_mem(lam_stack *st);
const lam_segment *lam_stack_segment(const lam_stack *st);
/* Its recordings of passes (ops.h, repeat); whoever exchanges the memory exchanges them with it. */
lam_tape **lam_stack_tape(lam_stack *st);

#endif
