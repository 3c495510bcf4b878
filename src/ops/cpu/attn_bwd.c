/* attn_bwd.c -- attention backward by blocks (specified in ref/attn.c).
 *
 * Per block and chunk: scores again, P = exp(S - lse), dP = dO V^T, dS = P (dP - delta); then five
 * products hand dS and P on to dq, dk, dvalue and dr.  No scores are kept from forward.
 *
 * dq, dk and dvalue of a stream and head belong to one task alone; dr, du, dv and drbias are sums
 * over streams and go through attn_sum.h. */
#include "ops/cpu/attn_int.h"
#include "ops/cpu/attn_sum.h"

#include <omp.h>

typedef struct bwd {
    lam_scorer in;      /* its scores become P */
    float *k, *vt, *r;  /* more packed inputs of the same head and stream */
    float *g;           /* of the block: do */
    float *d;           /* dP then dS */
    float *dqu, *dqv;   /* of the block: gradient through the keys, through r */
    float *dk, *dvalue; /* of the stream */
    float *x, *y;       /* one strip of do, one of o */
    float *delta, *lse;
    lam_mask mask;
    lam_warm warm;
} bwd;

static void carve(bwd *out, lam_arena *arena, const lam_work *size)
{
    const size_t K = (size_t)size->K, width = (size_t)lam_ceil(size->K, LAM_VEC);
    const size_t keys = (size_t)lam_ceil(size->keys, LAM_VEC);
    const size_t rows = (size_t)lam_ceil(size->r_rows, LAM_VEC);
    const size_t block = LAM_BLOCK_Q * width, scores = LAM_BLOCK_Q * lam_block_ld(size->keys);
    const size_t strip = LAM_VEC * K;
    *out = (bwd){.k = lam_take_floats(arena, keys * width),
                 .vt = lam_take_floats(arena, keys * K),
                 .r = lam_take_floats(arena, rows * width),
                 .g = lam_take_floats(arena, block),
                 .d = lam_take_floats(arena, scores),
                 .dqu = lam_take_floats(arena, block),
                 .dqv = lam_take_floats(arena, block),
                 .dk = lam_take_floats(arena, keys * width),
                 .dvalue = lam_take_floats(arena, keys * width),
                 .x = lam_take_floats(arena, strip),
                 .y = lam_take_floats(arena, strip),
                 .delta = lam_take_floats(arena, LAM_BLOCK_Q),
                 .lse = lam_take_floats(arena, LAM_BLOCK_Q)};
    lam_scorer_carve(&out->in, arena, size);
}

static size_t bytes_a_thread(const lam_work *size)
{
    lam_arena count = {0};
    bwd unused;
    carve(&unused, &count, size);
    return count.used;
}

size_t lam_attn_bwd_bytes(const lam_work *largest, int threads)
{
    return bytes_a_thread(largest) * (size_t)threads + lam_attn_sums_bytes(largest);
}

static void pack(bwd *w, const lam_attn *a, int b, int h)
{
    const size_t size = (size_t)lam_ceil(a->keys, LAM_VEC) * (size_t)lam_ceil(a->K, LAM_VEC);
    const int other_head = w->in.h != h;
    lam_scorer_pack(&w->in, a, b, h);
    if (other_head && a->r) {
        lam_pack_source pos = lam_pack_source_pos(a, h);
        pos.part = lam_attn_all_pos(a);
        lam_pack_rows(w->r, &pos);
    }
    lam_pack_source key = lam_pack_source_head(a, a->k, a->ldk, b, h);
    lam_pack_source value = lam_pack_source_head(a, a->value, a->ldk, b, h);
    key.part = value.part = lam_attn_all_keys(a);
    lam_pack_rows(w->k, &key);
    lam_pack_strips(w->vt, &value);
    memset(w->dk, 0, size * sizeof *w->dk);
    memset(w->dvalue, 0, size * sizeof *w->dvalue);
}

/* delta_i = do_i . o_i for sixteen rows at once, lanes being rows.  Summed in the order of a tile's
 * column, so that it cancels dP exactly for a query that sees one key. */
static void dot_rows(const bwd *w, const lam_pack_source *g, const lam_pack_source *o)
{
    for (int i = g->part.lo; i < g->part.hi; i += LAM_VEC) {
        lam_pack_source x = *g, y = *o;
        x.base += i * x.step;
        y.base += i * y.step;
        x.part = y.part = (lam_span){0, g->part.hi - i < LAM_VEC ? g->part.hi - i : LAM_VEC};
        lam_pack_strips(w->x, &x);
        lam_pack_strips(w->y, &y);
        lam_f16v sum = lam_splat(0.0f);
        for (int c = 0; c < g->K; c++)
            sum = lam_fma(lam_load(w->x + c * LAM_VEC), lam_load(w->y + c * LAM_VEC), sum);
        lam_store(w->delta + (i - g->part.lo), sum);
    }
}

/* Queries, do, lse and delta_i = do_i . o_i - dlse_i. */
static void pack_block(bwd *w, const lam_attn *a, int i0, int rows)
{
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    const int b = w->in.b, h = w->in.h;
    lam_pack_source g = lam_pack_source_head(a, a->d_o, a->ldo, b, h);
    lam_pack_source o = lam_pack_source_head(a, a->o, a->ldo, b, h);
    g.part = o.part = (lam_span){i0, i0 + rows};
    lam_scorer_queries(&w->in, a, i0, rows);
    lam_pack_queries(w->g, &g, NULL, 1.0f);
    memset(w->dqu, 0, LAM_BLOCK_Q * width * sizeof *w->dqu);
    memset(w->dqv, 0, LAM_BLOCK_Q * width * sizeof *w->dqv);

    dot_rows(w, &g, &o);
    for (int i = 0; i < rows; i++) {
        if (a->dlse.p)
            w->delta[i] -= *lam_attn_stat(a, a->dlse, b, h, i0 + i);
        w->lse[i] = *lam_attn_stat(a, a->lse, b, h, i0 + i);
    }
}

/* exp(S - lse) magnifies what S differs by from forward's.  Where forward went row by row it summed
 * in another order, so its lse is not ours: take our own. */
static void own_lse(bwd *w, const lam_attn *a, int rows)
{
    const lam_packed x = lam_scorer_packed(&w->in);
    float top[LAM_ROW_QUERIES], sum[LAM_ROW_QUERIES] = {0.0f};
    for (int j0 = 0; j0 < a->keys; j0 += LAM_BLOCK_K) {
        lam_block blk;
        lam_block_set(&blk, a, w->in.b, 0, j0);
        lam_block_scores(&blk, 0, w->in.s, a, &x);
        for (int i = 0; i < rows; i++) {
            const lam_span seen = lam_block_sees(&blk, a, i);
            const lam_span here = {seen.lo - j0, seen.hi - j0};
            float *s = lam_block_at(&blk, w->in.s, i, j0);
            if (seen.lo == seen.hi)
                continue;
            const float chunk = lam_row_fence(s, here);
            const float next = sum[i] > 0.0f && top[i] > chunk ? top[i] : chunk;
            sum[i] =
                (sum[i] > 0.0f ? sum[i] * expf(top[i] - next) : 0.0f) + lam_row_exp(s, here, next);
            top[i] = next;
        }
    }
    for (int i = 0; i < rows; i++)
        if (sum[i] > 0.0f)
            w->lse[i] = top[i] + logf(sum[i]);
}

/* fwd was P = exp(S - lse), o = sum drop(P) value: s becomes drop(P), d becomes
 * dS = P (drop'(dP) - delta). */
static void softmax_row(const bwd *w, const lam_block *blk, const lam_attn *a, int i)
{
    const lam_span seen = lam_block_sees(blk, a, i);
    lam_block_clear(blk, w->in.s, i, seen);
    lam_block_clear(blk, w->d, i, seen);
    if (seen.lo == seen.hi)
        return;
    float *s = lam_block_at(blk, w->in.s, i, blk->j0), *d = lam_block_at(blk, w->d, i, blk->j0);
    const lam_span here = {seen.lo - blk->j0, seen.hi - blk->j0};
    const lam_f16v lse = lam_splat(w->lse[i]), delta = lam_splat(w->delta[i]);
    const int first = lam_floor(here.lo, LAM_VEC);
    const uint64_t block =
        lam_attn_mask_row(a, w->in.b, w->in.h, blk->i0 + i) + (uint64_t)blk->j0 / 8;
    if (w->mask.on)
        lam_row_drop(d, here, &w->mask, block);
    lam_row_fence(s, here);
    for (int j = first; j < here.hi; j += LAM_VEC) {
        const lam_f16v p = lam_exp16(lam_sub(lam_load(s + j), lse));
        lam_store(s + j, p);
        lam_store(d + j, lam_mul(p, lam_sub(lam_load(d + j), delta)));
    }
    if (w->mask.on)
        lam_row_drop(s, here, &w->mask, block);
}

static void chunk_bwd(bwd *w, lam_attn_sum *sum, const lam_attn *a, const lam_block *blk)
{
    const lam_packed x = lam_scorer_packed(&w->in);
    const size_t group = (size_t)(LAM_TILE * LAM_VEC * blk->vecs);
    for (int g = 0; g < blk->groups; g++) {
        lam_block_scores(blk, g, w->in.s, a, &x);
        lam_block_score_key(blk, g, w->d, w->g, w->vt, LAM_TILE_SET);
        for (int i = g * LAM_TILE; i < (g + 1) * LAM_TILE; i++)
            softmax_row(w, blk, a, i);
        lam_block_read_key(blk, g, w->dqu + (size_t)g * group, w->d, w->k);
        if (a->r)
            lam_block_read_pos(blk, g, w->dqv + (size_t)g * group, w->d, w->r);
    }
    lam_block_send_key(blk, w->dvalue, w->in.s, w->g);
    lam_block_send_key(blk, w->dk, w->d, w->in.qu);
    if (a->r)
        lam_block_send_pos(blk, sum->dr, w->d, w->in.qv);
    if (a->rbias)
        lam_block_sum_pos(blk, sum->drbias, w->d);
}

/* fwd used q twice, as q + u and as q + v; dq is the sum of both gradients, du and dv sum each of
 * them over the queries. */
static void store_queries(const bwd *w, lam_attn_sum *sum, const lam_attn *a, int i0, int rows)
{
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    float *dq = lam_attn_head(a, a->dq, w->in.b, w->in.h) + (size_t)i0 * a->ldq;
    for (int c = 0; c < a->K; c += LAM_VEC) {
        const size_t n = a->K - c < LAM_VEC ? (size_t)(a->K - c) : LAM_VEC;
        lam_f16v du = lam_splat(0.0f), dv = du;
        for (int i = 0; i < rows; i++) {
            const lam_f16v x = lam_load(w->dqu + (size_t)i * width + c);
            const lam_f16v y = lam_load(w->dqv + (size_t)i * width + c);
            lam_store_n(dq + (size_t)i * a->ldq + c,
                        lam_mul(lam_add(x, y), lam_splat((float)a->scale)), n);
            du = lam_add(du, x);
            dv = lam_add(dv, y);
        }
        lam_store(sum->du + c, lam_add(lam_load(sum->du + c), du));
        lam_store(sum->dv + c, lam_add(lam_load(sum->dv + c), dv));
    }
}

static void store_keys(const lam_attn *a, float *out, const float *in)
{
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    for (size_t j = 0; j < (size_t)a->keys; j++)
        for (int c = 0; c < a->K; c += LAM_VEC) {
            const size_t n = a->K - c < LAM_VEC ? (size_t)(a->K - c) : LAM_VEC;
            lam_f16v x = lam_load(in + j * width + (size_t)c);
            if (a->kv_add)
                x = lam_add(x, lam_load_n(out + j * a->ldk + c, n));
            lam_store_n(out + j * a->ldk + c, x, n);
        }
}

/* Where this stream's gradients will be stored, then what will be packed next. */
static void warm(bwd *w, const lam_attn *a, int next_b, int next_h)
{
    const lam_span keys = lam_attn_all_keys(a), queries = {0, a->queries};
    w->warm = (lam_warm){.each = LAM_WARM_HEADS};
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->dk, a->ldk, w->in.b, w->in.h), keys);
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->dvalue, a->ldk, w->in.b, w->in.h), keys);
    if (next_h >= a->H)
        return;
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->k, a->ldk, next_b, next_h), keys);
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->value, a->ldk, next_b, next_h), keys);
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->q, a->ldq, next_b, next_h), queries);
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->o, a->ldo, next_b, next_h), queries);
    lam_warm_add(&w->warm, lam_pack_source_head(a, a->d_o, a->ldo, next_b, next_h), queries);
}

/* The stream and head that pack() packed. */
static void stream_bwd(bwd *w, lam_attn_sum *sum, const lam_attn *a)
{
    for (int i0 = 0; i0 < a->queries; i0 += LAM_BLOCK_Q) {
        const int rows = a->queries - i0 < LAM_BLOCK_Q ? a->queries - i0 : LAM_BLOCK_Q;
        pack_block(w, a, i0, rows);
        if (a->queries <= LAM_ROW_QUERIES)
            own_lse(w, a, rows);
        for (int j0 = 0; j0 < a->keys; j0 += LAM_BLOCK_K) {
            lam_block blk;
            lam_block_set(&blk, a, w->in.b, i0, j0);
            blk.warm = &w->warm;
            if (blk.all.lo < blk.all.hi)
                chunk_bwd(w, sum, a, &blk);
        }
        store_queries(w, sum, a, i0, rows);
    }
    store_keys(a, lam_attn_head(a, a->dk, w->in.b, w->in.h), w->dk);
    store_keys(a, lam_attn_head(a, a->dvalue, w->in.b, w->in.h), w->dvalue);
}

/* A task: one range of the streams of one head.  `next` is the task that this thread will most likely
 * come to afterwards. */
static void task_bwd(bwd *w, const lam_attn_sums *sums, const lam_attn *a, int task, int next)
{
    const lam_span streams = lam_attn_streams(sums, task);
    lam_attn_sum sum = lam_attn_sum_at(sums, task);
    lam_attn_sum_clear(sums, task);
    for (int b = streams.lo; b < streams.hi; b++) {
        pack(w, a, b, task / sums->ranges);
        if (b + 1 < streams.hi)
            warm(w, a, b + 1, w->in.h);
        else
            warm(w, a, lam_attn_streams(sums, next).lo, next / sums->ranges);
        stream_bwd(w, &sum, a);
    }
}

void lam_attn_block_bwd(lam_cpu_dev *dev, const lam_attn *a)
{
    const lam_work size = lam_attn_work(a);
    const size_t bytes = bytes_a_thread(&size), sum_bytes = lam_attn_sums_bytes(&size);
    lam_attn_sums sums = lam_attn_sums_make(&size);
    const int threads = lam_attn_threads(dev, a, a->r ? 8 : 5, sums.tasks);
    char *const scratch = lam_cpu_scratch(dev, bytes * (size_t)threads + sum_bytes);
    sums.base = scratch + bytes * (size_t)threads;

#pragma omp parallel num_threads(threads)
    {
        lam_arena arena = {scratch + bytes * (size_t)omp_get_thread_num(), bytes, 0};
        bwd w;
        carve(&w, &arena, &size);
        w.mask = lam_mask_make(&a->drop);
#pragma omp for schedule(dynamic, 1)
        for (int task = 0; task < sums.tasks; task++)
            task_bwd(&w, &sums, a, task, task + threads);
#pragma omp for schedule(static)
        for (int h = 0; h < a->H; h++)
            lam_attn_sums_reduce(&sums, a, h);
    }
}
