/* evaluate.h -- the loss of a text: one pass over it, memory empty at first, dropout off.
 *
 * The published protocol: the text is divided into `batch` streams read side by side (data/batcher.h), in segments of
 * tgt_len tokens with a memory of mem_len rows and, between the two, the last ext_len tokens computed again; the result
 * is the plain mean over the batch * (n_step - 1) predicted tokens.  With documents (reset.document) each is read from
 * a segment's start, its first token predicted from the separator, the memory of its stream empty: the result is that
 * of the documents read one by one. clamp_len and same_length are the model's: to use others, change model->cfg before
 * creating the evaluator. */
#ifndef LAM_TRAIN_EVALUATE_H
#define LAM_TRAIN_EVALUATE_H

#include "comm/comm.h"
#include "data/corpus.h"
#include "model/stack.h"
#include "train/settings.h"

/* One computed segment before commit: all its results are still in the stack. */
typedef struct lam_eval_segment {
    lam_stack *stack;
    int64_t row; /* its first token is token `row` of every stream */
    int n;       /* tokens of each stream */
    const int32_t *inputs,
        *targets;      /* [batch][n]; inputs with ext_len rows more in front, if any */
    const double *nll; /* [batch][n] */
} lam_eval_segment;

/* Called for each counted segment; a return value other than LAM_OK ends the pass. */
typedef lam_status lam_eval_visit(void *user, const lam_eval_segment *segment);

typedef struct lam_eval_options {
    int batch, tgt_len, mem_len, ext_len;
    int parts; /* the streams are computed in this many equal parts, one after the other; 0: 1 */
    lam_comm *comm;        /* kept; the parts are divided among its ranks.  NULL: one process */
    int64_t max_steps;     /* segments that count; 0: the whole text */
    int64_t most;          /* as in lam_stack_options */
    int64_t skip;          /* segments before them, which only fill the memory; 0 with documents */
    lam_reset reset;       /* `every` counts segments */
    int full;              /* as in lam_stack_options */
    lam_eval_visit *visit; /* may be NULL, and is with documents */
    void *visitor;
} lam_eval_options;

/* Sums over blocks; a block is one segment of one stream.  Results of several texts or parts of one
 * may be added field by field. */
typedef struct lam_eval_result {
    double nll;     /* sum over tokens, in nats */
    int64_t tokens; /* predicted */
    int64_t blocks;
    double bytes;               /* of text that these tokens stand for; 0: unknown */
    double nll_nll, nll_n, n_n; /* sums over blocks of S S, S n, n n (S its nll, n its tokens) */
    double seconds;
} lam_eval_result;

double lam_eval_mean(const lam_eval_result *r); /* nats per token */
/* Standard error of the mean, treating blocks as independent (the ratio estimator): neighbouring tokens are correlated,
 * so treating tokens as independent would underestimate the error.  NaN for fewer than 2 blocks. */
double lam_eval_error(const lam_eval_result *r);

/* Does a loss exceed that of a uniform guess, log(vocabulary), so far that the model has learned nothing? */
int lam_loss_untrained(double loss, double even);

/* A loss in nats as the corpus's metric, and the standard error of that. */
double lam_metric_of(lam_metric metric, double loss);
double lam_metric_error(lam_metric metric, const lam_eval_result *r);

/* Bits per byte of text, comparable across types of tokens, and its standard error; NaN: the number of bytes is
 * unknown. */
double lam_eval_bits_per_byte(const lam_eval_result *r);
double lam_eval_bits_error(const lam_eval_result *r);

/* Called after every segment with the result so far and the total number of tokens; a non-zero return value stops the
 * pass with LAM_ERR_INTERRUPTED. */
typedef int lam_eval_watch(void *user, const lam_eval_result *so_far, int64_t total);

typedef struct lam_evaluator lam_evaluator;

/* lam_length_fit() for all lengths and what is read of `text`. */
void lam_eval_fit(lam_eval_options *options, const lam_tokens *text);
/* Bytes that such an evaluator allocates; scratch is shared with other stacks of the device.  Fails where
 * lam_evaluator_create() would fail for another reason than lack of memory. */
lam_status lam_evaluator_measure(size_t *bytes, lam_model *model, const lam_eval_options *options);
/* `model` is kept.  Takes the memory of a stack; one evaluator may run many times. */
lam_status lam_evaluator_create(lam_evaluator **out, lam_model *model,
                                const lam_eval_options *options);
void lam_evaluator_free(lam_evaluator *e); /* NULL is fine */

/* One pass over `text` with the current weights.  With several ranks, each gets the result of all, whose bits depend on
 * the number of parts, not of ranks. watch may be NULL, and sees only the parts of this rank.  A loss that is not
 * finite is LAM_ERR_NUMERIC and names the place. */
lam_status lam_evaluator_run(lam_evaluator *e, lam_eval_result *out, const lam_tokens *text,
                             lam_eval_watch *watch, void *user);

#endif
