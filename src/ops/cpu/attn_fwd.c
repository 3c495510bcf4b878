/* attn_fwd.c -- attention forward by blocks (Eq. 2, 6, 9, 12; specified in ref/attn.c).
 *
 * A block of queries meets its keys in chunks.  Per chunk: scores by two products, softmax row by
 * row, a third product with the values; between chunks the softmax is resumed (C is rescaled when a
 * larger score appears), which with up to 512 keys never happens.  The scale is folded into the
 * queries.  Tasks are blocks, ordered so that a thread packs the keys of a head once. */
#include "ops/cpu/attn_int.h"

#include <omp.h>

typedef struct fwd {
    lam_scorer in;
    float *v; /* packed values of the same head */
    float *o;
    float *top, *sum; /* the running softmax of each row */
    lam_mask mask;
    lam_warm warm;
} fwd;

static void carve(fwd *out, lam_arena *arena, const lam_work *size)
{
    const size_t keys = (size_t)lam_ceil(size->keys, LAM_VEC);
    const size_t width = (size_t)lam_ceil(size->K, LAM_VEC);
    *out = (fwd){.v = lam_take_floats(arena, keys * width),
                 .o = lam_take_floats(arena, LAM_BLOCK_Q * width),
                 .top = lam_take_floats(arena, LAM_BLOCK_Q),
                 .sum = lam_take_floats(arena, LAM_BLOCK_Q)};
    lam_scorer_carve(&out->in, arena, size);
}

static size_t bytes_a_thread(const lam_work *size)
{
    lam_arena count = {0};
    fwd unused;
    carve(&unused, &count, size);
    return count.used;
}

size_t lam_attn_fwd_bytes(const lam_work *largest, int threads)
{
    return bytes_a_thread(largest) * (size_t)threads;
}

static void pack(fwd *w, const lam_attn *a, int b, int h)
{
    if (!lam_scorer_pack(&w->in, a, b, h))
        return;
    lam_pack_source value = lam_pack_source_head(a, a->value, a->ldk, b, h);
    value.part = lam_attn_all_keys(a);
    lam_pack_rows(w->v, &value);
}

/* What will be packed next, and where it will be stored. */
static void warm(fwd *w, const lam_attn *a, int b, int h)
{
    const lam_span keys = lam_attn_all_keys(a), queries = {0, a->queries};
    w->warm = (lam_warm){.each = LAM_WARM_HEADS};
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->k, a->ldk, b, h), keys);
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->value, a->ldk, b, h), keys);
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->q, a->ldq, b, h), queries);
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->o, a->ldo, b, h), queries);
}

/* Brings what earlier chunks left of row i to the new top. */
static void rescale_row(fwd *w, int i, float top, size_t width)
{
    const float keep = expf(w->top[i] - top);
    for (size_t c = 0; c < width; c++)
        w->o[(size_t)i * width + c] *= keep;
    w->sum[i] *= keep;
}

/* The rows of group g: s becomes exp(s - top).  In two sweeps over the rows, so that the horizontal
 * maximum of one row is not waited for. */
static void softmax(fwd *w, const lam_block *blk, const lam_attn *a, int g)
{
    const int first = g * LAM_TILE;
    lam_span here[LAM_TILE];
    for (int i = first; i < first + LAM_TILE; i++) {
        const lam_span seen = lam_block_sees(blk, a, i);
        lam_block_clear(blk, w->in.s, i, seen);
        here[i - first] = (lam_span){seen.lo - blk->j0, seen.hi - blk->j0};
        if (seen.lo == seen.hi)
            continue;
        const float here_top =
            lam_row_fence(lam_block_at(blk, w->in.s, i, blk->j0), here[i - first]);
        const float top = here_top > w->top[i] ? here_top : w->top[i];
        if (w->sum[i] > 0.0f)
            rescale_row(w, i, top, (size_t)blk->vecs * LAM_VEC);
        w->top[i] = top;
    }
    for (int i = first; i < first + LAM_TILE; i++) {
        float *s = lam_block_at(blk, w->in.s, i, blk->j0);
        const lam_span x = here[i - first];
        if (x.lo == x.hi)
            continue;
        w->sum[i] += lam_row_exp(s, x, w->top[i]);
        if (w->mask.on)
            lam_row_drop(s, x, &w->mask,
                         lam_attn_mask_row(a, w->in.b, w->in.h, blk->i0 + i) +
                             (uint64_t)blk->j0 / 8);
    }
}

static void store_row(const fwd *w, const lam_attn *a, int i0, int i)
{
    float *o = lam_attn_head(a, a->o, w->in.b, w->in.h) + (size_t)(i0 + i) * a->ldo;
    const float *c = w->o + (size_t)i * (size_t)lam_ceil(a->K, LAM_VEC);
    const float scale = w->sum[i] > 0.0f ? 1.0f / w->sum[i] : 0.0f;
    for (int n = 0; n < a->K; n++)
        o[n] = c[n] * scale;
    *lam_attn_stat(a, a->lse, w->in.b, w->in.h, i0 + i) = w->top[i] + logf(w->sum[i]);
}

static void block_fwd(fwd *w, const lam_attn *a, int i0)
{
    const int rows = a->queries - i0 < LAM_BLOCK_Q ? a->queries - i0 : LAM_BLOCK_Q;
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    lam_scorer_queries(&w->in, a, i0, rows);
    memset(w->o, 0, LAM_BLOCK_Q * width * sizeof *w->o);
    for (int i = 0; i < rows; i++) {
        w->top[i] = -INFINITY;
        w->sum[i] = 0.0f;
    }
    const lam_packed x = lam_scorer_packed(&w->in);
    for (int j0 = 0; j0 < a->keys; j0 += LAM_BLOCK_K) {
        lam_block blk;
        lam_block_set(&blk, a, w->in.b, i0, j0);
        if (blk.all.lo == blk.all.hi)
            continue;
        blk.warm = &w->warm;
        for (int g = 0; g < blk.groups; g++) {
            lam_block_scores(&blk, g, w->in.s, a, &x);
            softmax(w, &blk, a, g);
            lam_block_read_key(&blk, g, w->o + (size_t)(g * LAM_TILE) * width, w->in.s, w->v);
        }
    }
    for (int i = 0; i < rows; i++)
        store_row(w, a, i0, i);
}

void lam_attn_block_fwd(lam_cpu_dev *dev, const lam_attn *a)
{
    const lam_work size = lam_attn_work(a);
    const size_t bytes = bytes_a_thread(&size);
    const int blocks = lam_ceil(a->queries, LAM_BLOCK_Q) / LAM_BLOCK_Q, pairs = a->B * a->H;
    const int threads = lam_attn_threads(dev, a, a->r ? 3 : 2, pairs * blocks);
    /* Whole heads while there are enough of them: then no two threads pack the same keys. */
    const int chunk = pairs >= 2 * threads ? blocks : 1;
    char *const scratch = lam_cpu_scratch(dev, bytes * (size_t)threads);

#pragma omp parallel num_threads(threads)
    {
        lam_arena arena = {scratch + bytes * (size_t)omp_get_thread_num(), bytes, 0};
        fwd w;
        carve(&w, &arena, &size);
        w.mask = lam_mask_make(&a->drop);
#pragma omp for schedule(dynamic, chunk)
        for (int task = 0; task < pairs * blocks; task++) {
            const int pair = task / blocks, next = pair + threads; /* most likely */
            pack(&w, a, pair % a->B, pair / a->B);
            if (task % blocks == 0 && next < pairs)
                warm(&w, a, next % a->B, next / a->B);
            block_fwd(&w, a, task % blocks * LAM_BLOCK_Q);
        }
    }
}
