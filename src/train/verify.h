/* verify.h -- compares this build with a reference trace: loss, gradients, state, optimiser.
 *
 * A trace is a safetensors file with a small model, its inputs and what a float64 reference computed
 * (docs/formats.md).  Error of a tensor: max|ours - reference| / max(max|reference|, 1e-6). */
#ifndef LAM_TRAIN_VERIFY_H
#define LAM_TRAIN_VERIFY_H

#include "ops/ops.h"

typedef enum lam_quantity {
    LAM_VERIFY_NLL,
    LAM_VERIFY_GRAD,
    LAM_VERIFY_GRAD_NORM,
    LAM_VERIFY_AUX,
    LAM_VERIFY_STATE,
    LAM_VERIFY_TRAIN_LOSS,
    LAM_VERIFY_TRAIN_NORM,
    LAM_VERIFY_TRAIN_PARAM,
    LAM_QUANTITIES
} lam_quantity;

const char *lam_quantity_name(lam_quantity q);

typedef struct lam_verdict {
    int tensors[LAM_QUANTITIES];     /* how many were compared */
    double worst[LAM_QUANTITIES];    /* largest error; infinity for a NaN on either side */
    char where[LAM_QUANTITIES][128]; /* its tensor */
    double limit[LAM_QUANTITIES];
    int failed; /* some worst is above its limit */
} lam_verdict;

/* The tolerance of each quantity for a device of this precision. */
void lam_verify_limits(lam_verdict *v, const lam_dev *dev);

/* Runs the trace at `path` on `dev`.  LAM_OK means that the comparison was made; v->failed says how it
 * ended.  v->limit must be set. */
lam_status lam_verify_file(lam_verdict *v, const char *path, lam_dev *dev);

#endif
