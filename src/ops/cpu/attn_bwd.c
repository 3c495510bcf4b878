/* attn_bwd.c -- attention backward by blocks (specified in ref/attn.c).
 *
 * Per block and chunk: scores again, P = exp(S - lse), dP = dO V^T, dS = P (dP - delta); then five
 * products hand dS and P on to dq, dk, dvalue and dr.  No scores are kept from forward.
 *
 * Who owns what.  dq, dk and dvalue of a stream and head belong to one task alone.  dr, du, dv and
 * drbias are sums over streams: a task is a head with a fixed range of streams, adds them up in
 * order into its own partial sum, and the partial sums are added in order at the end.  The ranges
 * depend on B and H, not on the threads, so the results do not either. */
#include "ops/cpu/attn_int.h"

#include <omp.h>

enum { TASKS = 32 }; /* aimed at; more of them balance better and hold more partial sums */

typedef struct bwd {
    float *kt, *k, *vt, *rt, *r, *rbias; /* packed inputs of head h and stream b */
    float *qu, *qv, *g;                  /* of the block: scale (q + u), scale (q + v), do */
    float *s, *d;                        /* scores then P; dP then dS */
    float *dqu, *dqv;                    /* of the block: gradient through the keys, through r */
    float *dk, *dvalue;                  /* of the stream */
    float *delta, *lse;
    int b, h;
} bwd;

/* The partial sums of one task. */
typedef struct part {
    float *dr, *drbias, *du, *dv;
} part;

static void carve(bwd *out, lam_arena *arena, const lam_work *size)
{
    const size_t K = (size_t)size->K, width = (size_t)lam_ceil(size->K, LAM_VEC);
    const size_t keys = (size_t)lam_ceil(size->keys, LAM_VEC);
    const size_t rows = (size_t)lam_ceil(size->r_rows, LAM_VEC);
    const size_t block = LAM_BLOCK_Q * width, scores = LAM_BLOCK_Q * lam_block_ld(size->keys);
    *out = (bwd){.kt = lam_take_floats(arena, keys * K),
                 .k = lam_take_floats(arena, keys * width),
                 .vt = lam_take_floats(arena, keys * K),
                 .rt = lam_take_floats(arena, rows * K),
                 .r = lam_take_floats(arena, rows * width),
                 .rbias = lam_take_floats(arena, rows),
                 .qu = lam_take_floats(arena, block),
                 .qv = lam_take_floats(arena, block),
                 .g = lam_take_floats(arena, block),
                 .s = lam_take_floats(arena, scores),
                 .d = lam_take_floats(arena, scores),
                 .dqu = lam_take_floats(arena, block),
                 .dqv = lam_take_floats(arena, block),
                 .dk = lam_take_floats(arena, keys * width),
                 .dvalue = lam_take_floats(arena, keys * width),
                 .delta = lam_take_floats(arena, LAM_BLOCK_Q),
                 .lse = lam_take_floats(arena, LAM_BLOCK_Q)};
}

static void carve_part(part *out, lam_arena *arena, const lam_work *size)
{
    const size_t width = (size_t)lam_ceil(size->K, LAM_VEC);
    const size_t rows = (size_t)lam_ceil(size->r_rows, LAM_VEC);
    *out = (part){.dr = lam_take_floats(arena, rows * width),
                  .drbias = lam_take_floats(arena, rows),
                  .du = lam_take_floats(arena, width),
                  .dv = lam_take_floats(arena, width)};
}

static size_t bytes_a_thread(const lam_work *size)
{
    lam_arena count = {0};
    bwd unused;
    carve(&unused, &count, size);
    return count.used;
}

static size_t bytes_a_part(const lam_work *size)
{
    lam_arena count = {0};
    part unused;
    carve_part(&unused, &count, size);
    return count.used;
}

/* How many ranges the streams of a head are cut into. */
static int ranges_of(int B, int H)
{
    const int wanted = (TASKS + H - 1) / H;
    return B < wanted ? B : wanted;
}

/* H * ranges_of(B, H) <= H + TASKS - 1, and grows with B but not always with H. */
size_t lam_attn_bwd_bytes(const lam_work *largest, int threads)
{
    const size_t pairs = (size_t)largest->B * (size_t)largest->H, most = (size_t)largest->H + TASKS;
    return bytes_a_thread(largest) * (size_t)threads +
           bytes_a_part(largest) * (pairs < most ? pairs : most);
}

static void pack_head(bwd *w, const lam_attn *a, int h)
{
    w->h = h;
    if (a->r) {
        lam_source pos = lam_source_pos(a, h);
        pos.part = lam_attn_all_pos(a);
        lam_pack_strips(w->rt, &pos);
        lam_pack_rows(w->r, &pos);
    }
    if (a->rbias)
        lam_pack_rbias(w->rbias, a, h);
}

static void pack_stream(bwd *w, const lam_attn *a, int b)
{
    const size_t size = (size_t)lam_ceil(a->keys, LAM_VEC) * (size_t)lam_ceil(a->K, LAM_VEC);
    lam_source key = lam_source_head(a, a->k, a->ldk, b, w->h);
    lam_source value = lam_source_head(a, a->value, a->ldk, b, w->h);
    key.part = value.part = lam_attn_all_keys(a);
    lam_pack_strips(w->kt, &key);
    lam_pack_rows(w->k, &key);
    lam_pack_strips(w->vt, &value);
    memset(w->dk, 0, size * sizeof *w->dk);
    memset(w->dvalue, 0, size * sizeof *w->dvalue);
    w->b = b;
}

/* One lane of lam_fma. */
static float fma_like(float x, float y, float z)
{
#if defined(__AVX512F__) || defined(__FMA__)
    return fmaf(x, y, z);
#else
    return x * y + z;
#endif
}

/* out[i] = g[i] . o[i] for up to eight rows.  Summed in the order of a tile's column, so that it
 * cancels dP exactly for a query that sees one key; eight rows at once hide the latency of that. */
static void dot_rows(float *out, const float *g, const float *o, const lam_attn *a, int rows)
{
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    const float *at[LAM_TILE];
    float sum[LAM_TILE] = {0.0f};
    for (int i = 0; i < LAM_TILE; i++)
        at[i] = o + (size_t)(i < rows ? i : 0) * a->ldo;
    for (int c = 0; c < a->K; c++) {
        LAM_UNROLL
        for (int i = 0; i < LAM_TILE; i++)
            sum[i] = fma_like(g[(size_t)i * width + (size_t)c], at[i][c], sum[i]);
    }
    for (int i = 0; i < rows; i++)
        out[i] = sum[i];
}

/* Queries, do, lse and delta_i = do_i . o_i - dlse_i. */
static void pack_block(bwd *w, const lam_attn *a, int i0, int rows)
{
    const size_t head = (size_t)w->h * (size_t)a->K, width = (size_t)lam_ceil(a->K, LAM_VEC);
    lam_source q = lam_source_head(a, a->q, a->ldq, w->b, w->h);
    lam_source g = lam_source_head(a, a->d_o, a->ldo, w->b, w->h);
    q.part = g.part = (lam_span){i0, i0 + rows};
    lam_pack_queries(w->qu, &q, a->u ? (const float *)a->u + head : NULL, (float)a->scale);
    if (a->r)
        lam_pack_queries(w->qv, &q, a->v ? (const float *)a->v + head : NULL, (float)a->scale);
    lam_pack_queries(w->g, &g, NULL, 1.0f);
    memset(w->dqu, 0, LAM_BLOCK_Q * width * sizeof *w->dqu);
    memset(w->dqv, 0, LAM_BLOCK_Q * width * sizeof *w->dqv);

    for (int i = 0; i < rows; i += LAM_TILE)
        dot_rows(w->delta + i, w->g + (size_t)i * width,
                 lam_attn_head(a, a->o, w->b, w->h) + (size_t)(i0 + i) * a->ldo, a,
                 rows - i < LAM_TILE ? rows - i : LAM_TILE);
    for (int i = 0; i < rows; i++) {
        if (a->dlse.p)
            w->delta[i] -= *lam_attn_stat(a, a->dlse, w->b, w->h, i0 + i);
        w->lse[i] = *lam_attn_stat(a, a->lse, w->b, w->h, i0 + i);
    }
}

/* exp(S - lse) magnifies what S differs by from forward's.  Where forward went row by row it summed
 * in another order, so its lse is not ours: take our own. */
static void own_lse(bwd *w, const lam_attn *a, int rows)
{
    const lam_packed x = {w->qu, w->qv, w->kt, w->rt, w->rbias};
    float top[LAM_ROW_QUERIES], sum[LAM_ROW_QUERIES] = {0.0f};
    for (int j0 = 0; j0 < a->keys; j0 += LAM_BLOCK_K) {
        lam_block blk;
        lam_block_set(&blk, a, 0, j0);
        if (blk.all.lo < blk.all.hi)
            lam_block_scores(&blk, w->s, a, &x);
        for (int i = 0; i < rows; i++) {
            const lam_span seen = lam_block_sees(&blk, a, i);
            const lam_span here = {seen.lo - j0, seen.hi - j0};
            float *s = lam_block_at(&blk, w->s, i, j0);
            if (seen.lo == seen.hi)
                continue;
            lam_row_fence(s, here);
            const float chunk = lam_row_max(s, here);
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
static void softmax_row(const bwd *w, const lam_block *blk, const lam_attn *a, int i,
                        const lam_mask *m)
{
    const lam_span seen = lam_block_sees(blk, a, i);
    lam_block_clear(blk, w->s, i, seen);
    lam_block_clear(blk, w->d, i, seen);
    if (seen.lo == seen.hi)
        return;
    float *s = lam_block_at(blk, w->s, i, blk->j0), *d = lam_block_at(blk, w->d, i, blk->j0);
    const lam_span here = {seen.lo - blk->j0, seen.hi - blk->j0};
    const lam_f16v lse = lam_splat(w->lse[i]), delta = lam_splat(w->delta[i]);
    const int first = lam_floor(here.lo, LAM_VEC);
    if (m->on) {
        const uint64_t block = lam_attn_mask_row(a, w->b, w->h, blk->i0 + i);
        lam_row_drop(d, here, m, block + (uint64_t)blk->j0 / 8);
    }
    lam_row_fence(s, here);
    for (int j = first; j < here.hi; j += LAM_VEC) {
        const lam_f16v p = lam_exp16(lam_load(s + j) - lse);
        lam_store(s + j, p);
        lam_store(d + j, p * (lam_load(d + j) - delta));
    }
    /* P is 0 outside, but 0 times what an unseen value made of dP need not be. */
    for (int j = first; j < here.lo; j++)
        d[j] = 0.0f;
    for (int j = here.hi; j < lam_ceil(here.hi, LAM_VEC); j++)
        d[j] = 0.0f;
    if (m->on) {
        const uint64_t block = lam_attn_mask_row(a, w->b, w->h, blk->i0 + i);
        lam_row_drop(s, here, m, block + (uint64_t)blk->j0 / 8);
    }
}

static void chunk_bwd(bwd *w, part *sum, const lam_attn *a, const lam_block *blk, const lam_mask *m)
{
    const lam_packed x = {w->qu, w->qv, w->kt, w->rt, w->rbias};
    lam_block_scores(blk, w->s, a, &x);
    lam_block_score_key(blk, w->d, w->g, w->vt, LAM_TILE_SET);
    for (int i = 0; i < blk->groups * LAM_TILE; i++)
        softmax_row(w, blk, a, i, m);

    lam_block_send_key(blk, w->dvalue, w->s, w->g);
    lam_block_send_key(blk, w->dk, w->d, w->qu);
    lam_block_read_key(blk, w->dqu, w->d, w->k);
    if (a->r) {
        lam_block_send_pos(blk, sum->dr, w->d, w->qv);
        lam_block_read_pos(blk, w->dqv, w->d, w->r);
    }
    if (a->rbias)
        lam_block_sum_pos(blk, sum->drbias, w->d);
}

/* fwd used q twice, as q + u and as q + v; dq is the sum of both gradients, du and dv sum each of
 * them over the queries. */
static void store_queries(const bwd *w, part *sum, const lam_attn *a, int i0, int rows)
{
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    float *dq = lam_attn_head(a, a->dq, w->b, w->h) + (size_t)i0 * a->ldq;
    for (int c = 0; c < a->K; c += LAM_VEC) {
        const size_t n = a->K - c < LAM_VEC ? (size_t)(a->K - c) : LAM_VEC;
        lam_f16v du = lam_splat(0.0f), dv = du;
        for (int i = 0; i < rows; i++) {
            const lam_f16v x = lam_load(w->dqu + (size_t)i * width + c);
            const lam_f16v y = lam_load(w->dqv + (size_t)i * width + c);
            lam_store_n(dq + (size_t)i * a->ldq + c, (x + y) * lam_splat((float)a->scale), n);
            du += x;
            dv += y;
        }
        lam_store(sum->du + c, lam_load(sum->du + c) + du);
        lam_store(sum->dv + c, lam_load(sum->dv + c) + dv);
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
                x += lam_load_n(out + j * a->ldk + c, n);
            lam_store_n(out + j * a->ldk + c, x, n);
        }
}

static void stream_bwd(bwd *w, part *sum, const lam_attn *a, int b, const lam_mask *m)
{
    pack_stream(w, a, b);
    for (int i0 = 0; i0 < a->queries; i0 += LAM_BLOCK_Q) {
        const int rows = a->queries - i0 < LAM_BLOCK_Q ? a->queries - i0 : LAM_BLOCK_Q;
        pack_block(w, a, i0, rows);
        if (a->queries <= LAM_ROW_QUERIES)
            own_lse(w, a, rows);
        for (int j0 = 0; j0 < a->keys; j0 += LAM_BLOCK_K) {
            lam_block blk;
            lam_block_set(&blk, a, i0, j0);
            if (blk.all.lo < blk.all.hi)
                chunk_bwd(w, sum, a, &blk, m);
        }
        store_queries(w, sum, a, i0, rows);
    }
    store_keys(a, lam_attn_head(a, a->dk, b, w->h), w->dk);
    store_keys(a, lam_attn_head(a, a->dvalue, b, w->h), w->dvalue);
}

/* The partial sums of head h, in order: dr overwritten, the others added to. */
static void reduce_head(const lam_attn *a, const part *parts, int n, int h)
{
    const size_t K = (size_t)a->K, width = (size_t)lam_ceil(a->K, LAM_VEC), head = (size_t)h * K;
    const float scale = (float)a->scale;
    float *dr = a->dr, *drbias = a->drbias, *du = a->du, *dv = a->dv;
    for (int p = 0; (dr || drbias) && p < a->r_rows; p++) {
        const size_t row = (size_t)(a->r_sign > 0 ? p : a->r_rows - 1 - p);
        for (size_t c = 0; dr && c < K; c++) {
            float sum = parts[0].dr[(size_t)p * width + c];
            for (int t = 1; t < n; t++)
                sum += parts[t].dr[(size_t)p * width + c];
            dr[row * a->ldr + head + c] = sum;
        }
        for (int t = 0; drbias && t < n; t++)
            drbias[row * (size_t)a->H + (size_t)h] += scale * parts[t].drbias[p];
    }
    for (size_t c = 0; c < K; c++)
        for (int t = 0; t < n; t++) {
            if (du)
                du[head + c] += scale * parts[t].du[c];
            if (dv)
                dv[head + c] += scale * parts[t].dv[c];
        }
}

void lam_attn_block_bwd(lam_cpu_dev *dev, const lam_attn *a)
{
    const lam_work size = lam_attn_work(a);
    const int ranges = ranges_of(a->B, a->H), tasks = a->H * ranges;
    const int threads = lam_attn_threads(dev, a, a->r ? 8 : 5, tasks);
    const size_t bytes = bytes_a_thread(&size), part_bytes = bytes_a_part(&size);
    char *const parts = lam_cpu_scratch(dev, part_bytes * (size_t)tasks + bytes * (size_t)threads);
    char *const scratch = parts + part_bytes * (size_t)tasks;
    const lam_mask m = lam_mask_make(&a->drop);

#pragma omp parallel num_threads(threads)
    {
        lam_arena arena = {scratch + bytes * (size_t)omp_get_thread_num(), bytes, 0};
        bwd w;
        carve(&w, &arena, &size);
#pragma omp for schedule(dynamic, 1)
        for (int task = 0; task < tasks; task++) {
            lam_arena own = {parts + part_bytes * (size_t)task, part_bytes, 0};
            const int range = task % ranges;
            part sum;
            memset(own.base, 0, part_bytes);
            carve_part(&sum, &own, &size);
            pack_head(&w, a, task / ranges);
            for (int b = a->B * range / ranges; b < a->B * (range + 1) / ranges; b++)
                stream_bwd(&w, &sum, a, b, &m);
        }
#pragma omp for schedule(static)
        for (int h = 0; h < a->H; h++) {
            part sums[TASKS];
            for (int t = 0; t < ranges; t++) {
                lam_arena own = {parts + part_bytes * (size_t)(h * ranges + t), part_bytes, 0};
                carve_part(&sums[t], &own, &size);
            }
            reduce_head(a, sums, ranges, h);
        }
    }
}
