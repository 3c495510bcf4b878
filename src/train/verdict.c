/* verdict.c -- see verify.h: what the errors of a trace mean. */
#include "train/verify.h"

#include <math.h>

const char *lam_quantity_name(lam_quantity q)
{
    static const char *const names[] = {"nll",    "grad",       "grad_norm",  "aux_loss",   "state",
                                        "decode", "train_loss", "train_norm", "train_param"};
    return names[q];
}

void lam_verify_limits(lam_verdict *v, const lam_dev *dev)
{
    for (int q = 0; q < LAM_QUANTITIES; q++)
        v->limit[q] = dev->tolerance;
    if (dev->act != LAM_F64)
        v->limit[LAM_VERIFY_TRAIN_PARAM] = 1e-2; /* Adam amplifies rounding */
}

int lam_verify_in_bf16(const lam_dev *dev)
{
    return dev->act == LAM_BF16 || dev->rounds;
}

double lam_verify_rms(const lam_verdict *v, lam_quantity q)
{
    return v->numbers[q] > 0.0 ? sqrt(v->squares[q] / v->numbers[q]) : 0.0;
}

/* The gradient's norm is one number of a segment, and that roundings cancelled in ref16's says nothing about
 * others'.  But by the triangle inequality it is never off by more than the whole gradient: |g + e| - |g| <=
 * |e|.  So |e| of ref16's gradients, RMS over segments, is how wrong it may be. */
static double norm_error(const lam_verdict *like)
{
    const double segments = like->numbers[LAM_VERIFY_GRAD_NORM];
    return segments > 0.0 ? sqrt(like->squares[LAM_VERIFY_GRAD] / segments) : 0.0;
}

double lam_verify_rms_limit(const lam_verdict *like, lam_quantity q)
{
    if (q == LAM_VERIFY_GRAD_NORM)
        return norm_error(like);
    const int gradients =
        q == LAM_VERIFY_GRAD || q == LAM_VERIFY_TRAIN_NORM || q == LAM_VERIFY_TRAIN_PARAM;
    const double size = like->numbers[q] > 0.0 ? sqrt(like->sizes[q] / like->numbers[q]) : 0.0;
    return (gradients ? 3.0 : 2.0) * lam_verify_rms(like, q) + 0x1p-9 * size;
}

void lam_verify_compare(lam_verdict *v, const lam_verdict *like)
{
    v->failed = 0;
    for (int q = 0; q < LAM_QUANTITIES; q++)
        if (!(lam_verify_rms(v, (lam_quantity)q) <= lam_verify_rms_limit(like, (lam_quantity)q)))
            v->failed = 1;
}
