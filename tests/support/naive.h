/* naive.h -- a float32 back-end of plain loops: the yardstick for rounding errors.
 *
 * Written apart from ops/ref on purpose: where the two disagree by more than rounding, one of them
 * is wrong.  Every sum runs in the order of its index in float, as anyone would write it first.
 * Tests only. */
#ifndef LAM_SUPPORT_NAIVE_H
#define LAM_SUPPORT_NAIVE_H

#include "ops/ops.h"

extern const lam_ops lam_ops_naive;

/* The factor of a dropped or kept element. */
float lam_naive_keep(const lam_drop *d, size_t index);
/* x rounded up to a multiple of 8. */
size_t lam_naive_up8(int x);

#define LAM_NAIVE_OP(name, argument) void lam_naive_##name(lam_dev *dev, const argument *a);
LAM_OPS(LAM_NAIVE_OP)
#undef LAM_NAIVE_OP
void lam_naive_repeat(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*work)(void *),
                      void *arg);
void lam_naive_free_graphs(lam_dev *dev, lam_graphs *graphs);

/* gemm, attn_fwd and embed_fwd when all operands are float; the ones above take bf16 and int8 as well. */
void lam_naive_float_gemm(lam_dev *dev, const lam_gemm *a);
void lam_naive_float_attn_fwd(lam_dev *dev, const lam_attn *a);
void lam_naive_float_embed_fwd(lam_dev *dev, const lam_embed *a);

#endif
