/* attn_sum.h -- gradients that are sums over streams (dr, du, dv, drbias), the same for any threads.
 *
 * The streams of a head are cut into ranges; a task is one range, adds its streams up in order into a
 * partial sum of its own, and at the end the partial sums of a head are added in order.  The cuts
 * depend on B and H alone, so how many threads there were cannot be seen in the result. */
#ifndef LAM_OPS_CPU_ATTN_SUM_H
#define LAM_OPS_CPU_ATTN_SUM_H

#include "ops/cpu/attn_int.h"

typedef struct lam_attn_sums {
    char *base; /* scratch, set by the caller */
    lam_work size;
    int ranges, tasks; /* tasks = H * ranges; task t is range t % ranges of head t / ranges */
} lam_attn_sums;

/* The partial sums of one task.  Positions are in the order of p, rows 16-aligned as when packed. */
typedef struct lam_attn_sum {
    float *dr, *drbias, *du, *dv;
} lam_attn_sum;

size_t lam_attn_sums_bytes(const lam_work *largest);
lam_attn_sums lam_attn_sums_make(const lam_work *size);

/* The streams of a task; of none when the task does not exist. */
lam_span lam_attn_streams(const lam_attn_sums *sums, int task);
lam_attn_sum lam_attn_sum_at(const lam_attn_sums *sums, int task);
void lam_attn_sum_clear(const lam_attn_sums *sums, int task);

/* Head h: dr overwritten, the others added to; the scale, which dr has from the queries, comes to the
 * others here. */
void lam_attn_sums_reduce(const lam_attn_sums *sums, const lam_attn *a, int h);

#endif
