/* attn_row.c -- attention forward for one or two queries: decoding (specified in ref/attn.c).
 *
 * Every key, value and positional row is read once, so memory sets the speed and nothing is packed.
 * The heads of a row lie side by side: all heads of a task are served while walking along the keys,
 * sixteen at a time, so that memory is read nearly in order. */
#include "ops/cpu/attn_int.h"
#include "ops/cpu/attn_shuffle.h"

#include <omp.h>

typedef struct row {
    float *s;       /* [H][keys rounded up] */
    float *qu, *qv; /* [H][width] */
    float *o;       /* [H][width] */
    float *sum;     /* [H] */
    float *rbias;   /* [rows] of one head */
} row;

static void carve(row *out, lam_arena *arena, const lam_work *size)
{
    const size_t H = (size_t)size->H, width = (size_t)lam_ceil(size->K, LAM_VEC);
    *out = (row){.s = lam_take_floats(arena, H * (size_t)lam_ceil(size->keys, LAM_VEC)),
                 .qu = lam_take_floats(arena, H * width),
                 .qv = lam_take_floats(arena, H * width),
                 .o = lam_take_floats(arena, H * width),
                 .sum = lam_take_floats(arena, H),
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

/* q . x[n] for sixteen rows n from `first` on; rows outside src->part are replaced by its nearest. */
LAM_INLINE lam_f16v dots(const float *q, const lam_source *src, int first)
{
    const float *at[LAM_VEC];
    lam_f16v sum[LAM_VEC];
    for (int i = 0; i < LAM_VEC; i++) {
        int n = first + i;
        n = n < src->part.lo ? src->part.lo : n >= src->part.hi ? src->part.hi - 1 : n;
        at[i] = src->base + n * src->step;
    }
    LAM_UNROLL
    for (int i = 0; i < LAM_VEC; i++)
        sum[i] = lam_splat(0.0f);
    int c = 0;
    for (; c + LAM_VEC <= src->K; c += LAM_VEC) {
        const lam_f16v x = lam_load(q + c);
        LAM_UNROLL
        for (int i = 0; i < LAM_VEC; i++)
            sum[i] = lam_fma(x, lam_load(at[i] + c), sum[i]);
    }
    if (c < src->K) {
        const lam_f16v x = lam_load(q + c);
        LAM_UNROLL
        for (int i = 0; i < LAM_VEC; i++)
            sum[i] = lam_fma(x, lam_load_n(at[i] + c, (size_t)(src->K - c)), sum[i]);
    }
    return lam_sums16(sum);
}

/* One task's share: heads [h0, h1) of stream b. */
typedef struct share {
    int b, i;
    lam_span heads;
    lam_span seen;
    size_t ld; /* of s */
} share;

static void score_rows(row *w, const lam_attn *a, const share *x)
{
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    const int to_p = a->r || a->rbias ? lam_attn_pzero(a) - x->i : 0;
    if (x->seen.lo == x->seen.hi)
        return;
    for (int j = lam_floor(x->seen.lo, LAM_VEC); j < x->seen.hi; j += LAM_VEC)
        for (int h = x->heads.lo; h < x->heads.hi; h++) {
            lam_source key = lam_source_head(a, a->k, a->ldk, x->b, h);
            key.part = x->seen;
            lam_f16v s = dots(w->qu + (size_t)h * width, &key, j);
            if (a->r) {
                lam_source pos = lam_source_pos(a, h);
                pos.part = (lam_span){x->seen.lo + to_p, x->seen.hi + to_p};
                s += dots(w->qv + (size_t)h * width, &pos, j + to_p);
            }
            lam_store(w->s + (size_t)h * x->ld + j, s);
        }
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

LAM_INLINE lam_f16v load_part(const float *p, size_t n)
{
    return n == LAM_VEC ? lam_load(p) : lam_load_n(p, n);
}

/* o += sum over keys [from, to) of p value, four keys in flight. */
LAM_INLINE void read_values(float *o, const float *p, const lam_source *value, int from, int to)
{
    for (int c = 0; c < value->K; c += LAM_VEC) {
        const size_t n = value->K - c < LAM_VEC ? (size_t)(value->K - c) : LAM_VEC;
        const float *at = value->base + c;
        lam_f16v sum[4] = {lam_load(o + c), lam_splat(0.0f), lam_splat(0.0f), lam_splat(0.0f)};
        int j = from;
        for (; j + 4 <= to; j += 4) {
            LAM_UNROLL
            for (int u = 0; u < 4; u++)
                sum[u] =
                    lam_fma(lam_splat(p[j + u]), load_part(at + (j + u) * value->step, n), sum[u]);
        }
        for (; j < to; j++)
            sum[0] = lam_fma(lam_splat(p[j]), load_part(at + j * value->step, n), sum[0]);
        lam_store(o + c, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
}

static void read_rows(row *w, const lam_attn *a, const share *x)
{
    const size_t width = (size_t)lam_ceil(a->K, LAM_VEC);
    for (int j = x->seen.lo; j < x->seen.hi; j += LAM_VEC) {
        const int end = j + LAM_VEC < x->seen.hi ? j + LAM_VEC : x->seen.hi;
        for (int h = x->heads.lo; h < x->heads.hi; h++) {
            const lam_source value = lam_source_head(a, a->value, a->ldk, x->b, h);
            read_values(w->o + (size_t)h * width, w->s + (size_t)h * x->ld, &value, j, end);
        }
    }
}

static void softmax_row(row *w, const lam_attn *a, const share *x, int h, const lam_mask *m)
{
    float *s = w->s + (size_t)h * x->ld, *lse = lam_attn_stat(a, a->lse, x->b, h, x->i);
    if (x->seen.lo == x->seen.hi) {
        *lse = -INFINITY;
        w->sum[h] = 1.0f; /* of nothing: o stays zero */
        return;
    }
    lam_row_fence(s, x->seen);
    const float top = lam_row_max(s, x->seen);
    w->sum[h] = lam_row_exp(s, x->seen, top);
    *lse = top + logf(w->sum[h]);
    if (m->on)
        lam_row_drop(s, x->seen, m, lam_attn_mask_row(a, x->b, h, x->i));
}

static void query_fwd(row *w, const lam_attn *a, const share *x, const lam_mask *m)
{
    const size_t K = (size_t)a->K, width = (size_t)lam_ceil(a->K, LAM_VEC);
    const float scale = (float)a->scale, *u = a->u, *v = a->v;
    for (int h = x->heads.lo; h < x->heads.hi; h++) {
        const size_t head = (size_t)h * K, at = (size_t)h * width;
        const float *q = lam_attn_head(a, a->q, x->b, h) + (size_t)x->i * a->ldq;
        lam_pack_query(w->qu + at, q, u ? u + head : NULL, a->K, scale);
        lam_pack_query(w->qv + at, q, v ? v + head : NULL, a->K, scale);
        memset(w->o + at, 0, width * sizeof *w->o);
    }
    score_rows(w, a, x);
    if (a->rbias)
        add_rbias(w, a, x);
    for (int h = x->heads.lo; h < x->heads.hi; h++)
        softmax_row(w, a, x, h, m);
    read_rows(w, a, x);
    for (int h = x->heads.lo; h < x->heads.hi; h++) {
        float *o = lam_attn_head(a, a->o, x->b, h) + (size_t)x->i * a->ldo;
        for (size_t c = 0; c < K; c++)
            o[c] = w->o[(size_t)h * width + c] / w->sum[h];
    }
}

void lam_attn_row_fwd(lam_cpu_dev *dev, const lam_attn *a)
{
    const lam_work size = lam_attn_work(a);
    const size_t bytes = bytes_a_thread(&size);
    const int threads = lam_attn_threads(dev, a, a->r ? 3 : 2, a->B * a->H);
    /* A stream's heads are cut only where there are fewer streams than threads; a head's result does
     * not depend on its neighbours. */
    const int cuts = (threads + a->B - 1) / a->B, parts = cuts < a->H ? cuts : a->H;
    char *const scratch = lam_cpu_scratch(dev, bytes * (size_t)threads);
    const lam_mask m = lam_mask_make(&a->drop);

#pragma omp parallel num_threads(threads)
    {
        lam_arena arena = {scratch + bytes * (size_t)omp_get_thread_num(), bytes, 0};
        row w;
        carve(&w, &arena, &size);
#pragma omp for schedule(static)
        for (int task = 0; task < a->B * parts; task++) {
            const int part = task % parts;
            share x = {.b = task / parts, .ld = (size_t)lam_ceil(a->keys, LAM_VEC)};
            x.heads = (lam_span){a->H * part / parts, a->H * (part + 1) / parts};
            for (x.i = 0; x.i < a->queries; x.i++) {
                x.seen = lam_attn_sees(a, x.i);
                query_fwd(&w, a, &x, &m);
            }
        }
    }
}
