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
    LAM_VERIFY_DECODE, /* nll again, token by token */
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
    double squares[LAM_QUANTITIES]; /* sum of squared errors over all numbers of a quantity */
    double sizes[LAM_QUANTITIES];   /* sum of squares of the reference's */
    double numbers[LAM_QUANTITIES]; /* how many there are */
    int failed;                     /* some worst is above its limit */
} lam_verdict;

/* The tolerance of each quantity for a device of this precision. */
void lam_verify_limits(lam_verdict *v, const lam_dev *dev);

/* Does the device compute in bf16?  Then no limit per element fits, for a ReLU may flip: the root mean square
 * of its errors is compared with that of ref16, which makes no errors but the roundings to bf16. */
int lam_verify_in_bf16(const lam_dev *dev);
double lam_verify_rms(const lam_verdict *v, lam_quantity q);
/* The largest RMS error of a quantity where ref16 made `like`: 2 times its (gradients 3 times), and one rounding
 * of the result to bf16; of the gradient's norm, the norm of its error. */
double lam_verify_rms_limit(const lam_verdict *like, lam_quantity q);
/* Sets v->failed accordingly. */
void lam_verify_compare(lam_verdict *v, const lam_verdict *like);

/* Runs the trace at `path` on `dev`.  LAM_OK means that the comparison was made; v->failed says how it
 * ended.  v->limit must be set. */
lam_status lam_verify_file(lam_verdict *v, const char *path, lam_dev *dev);

#endif
