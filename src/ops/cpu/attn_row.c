/* attn_row.c -- attention forward for one or two queries: decoding (specified in ref/attn.c).
 *
 * Every key, value and positional row is read once, so memory sets the speed and nothing is packed.
 * The heads of a row lie side by side: all heads of a task are served while walking along the keys,
 * eight rows at a time, so that memory is read in order.  Caches in bf16 are widened as they are read:
 * kv and r below are the classes of keys, values and positions, known to the compiler in each of the
 * four copies of the loop. */
#include "ops/cpu/attn_int.h"
#include "ops/cpu/attn_shuffle.h"
#include "ops/cpu/narrow.h"

#include <omp.h>

enum { ROWS = 8 }; /* read together: enough to hide latency, few enough streams to follow */

typedef struct row {
    float *s;       /* [H][keys rounded up] */
    float *qu, *qv; /* [H][width] */
    float *o;       /* [H][width] */
    float *sum;     /* [H] */
    float *lanes;   /* [H][16][16]: scores before their lanes are summed */
    float *rbias;   /* [rows] of one head */
    lam_mask mask;
} row;

static void carve(row *out, lam_arena *arena, const lam_work *size)
{
    const size_t H = (size_t)size->H, width = (size_t)lam_ceil(size->K, LAM_VEC);
    *out = (row){.s = lam_take_floats(arena, H * (size_t)lam_ceil(size->keys, LAM_VEC)),
                 .qu = lam_take_floats(arena, H * width),
                 .qv = lam_take_floats(arena, H * width),
                 .o = lam_take_floats(arena, H * width),
                 .sum = lam_take_floats(arena, H),
                 .lanes = lam_take_floats(arena, H * LAM_VEC * LAM_VEC),
                 .rbias = lam_take_floats(arena, (size_t)lam_ceil(size->r_rows, LAM_VEC))};
}

static size_t bytes_a_thread(const lam_work *size)
{
    lam_arena count = {0};
    row unused;
    carve(&unused, &count, size);
    return count.used;
}

size_t lam_attn_row_bytes(const lam_work *largest, int threads)
{
    return bytes_a_thread(largest) * (size_t)threads;
}

/* One task's share: a query of stream b, and some of its heads. */
typedef struct share {
    int b, i;
    lam_span heads;
    lam_span seen;
    size_t ld; /* of s */
} share;

/* Rows of all heads, those in `part` being there; step is in bytes and may be negative. */
typedef struct rows {
    const char *base;
    ptrdiff_t step;
    lam_span part;
} rows;

LAM_INLINE rows cached_rows(const lam_attn *a, lam_view view, const share *x, lam_class type)
{
    const size_t size = type == LAM_HALF ? sizeof(uint16_t) : sizeof(float);
    return (rows){(const char *)view.p + (size_t)x->b * view.step * size,
                  (ptrdiff_t)(a->ldk * size), x->seen};
}

/* r in the order of p; `to_p` is p of key 0. */
LAM_INLINE rows position_rows(const lam_attn *a, const share *x, int to_p, lam_class type)
{
    const size_t size = type == LAM_HALF ? sizeof(uint16_t) : sizeof(float);
    const ptrdiff_t step = (ptrdiff_t)(a->ldr * size);
    const lam_span part = {x->seen.lo + to_p, x->seen.hi + to_p};
    if (a->r_sign > 0)
        return (rows){a->r, step, part};
    return (rows){(const char *)a->r + (a->r_rows - 1) * step, -step, part};
}

/* Some rows from row n of src on; one outside src->part is replaced by the nearest inside. */
typedef struct several {
    const char *at[ROWS];
} several;

LAM_INLINE several rows_at(const rows *src, int n)
{
    const int lo = src->part.lo, hi = src->part.hi - 1;
    several x;
    for (int u = 0; u < ROWS; u++)
        x.at[u] = src->base + (n + u < lo ? lo : n + u > hi ? hi : n + u) * src->step;
    return x;
}

/* sum[u] += q * row u, lane by lane, over the K columns from `col` on: register `part` of every vector. */
LAM_INLINE void dot_rows(lam_reg sum[ROWS], const float *q, const several *x, size_t col, size_t K,
                         const int part, const lam_class type)
{
    const size_t from = (size_t)part * LAM_REG;
    size_t c = 0;
    for (; c + LAM_VEC <= K; c += LAM_VEC) {
        const lam_reg y = lam_reg_load(q + c + from);
        LAM_UNROLL
        for (int u = 0; u < ROWS; u++)
            sum[u] = lam_reg_fma(y, lam_reg_load_as(x->at[u], col + c + from, type), sum[u]);
    }
    if (c < K) {
        const lam_reg y = lam_reg_load(q + c + from);
        LAM_UNROLL
        for (int u = 0; u < ROWS; u++)
            sum[u] = lam_reg_fma(y, lam_load_as_n(x->at[u], col + c, type, K - c).r[part], sum[u]);
    }
}

/* The scores of sixteen keys from j on.  Lanes are summed at the end, for sixteen rows at once. */
LAM_INLINE void score_rows(row *w, const lam_attn *a, const share *x, int j, const lam_class kv,
                           const lam_class r_class)
{
    const size_t K = (size_t)a->K, width = (size_t)lam_ceil(a->K, LAM_VEC);
    const int to_p = a->r ? lam_attn_pzero(a) - x->i : 0;
    const rows key = cached_rows(a, a->k, x, kv);
    const rows pos = a->r ? position_rows(a, x, to_p, r_class) : key;
    for (int n = 0; n < LAM_VEC; n += ROWS) {
        const several k = rows_at(&key, j + n), r = rows_at(&pos, j + n + to_p);
        for (int h = x->heads.lo; h < x->heads.hi; h++) {
            float *const lanes = w->lanes + (h * LAM_VEC + n) * LAM_VEC;
            LAM_EACH(part)
            {
                lam_reg sum[ROWS];
                LAM_UNROLL
                for (int u = 0; u < ROWS; u++)
                    sum[u] = lam_reg_splat(0.0f);
                dot_rows(sum, w->qu + (size_t)h * width, &k, (size_t)h * K, K, part, kv);
                if (a->r)
                    dot_rows(sum, w->qv + (size_t)h * width, &r, (size_t)h * K, K, part, r_class);
                LAM_UNROLL
                for (int u = 0; u < ROWS; u++)
                    memcpy(lanes + u * LAM_VEC + part * LAM_REG, &sum[u], sizeof sum[u]);
            }
        }
    }
    for (int h = x->heads.lo; h < x->heads.hi; h++)
        lam_store(w->s + (size_t)h * x->ld + j, lam_sums16(w->lanes + h * LAM_VEC * LAM_VEC));
}

static void add_rbias(row *w, const lam_attn *a, const share *x)
{
    const int to_p = lam_attn_pzero(a) - x->i;
    for (int h = x->heads.lo; h < x->heads.hi; h++) {
        lam_pack_rbias(w->rbias, a, h);
        for (int j = x->seen.lo; j < x->seen.hi; j++)
            w->s[(size_t)h * x->ld + (size_t)j] += w->rbias[j + to_p];
    }
}

/* o += sum over up to eight keys from j on of p value; n columns, a vector or less. */
LAM_INLINE void read_vector(float *o, const lam_f16v p[ROWS], const several *x, size_t col,
                            size_t n, const lam_class type)
{
    lam_f16v sum[2] = {lam_splat(0.0f), lam_splat(0.0f)};
    LAM_UNROLL
    for (int u = 0; u < ROWS; u++) {
        const lam_f16v y =
            n == LAM_VEC ? lam_load_as(x->at[u], col, type) : lam_load_as_n(x->at[u], col, type, n);
        sum[u % 2] = lam_fma(p[u], y, sum[u % 2]);
    }
    lam_store(o, lam_add(lam_load(o), lam_add(sum[0], sum[1])));
}

LAM_INLINE void read_rows(row *w, const lam_attn *a, const share *x, int j, const lam_class kv)
{
    const size_t K = (size_t)a->K, width = (size_t)lam_ceil(a->K, LAM_VEC);
    const rows value = cached_rows(a, a->value, x, kv);
    const several v = rows_at(&value, j);
    for (int h = x->heads.lo; h < x->heads.hi; h++) {
        const float *s = w->s + (size_t)h * x->ld;
        float *o = w->o + (size_t)h * width;
        lam_f16v p[ROWS];
        size_t c = 0;
        LAM_UNROLL
        for (int u = 0; u < ROWS; u++)
            p[u] = lam_splat(j + u < x->seen.hi ? s[j + u] : 0.0f);
        for (; c + LAM_VEC <= K; c += LAM_VEC)
            read_vector(o + c, p, &v, (size_t)h * K + c, LAM_VEC, kv);
        if (c < K)
            read_vector(o + c, p, &v, (size_t)h * K + c, K - c, kv);
    }
}

static void softmax_row(row *w, const lam_attn *a, const share *x, int h)
{
    float *s = w->s + (size_t)h * x->ld, *lse = lam_attn_stat(a, a->lse, x->b, h, x->i);
    if (x->seen.lo == x->seen.hi) {
        *lse = -INFINITY;
        w->sum[h] = 1.0f; /* of nothing: o stays zero */
        return;
    }
    const float top = lam_row_fence(s, x->seen);
    w->sum[h] = lam_row_exp(s, x->seen, top);
    *lse = top + logf(w->sum[h]);
    if (w->mask.on)
        lam_row_drop(s, x->seen, &w->mask, lam_attn_mask_row(a, x->b, h, x->i));
}

LAM_INLINE void query_fwd(row *w, const lam_attn *a, const share *x, const lam_class kv,
                          const lam_class r)
{
    const size_t K = (size_t)a->K, width = (size_t)lam_ceil(a->K, LAM_VEC);
    const float scale = (float)a->scale, *u = a->u, *v = a->v;
    const int seeing = x->seen.lo < x->seen.hi;
    for (int h = x->heads.lo; h < x->heads.hi; h++) {
        const size_t head = (size_t)h * K, at = (size_t)h * width;
        const float *q = lam_attn_head(a, a->q, x->b, h) + (size_t)x->i * a->ldq;
        lam_pack_query(w->qu + at, q, u ? u + head : NULL, a->K, scale);
        lam_pack_query(w->qv + at, q, v ? v + head : NULL, a->K, scale);
        memset(w->o + at, 0, width * sizeof *w->o);
    }
    for (int j = lam_floor(x->seen.lo, LAM_VEC); seeing && j < x->seen.hi; j += LAM_VEC)
        score_rows(w, a, x, j, kv, r);
    if (a->rbias)
        add_rbias(w, a, x);
    for (int h = x->heads.lo; h < x->heads.hi; h++)
        softmax_row(w, a, x, h);
    for (int j = x->seen.lo; j < x->seen.hi; j += ROWS)
        read_rows(w, a, x, j, kv);
    for (int h = x->heads.lo; h < x->heads.hi; h++) {
        float *o = lam_attn_head(a, a->o, x->b, h) + (size_t)x->i * a->ldo;
        for (size_t c = 0; c < K; c++)
            o[c] = w->o[(size_t)h * width + c] / w->sum[h];
    }
}

static lam_span seen_of(const lam_attn *a, int b, int i)
{
    const lam_span all = lam_attn_sees(a, i);
    const int oldest = lam_attn_oldest(a, (size_t)b);
    const int lo = oldest < all.hi ? oldest : all.hi;
    return (lam_span){all.lo > lo ? all.lo : lo, all.hi};
}

static void one_query(row *w, const lam_attn *a, const share *x)
{
    const int narrow_r = a->r && a->r_class == LAM_HALF;
    if (a->kv_class == LAM_HALF && narrow_r)
        query_fwd(w, a, x, LAM_HALF, LAM_HALF);
    else if (a->kv_class == LAM_HALF)
        query_fwd(w, a, x, LAM_HALF, LAM_ACT);
    else if (narrow_r)
        query_fwd(w, a, x, LAM_ACT, LAM_HALF);
    else
        query_fwd(w, a, x, LAM_ACT, LAM_ACT);
}

/* Stream b's own call where every stream is at a row of its own. */
static lam_attn attn_of(const lam_attn *a, const int32_t *at, int b)
{
    lam_attn own = *a;
    if (at) {
        own.shift = at[b];
        own.keys = at[b] + 1;
    }
    return own;
}

void lam_attn_row_fwd(lam_cpu_dev *dev, const lam_attn *a, const int32_t *at)
{
    const lam_work size = lam_attn_work(a);
    const size_t bytes = bytes_a_thread(&size);
    const int threads = lam_attn_threads(dev, a, a->r ? 3 : 2, a->B * a->H);
    /* A stream's heads are cut only where there are fewer streams than threads; a head's result does
     * not depend on its neighbours. */
    const int cuts = (threads + a->B - 1) / a->B, parts = cuts < a->H ? cuts : a->H;
    char *const scratch = lam_cpu_scratch(dev, bytes * (size_t)threads);

#pragma omp parallel num_threads(threads)
    {
        lam_arena arena = {scratch + bytes * (size_t)omp_get_thread_num(), bytes, 0};
        row w;
        carve(&w, &arena, &size);
        w.mask = lam_mask_make(&a->drop);
#pragma omp for schedule(static)
        for (int task = 0; task < a->B * parts; task++) {
            const int part = task % parts;
            share x = {.b = task / parts, .ld = (size_t)lam_ceil(a->keys, LAM_VEC)};
            const lam_attn own = attn_of(a, at, x.b);
            x.heads = (lam_span){a->H * part / parts, a->H * (part + 1) / parts};
            for (x.i = 0; x.i < a->queries; x.i++) {
                x.seen = seen_of(&own, x.b, x.i);
                one_query(&w, &own, &x);
            }
        }
    }
}
