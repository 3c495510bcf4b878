/* attn_stats.h -- where attention goes: a few numbers about each row of P, without storing P.
 *
 * For query i of a causal attention, after its forward, with P = exp(S - lse) before dropout:
 *
 *   peak[c]   the largest P[i][j] among the distances shift + i - j = c * interval .. c * interval +
 *             interval - 1; 0 where the query does not see all of them          (Figure 1)
 *   entropy   - sum_j P[i][j] log P[i][j], in nats
 *   share[k]  sum of P[i][j] over the keys j < cut[k]: what falls on older rows
 *
 * All are zero for a query that sees no key. */
#ifndef LAM_OPS_ATTN_STATS_H
#define LAM_OPS_ATTN_STATS_H

#include "ops/attn.h"

enum { LAM_CUTS = 2 };
enum { LAM_ENTROPY, LAM_SHARE, LAM_ATTN_STATS = LAM_SHARE + LAM_CUTS };

typedef struct lam_attn_stats {
    lam_attn attn; /* mode CAUSAL; lse as attn_fwd left it; value, o and drop are not read */
    int interval, bins;
    int cut[LAM_CUTS];
    void *peak;  /* WIDE [B][queries][H][bins] */
    void *stats; /* WIDE [B][queries][H][LAM_ATTN_STATS] */
} lam_attn_stats;

/* How many intervals query i sees whole. */
static inline int lam_attn_stats_seen(const lam_attn *a, int interval, int i)
{
    const int first = a->shift + i + 1; /* keys on its left, itself included */
    const int reach = a->reach > 0 && a->reach < first ? a->reach : first;
    return reach > 0 ? reach / interval : 0;
}

#endif
