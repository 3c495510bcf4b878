/* ref/exact.h -- the specification of exact arithmetic (ops/exact.h) as plain loops: float, integers, one thread. */
#ifndef LAM_OPS_REF_EXACT_H
#define LAM_OPS_REF_EXACT_H

#include "ops/exact.h"
#include "ops/ref/ref.h"

extern const lam_ops lam_ops_ref_exact;

#define LAM_REF_EXACT_OP(name, argument) void lam_ref_exact_##name(lam_dev *dev, const argument *a);
LAM_EXACT_OPS(LAM_REF_EXACT_OP)
#undef LAM_REF_EXACT_OP

/* Row `row` of block `block` of a view of floats; NULL stays NULL. */
static inline float *lam_ref_floats(lam_view view, size_t ld, size_t block, size_t row)
{
    return view.p ? (float *)view.p + block * view.step + row * ld : NULL;
}

/* How n floats are quantised. */
static inline lam_exact_grid lam_ref_grid(const float *x, size_t n, int Q)
{
    int32_t size = 0;
    for (size_t i = 0; i < n; i++)
        size = lam_exact_size(x[i]) > size ? lam_exact_size(x[i]) : size;
    return lam_exact_grid_of(size, (float)Q);
}

static inline int32_t lam_ref_level(lam_exact_grid grid, float x)
{
    return lam_exact_round(grid.up > 0.0f ? x * grid.up : 0.0f);
}

/* n floats as int8_t and their scale. */
static inline void lam_ref_pack(int8_t *q, float *scale, const float *x, size_t n)
{
    const lam_exact_grid grid = lam_ref_grid(x, n, LAM_EXACT_HEAD);
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)lam_ref_level(grid, x[i]);
    *scale = grid.scale;
}

#endif
