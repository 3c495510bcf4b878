/* ref/attn_stats.c -- the specification of ops/attn_stats.h: one row of P at a time, written out. */
#include "ops/ref/ref.h"

#include <assert.h>
#include <math.h>

static void attn_stats_query(const lam_attn_stats *a, const double *p, int i, double *peak,
                             double *stats)
{
    const int at = a->attn.shift + i, seen = lam_attn_stats_seen(&a->attn, a->interval, i);
    for (int c = 0; c < a->bins; c++)
        peak[c] = 0.0;
    for (int k = 0; k < LAM_ATTN_STATS; k++)
        stats[k] = 0.0;
    for (int j = 0; j < a->attn.keys; j++) {
        if (p[j] == 0.0)
            continue;
        const int c = (at - j) / a->interval;
        if (c < a->bins && c < seen)
            peak[c] = fmax(peak[c], p[j]);
        stats[LAM_ENTROPY] -= p[j] * log(p[j]);
        for (int k = 0; k < LAM_CUTS; k++)
            stats[LAM_SHARE + k] += j < a->cut[k] ? p[j] : 0.0;
    }
}

void lam_ref_attn_stats(lam_dev *dev, const lam_attn_stats *a)
{
    const lam_ref_dev *ref = (const lam_ref_dev *)dev;
    assert(a->attn.mode == LAM_CAUSAL && a->interval >= 1 && a->bins >= 1);
    const size_t H = (size_t)a->attn.H, bins = (size_t)a->bins;
    size_t row = 0; /* (b, i, h) */
    for (int b = 0; b < a->attn.B; b++)
        for (int i = 0; i < a->attn.queries; i++)
            for (size_t h = 0; h < H; h++, row++) {
                lam_ref_attn_weights(ref->scores, &a->attn, (size_t)b, h, (size_t)i);
                attn_stats_query(a, ref->scores, i, (double *)a->peak + row * bins,
                                 (double *)a->stats + row * LAM_ATTN_STATS);
            }
}
