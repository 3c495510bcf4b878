/* passage.h -- a passage token by token: how much each token surprises a model, and which earlier tokens the model
 * attends to when it predicts it.
 *
 * One stream is read (train/evaluate.h) with batch 1; of the attention weights of each token, averaged over the heads of
 * one layer, the largest LAM_ATTENDED are kept.  Compressed rows stand for several tokens and are left out. */
#ifndef LAM_MEASURE_PASSAGE_H
#define LAM_MEASURE_PASSAGE_H

#include "train/evaluate.h"

enum { LAM_ATTENDED = 16 };

typedef struct lam_passage_options {
    int tgt_len, mem_len;
    int layer;    /* whose attention is kept, from 0 on */
    int64_t from; /* tokens before the passage, which only fill the memory */
    int n;        /* tokens of the passage, at least 1; fewer where the text ends */
} lam_passage_options;

typedef struct lam_passage {
    int n;
    int32_t *tokens; /* [n]: the predicted ones */
    double *nll;     /* [n] */
    int32_t
        *back; /* [n][LAM_ATTENDED]: attended tokens, 1 being the token just before; 0: no more */
    float *weight; /* [n][LAM_ATTENDED]: their attention weights, the largest first */
} lam_passage;

/* Reads `text` from its beginning.  watch may be NULL.  On failure *out is empty. */
lam_status lam_passage_read(lam_passage *out, lam_model *model, const lam_tokens *text,
                            const lam_passage_options *options, lam_eval_watch *watch, void *user);
void lam_passage_free(lam_passage *p); /* fine on a zeroed one */

#endif
