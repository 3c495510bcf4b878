/* weights.h -- rows of weights as they are stored, as operands of GEMMs. */
#ifndef LAM_NN_WEIGHTS_H
#define LAM_NN_WEIGHTS_H

#include "ops/ops.h"

/* ACT, HALF, or BYTE, whose element (row, col) is worth scale[row] * p[row][col] (ops/gemm.h). */
typedef struct lam_weights {
    const void *p;
    lam_class type;
    const void *scale; /* WIDE; BYTE only */
} lam_weights;

/* The same from row `row` on, which begins at element `at` (row 0 with a later `at`: columns from there). */
static inline lam_weights lam_weights_from(const lam_dev *dev, lam_weights w, size_t row, size_t at)
{
    w.p = lam_at(dev, w.type, w.p, at);
    w.scale = w.scale ? lam_at(dev, LAM_WIDE, w.scale, row) : NULL;
    return w;
}

#endif
