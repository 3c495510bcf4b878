/* attn_fwd.c -- attention forward by blocks (Eq. 2, 6, 9, 12; specified in ref/attn.c).
 *
 * A block of queries meets its keys in chunks.  Per chunk: scores by two products, softmax row by
 * row, a third product with the values; between chunks the softmax is resumed (C is rescaled when a
 * larger score appears), which with up to 512 keys never happens.  The scale is folded into the
 * queries.  Tasks are blocks, ordered so that a thread packs the keys of a head once. */
#include "ops/cpu/attn_int.h"

#include <omp.h>

typedef struct fwd {
    float *kt, *v, *rt, *rbias; /* packed keys, values, positions of head h and stream b */
    float *qu, *qv;             /* scale * (q + u), scale * (q + v) of the block */
    float *s, *o;
    float *top, *sum; /* the running softmax of each row */
    int b, h;         /* what is packed; -1: nothing */
} fwd;

static void carve(fwd *out, lam_arena *arena, const lam_work *size)
{
    const size_t K = (size_t)size->K, width = (size_t)lam_ceil(size->K, LAM_VEC);
    const size_t keys = (size_t)lam_ceil(size->keys, LAM_VEC);
    const size_t rows = (size_t)lam_ceil(size->r_rows, LAM_VEC);
    *out = (fwd){.kt = lam_take_floats(arena, keys * K),
                 .v = lam_take_floats(arena, keys * width),
                 .rt = lam_take_floats(arena, rows * K),
                 .rbias = lam_take_floats(arena, rows),
                 .qu = lam_take_floats(arena, LAM_BLOCK_Q * width),
                 .qv = lam_take_floats(arena, LAM_BLOCK_Q * width),
                 .s = lam_take_floats(arena, LAM_BLOCK_Q * lam_block_ld(size->keys)),
                 .o = lam_take_floats(arena, LAM_BLOCK_Q * width),
                 .top = lam_take_floats(arena, LAM_BLOCK_Q),
                 .sum = lam_take_floats(arena, LAM_BLOCK_Q),
                 .b = -1,
                 .h = -1};
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
    if (w->h != h && a->r) {
        lam_source pos = lam_source_pos(a, h);
        pos.part = lam_attn_all_pos(a);
        lam_pack_strips(w->rt, &pos);
    }
    if (w->h != h && a->rbias)
        lam_pack_rbias(w->rbias, a, h);
    if (w->h != h || w->b != b) {
        lam_source key = lam_source_head(a, a->k, a->ldk, b, h);
        lam_source value = lam_source_head(a, a->value, a->ldk, b, h);
        key.part = value.part = lam_attn_all_keys(a);
        lam_pack_strips(w->kt, &key);
        lam_pack_rows(w->v, &value);
    }
    w->b = b;
    w->h = h;
}

static void pack_queries(fwd *w, const lam_attn *a, int i0, int rows)
{
    const size_t head = (size_t)w->h * (size_t)a->K;
    lam_source q = lam_source_head(a, a->q, a->ldq, w->b, w->h);
    q.part = (lam_span){i0, i0 + rows};
    lam_pack_queries(w->qu, &q, a->u ? (const float *)a->u + head : NULL, (float)a->scale);
    if (a->r)
        lam_pack_queries(w->qv, &q, a->v ? (const float *)a->v + head : NULL, (float)a->scale);
}

/* One row of the chunk: s becomes exp(s - top), and what earlier chunks left is brought to the new
 * top. */
static void softmax_row(fwd *w, const lam_block *blk, const lam_attn *a, int i, const lam_mask *m)
{
    const lam_span seen = lam_block_sees(blk, a, i);
    lam_block_clear(blk, w->s, i, seen);
    if (seen.lo == seen.hi)
        return;
    float *s = lam_block_at(blk, w->s, i, blk->j0);
    const lam_span here = {seen.lo - blk->j0, seen.hi - blk->j0};
    lam_row_fence(s, here);
    const float old = w->top[i], chunk = lam_row_max(s, here), top = chunk > old ? chunk : old;
    const float sum = lam_row_exp(s, here, top);
    if (w->sum[i] > 0.0f) {
        const float keep = expf(old - top);
        const size_t width = (size_t)blk->vecs * LAM_VEC;
        for (size_t c = 0; c < width; c++)
            w->o[(size_t)i * width + c] *= keep;
        w->sum[i] *= keep;
    }
    w->top[i] = top;
    w->sum[i] += sum;
    if (m->on) {
        const uint64_t first = lam_attn_mask_row(a, w->b, w->h, blk->i0 + i);
        lam_row_drop(s, here, m, first + (uint64_t)blk->j0 / 8);
    }
}

static void store_row(const fwd *w, const lam_attn *a, int i0, int i)
{
    float *o = lam_attn_head(a, a->o, w->b, w->h) + (size_t)(i0 + i) * a->ldo;
    const float *c = w->o + (size_t)i * (size_t)lam_ceil(a->K, LAM_VEC);
    const float scale = w->sum[i] > 0.0f ? 1.0f / w->sum[i] : 0.0f;
    for (int n = 0; n < a->K; n++)
        o[n] = c[n] * scale;
    *lam_attn_stat(a, a->lse, w->b, w->h, i0 + i) = w->top[i] + logf(w->sum[i]);
}

static void block_fwd(fwd *w, const lam_attn *a, int i0, const lam_mask *m)
{
    const int rows = a->queries - i0 < LAM_BLOCK_Q ? a->queries - i0 : LAM_BLOCK_Q;
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    pack_queries(w, a, i0, rows);
    memset(w->o, 0, LAM_BLOCK_Q * width * sizeof *w->o);
    for (int i = 0; i < rows; i++) {
        w->top[i] = -INFINITY;
        w->sum[i] = 0.0f;
    }
    const lam_packed x = {w->qu, w->qv, w->kt, w->rt, w->rbias};
    for (int j0 = 0; j0 < a->keys; j0 += LAM_BLOCK_K) {
        lam_block blk;
        lam_block_set(&blk, a, i0, j0);
        if (blk.all.lo == blk.all.hi)
            continue;
        lam_block_scores(&blk, w->s, a, &x);
        for (int i = 0; i < blk.groups * LAM_TILE; i++)
            softmax_row(w, &blk, a, i, m);
        lam_block_read_key(&blk, w->o, w->s, w->v);
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
    const lam_mask m = lam_mask_make(&a->drop);

#pragma omp parallel num_threads(threads)
    {
        lam_arena arena = {scratch + bytes * (size_t)omp_get_thread_num(), bytes, 0};
        fwd w;
        carve(&w, &arena, &size);
#pragma omp for schedule(dynamic, chunk)
        for (int task = 0; task < pairs * blocks; task++) {
            const int pair = task / blocks;
            pack(&w, a, pair % a->B, pair / a->B);
            block_fwd(&w, a, task % blocks * LAM_BLOCK_Q, &m);
        }
    }
}
