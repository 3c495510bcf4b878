/* attn_int.h -- what the files of attention share beyond blocks and packing: plan and softmax.
 *
 *   attn.c       the two entry points: which way to go, how many threads, how much scratch
 *   attn_row.c   forward for one or two queries: decoding, bound by memory
 *   attn_fwd.c   forward by blocks
 *   attn_bwd.c   backward by blocks; attn_sum.c, its sums over streams
 *   attn_stats.c    where attention goes, by blocks; attn_score.c, what it shares with forward
 *   attn_block.c, attn_pack.c, attn_tile.h, attn_shuffle.h, attn_warm.h   what these stand on */
#ifndef LAM_OPS_CPU_ATTN_INT_H
#define LAM_OPS_CPU_ATTN_INT_H

#include "core/arena.h"
#include "ops/cpu/attn_pack.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/philox.h"

enum {
    LAM_ROW_QUERIES = 2, /* up to here packing keys costs more than it saves */
    LAM_WARM_HEADS =
        6 /* rows a tile asks for: with two, the list of a head was half done when its tiles were */
};

/* How many of the device's threads are worth waking for `tasks` tasks of products * K multiply-adds
 * a visible pair in all. */
int lam_attn_threads(const lam_cpu_dev *dev, const lam_attn *a, int products, int tasks);
/* The shapes of a call, as reserve() was told them. */
lam_work lam_attn_work(const lam_attn *a);

/* Each way: bytes of scratch for shapes up to these, and the work itself. */
size_t lam_attn_row_bytes(const lam_work *largest, int threads);
size_t lam_attn_fwd_bytes(const lam_work *largest, int threads);
size_t lam_attn_bwd_bytes(const lam_work *largest, int threads);
size_t lam_attn_stats_bytes(const lam_work *largest, int threads);
void lam_attn_row_fwd(lam_cpu_dev *dev, const lam_attn *a, const int32_t *at);
void lam_attn_block_fwd(lam_cpu_dev *dev, const lam_attn *a);
void lam_attn_block_bwd(lam_cpu_dev *dev, const lam_attn *a);

/* What both block ways hold of the call, packed for one head (and, kt, one stream). */
typedef struct lam_packed {
    const float *qu, *qv, *kt, *rt, *rbias;
} lam_packed;

/* What one thread needs to make scores: one head of one stream, and a block of its queries. */
typedef struct lam_scorer {
    float *kt, *rt, *rbias; /* packed keys and positions of head h and stream b */
    float *qu, *qv;         /* scale * (q + u), scale * (q + v) of the block */
    float *s;               /* the scores */
    int b, h;               /* what is packed; -1: nothing */
} lam_scorer;

void lam_scorer_carve(lam_scorer *out, lam_arena *arena, const lam_work *size);
/* Packs what differs from before; returns whether the keys do. */
int lam_scorer_pack(lam_scorer *w, const lam_attn *a, int b, int h);
void lam_scorer_queries(const lam_scorer *w, const lam_attn *a, int i0, int rows);

static inline lam_packed lam_scorer_packed(const lam_scorer *w)
{
    return (lam_packed){w->qu, w->qv, w->kt, w->rt, w->rbias};
}

/* The scores of a group, unmasked: S = Qu K^T + band(Qv R^T + rbias), the scale being in the q. */
static inline void lam_block_scores(const lam_block *b, int g, float *s, const lam_attn *a,
                                    const lam_packed *x)
{
    if (a->rbias)
        lam_block_fill_pos(b, g, s, x->rbias);
    if (a->r)
        lam_block_score_pos(b, g, s, x->qv, x->rt, a->rbias ? LAM_TILE_ADD : LAM_TILE_SET);
    lam_block_score_key(b, g, s, x->qu, x->kt, a->r || a->rbias ? LAM_TILE_ADD : LAM_TILE_SET);
}

static inline float *lam_take_floats(lam_arena *arena, size_t n)
{
    return lam_arena_take(arena, n * sizeof(float));
}

/* Row (b, h, i) of the lse or dlse view. */
static inline float *lam_attn_stat(const lam_attn *a, lam_view view, int b, int h, int i)
{
    return (float *)view.p + (size_t)b * view.step + (size_t)i * (size_t)a->H + (size_t)h;
}

/* The Philox block of element 0 of row (b, h, i) of P. */
static inline uint64_t lam_attn_mask_row(const lam_attn *a, int b, int h, int i)
{
    const size_t row = ((size_t)b * (size_t)a->H + (size_t)h) * (size_t)a->queries + (size_t)i;
    return lam_mask_block(row, (size_t)a->keys);
}

/* x where seen.lo <= j + lane < seen.hi, else -infinity. */
LAM_INLINE lam_f16v lam_row_edge(lam_f16v x, int j, lam_span seen)
{
    static const float count[LAM_VEC] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const lam_f16v lane = lam_load(count);
    const lam_f16v lo = lam_splat((float)(seen.lo - j)), hi = lam_splat((float)(seen.hi - 1 - j));
    const lam_f16v none = lam_splat(-INFINITY);
    return lam_select_le(lo, lane, lam_select_le(lane, hi, x, none), none);
}

/* Puts -infinity into the lanes of s outside `seen` of the vectors that hold it, and returns the
 * largest score.  s[0] is column 0, which falls on a vector; `seen` is not empty. */
LAM_INLINE float lam_row_fence(float *s, lam_span seen)
{
    const int first = lam_floor(seen.lo, LAM_VEC), last = lam_floor(seen.hi - 1, LAM_VEC);
    const lam_f16v start = lam_row_edge(lam_load(s + first), first, seen);
    const lam_f16v end = lam_row_edge(lam_load(s + last), last, seen);
    lam_store(s + first, start);
    lam_store(s + last, end);
    lam_f16v top = end;
    for (int j = first; j < last; j += LAM_VEC)
        top = lam_max(lam_load(s + j), top);
    return lam_max16(top);
}

/* s = exp(s - top) in a fenced row; returns the sum. */
LAM_INLINE float lam_row_exp(float *s, lam_span seen, float top)
{
    lam_f16v sum = lam_splat(0.0f);
    for (int j = lam_floor(seen.lo, LAM_VEC); j < seen.hi; j += LAM_VEC) {
        const lam_f16v p = lam_exp16(lam_sub(lam_load(s + j), lam_splat(top)));
        sum = lam_add(sum, p);
        lam_store(s + j, p);
    }
    return lam_sum16(sum);
}

/* s = drop(s) in a row whose element 0 begins Philox block `block`; column 0 is a multiple of 64. */
LAM_INLINE void lam_row_drop(float *s, lam_span seen, const lam_mask *m, uint64_t block)
{
    for (int j = lam_floor(seen.lo, 64); j < seen.hi; j += 64) {
        const uint64_t bits = lam_mask_bits(m, block + (uint64_t)j / 8);
        for (int part = 0; part < 4; part++) {
            float *x = s + j + LAM_VEC * part;
            const int at = j + LAM_VEC * part;
            if (at + LAM_VEC > seen.lo && at < seen.hi)
                lam_store(x, lam_keep16(lam_mul(lam_load(x), lam_splat(m->scale)),
                                        bits >> LAM_VEC * part));
        }
    }
}

#endif
