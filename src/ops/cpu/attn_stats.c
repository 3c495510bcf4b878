/* cpu/attn_stats.c -- where attention goes, by blocks (specified in ref/attn_stats.c).
 *
 * The scores of a block are made again as forward made them, attn_fwd.c without the values; the
 * log-sum-exp being known, a row needs no second sweep.  Tasks are blocks of queries of a head, and a
 * row belongs to one of them. */
#include "ops/cpu/attn_int.h"

#include <omp.h>

static size_t bytes_a_thread(const lam_work *size)
{
    lam_arena count = {0};
    lam_scorer unused;
    lam_scorer_carve(&unused, &count, size);
    return count.used;
}

size_t lam_attn_stats_bytes(const lam_work *largest, int threads)
{
    return bytes_a_thread(largest) * (size_t)threads;
}

/* s = exp(s - lse) in a fenced row; returns - sum p log p.  Lanes outside give exp(-100) = 0. */
static float weigh(float *s, lam_span seen, float lse)
{
    lam_f16v sum = lam_splat(0.0f);
    for (int j = lam_floor(seen.lo, LAM_VEC); j < seen.hi; j += LAM_VEC) {
        const lam_f16v d = lam_max(lam_sub(lam_load(s + j), lam_splat(lse)), lam_splat(-100.0f));
        const lam_f16v p = lam_exp16(d);
        sum = lam_fma(p, d, sum);
        lam_store(s + j, p);
    }
    return -lam_sum16(sum);
}

/* The sum of p[lo .. hi); p is zero in the lanes before lo. */
static float sum_of(const float *p, int lo, int hi)
{
    lam_f16v sum = lam_splat(0.0f);
    int j = lam_floor(lo, LAM_VEC);
    for (; j + LAM_VEC <= hi; j += LAM_VEC)
        sum = lam_add(sum, lam_load(p + j));
    float all = lam_sum16(sum);
    for (; j < hi; j++)
        all += p[j];
    return all;
}

/* What the keys `seen` of a chunk add to the row of query `at` on the axis of keys; p[j] is key j. */
static void add_peaks(float *peak, const float *p, lam_span seen, int at, int interval, int bins)
{
    const int first = (at - seen.hi + 1) / interval;
    for (int c = first; c < bins; c++) {
        const int last = at - c * interval, from = last - interval + 1;
        if (last < seen.lo)
            return;
        float most = peak[c];
        for (int j = from > seen.lo ? from : seen.lo; j <= last && j < seen.hi; j++)
            most = p[j] > most ? p[j] : most;
        peak[c] = most;
    }
}

/* Row i of a block of scores against one chunk of keys. */
static void attn_stats_row(const lam_scorer *w, const lam_block *blk, const lam_attn_stats *x,
                           int i)
{
    const lam_attn *a = &x->attn;
    const int query = blk->i0 + i;
    const lam_span seen = lam_block_sees(blk, a, i);
    const size_t row =
        ((size_t)w->b * (size_t)a->queries + (size_t)query) * (size_t)a->H + (size_t)w->h;
    float *peak = (float *)x->peak + row * (size_t)x->bins;
    float *stats = (float *)x->stats + row * LAM_ATTN_STATS;
    if (seen.lo == seen.hi)
        return;
    float *s = lam_block_at(blk, w->s, i, blk->j0);
    const lam_span here = {seen.lo - blk->j0, seen.hi - blk->j0};
    lam_row_fence(s, here);
    stats[LAM_ENTROPY] += weigh(s, here, *lam_attn_stat(a, a->lse, w->b, w->h, query));
    for (int k = 0; k < LAM_CUTS; k++) {
        const int cut = x->cut[k] - blk->j0;
        stats[LAM_SHARE + k] += sum_of(s, here.lo, cut < here.hi ? cut : here.hi);
    }
    const int whole = lam_attn_stats_seen(a, x->interval, query);
    add_peaks(peak, s, here, a->shift + query - blk->j0, x->interval,
              whole < x->bins ? whole : x->bins);
}

static void clear_rows(const lam_scorer *w, const lam_attn_stats *x, int i0, int rows)
{
    const lam_attn *a = &x->attn;
    const size_t bins = (size_t)x->bins;
    for (int i = i0; i < i0 + rows; i++) {
        const size_t row =
            ((size_t)w->b * (size_t)a->queries + (size_t)i) * (size_t)a->H + (size_t)w->h;
        memset((float *)x->peak + row * bins, 0, bins * sizeof(float));
        memset((float *)x->stats + row * LAM_ATTN_STATS, 0, LAM_ATTN_STATS * sizeof(float));
    }
}

static void attn_stats_block(const lam_scorer *w, const lam_attn_stats *x, int i0)
{
    const lam_attn *a = &x->attn;
    const int rows = a->queries - i0 < LAM_BLOCK_Q ? a->queries - i0 : LAM_BLOCK_Q;
    const lam_packed packed = lam_scorer_packed(w);
    lam_scorer_queries(w, a, i0, rows);
    clear_rows(w, x, i0, rows);
    for (int j0 = 0; j0 < a->keys; j0 += LAM_BLOCK_K) {
        lam_block blk;
        lam_block_set(&blk, a, w->b, i0, j0);
        if (blk.all.lo == blk.all.hi)
            continue;
        for (int g = 0; g < blk.groups; g++) {
            lam_block_scores(&blk, g, w->s, a, &packed);
            for (int i = g * LAM_TILE; i < (g + 1) * LAM_TILE && i < rows; i++)
                attn_stats_row(w, &blk, x, i);
        }
    }
}

void lam_cpu_attn_stats(lam_dev *dev, const lam_attn_stats *x)
{
    const lam_attn *a = &x->attn;
    const lam_work size = lam_attn_work(a);
    const size_t bytes = bytes_a_thread(&size);
    const int blocks = lam_ceil(a->queries, LAM_BLOCK_Q) / LAM_BLOCK_Q, pairs = a->B * a->H;
    const int threads = lam_attn_threads(lam_cpu(dev), a, a->r ? 2 : 1, pairs * blocks);
    const int chunk = pairs >= 2 * threads ? blocks : 1;
    char *const scratch = lam_cpu_scratch(lam_cpu(dev), bytes * (size_t)threads);
    assert(a->mode == LAM_CAUSAL && x->interval >= 1 && x->bins >= 1);

#pragma omp parallel num_threads(threads)
    {
        lam_arena arena = {scratch + bytes * (size_t)omp_get_thread_num(), bytes, 0};
        lam_scorer w;
        lam_scorer_carve(&w, &arena, &size);
#pragma omp for schedule(dynamic, chunk)
        for (int task = 0; task < pairs * blocks; task++) {
            const int pair = task / blocks;
            lam_scorer_pack(&w, a, pair % a->B, pair / a->B);
            attn_stats_block(&w, x, task % blocks * LAM_BLOCK_Q);
        }
    }
}
