/* naive16.h -- the naive loops behind the types and widths of an accelerator: ACT is bf16, WIDE is
 * float, widths are padded to a multiple of eight.
 *
 * It is what a GPU back-end computes at best: inputs and results rounded to bf16, everything between
 * in float.  Lets the operation cases and the model's handling of types and padding be tested where
 * there is no GPU.  Slow: every operation converts whole allocations. */
#ifndef LAM_SUPPORT_NAIVE16_H
#define LAM_SUPPORT_NAIVE16_H

#include "ops/ops.h"

extern const lam_ops lam_ops_naive16;

#endif
