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

void lam_naive_gemm(lam_dev *dev, const lam_gemm *a);
void lam_naive_norm_fwd(lam_dev *dev, const lam_norm *a);
void lam_naive_norm_bwd(lam_dev *dev, const lam_norm *a);
void lam_naive_dropout(lam_dev *dev, const lam_dropout *a);
void lam_naive_copy(lam_dev *dev, const lam_copy *a);
void lam_naive_colsum(lam_dev *dev, const lam_colsum *a);
void lam_naive_attn_fwd(lam_dev *dev, const lam_attn *a);
void lam_naive_embed_fwd(lam_dev *dev, const lam_embed *a);
void lam_naive_attn_bwd(lam_dev *dev, const lam_attn *a);
void lam_naive_profile(lam_dev *dev, const lam_profile *a);
void lam_naive_attn_next(lam_dev *dev, const lam_attn_next *x);
void lam_naive_place(lam_dev *dev, const lam_place *a);
void lam_naive_tally(lam_dev *dev, const lam_tally *a);
void lam_naive_repeat(lam_dev *dev, lam_tape **tape, uint64_t key, void (*work)(void *), void *arg);
void lam_naive_forget(lam_dev *dev, lam_tape *tape);
void lam_naive_interp_fwd(lam_dev *dev, const lam_interp *a);
void lam_naive_interp_bwd(lam_dev *dev, const lam_interp *a);
void lam_naive_pool(lam_dev *dev, const lam_pool *a);
void lam_naive_distance(lam_dev *dev, const lam_distance *a);
void lam_naive_gate_fwd(lam_dev *dev, const lam_gate *a);
void lam_naive_gate_bwd(lam_dev *dev, const lam_gate *a);
void lam_naive_density_fwd(lam_dev *dev, const lam_density *a);
void lam_naive_density_bwd(lam_dev *dev, const lam_density *a);
void lam_naive_sticky(lam_dev *dev, const lam_sticky_samples *a);
void lam_naive_ortho_begin(lam_dev *dev, const lam_ortho_begin *a);
void lam_naive_ortho_mix(lam_dev *dev, const lam_ortho_mix *a);
void lam_naive_ortho_even(lam_dev *dev, const lam_ortho_even *a);

/* The same for operands in bf16 and int8 as well. */
void lam_naive_gemm_any(lam_dev *dev, const lam_gemm *a);
void lam_naive_attn_fwd_any(lam_dev *dev, const lam_attn *a);
void lam_naive_embed_fwd_any(lam_dev *dev, const lam_embed *a);

#endif
