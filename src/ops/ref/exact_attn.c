/* ref/exact_attn.c -- the specification of attention in exact arithmetic, Eq. 2, 6, 9 and 12 in integers.
 *
 * Like ref/attn.c one stream, head and query at a time; what is visible and which positional row a pair reads
 * is the same there. */
#include "ops/ref/exact.h"

#include <assert.h>
#include <math.h>

/* A head of a row of keys, values or positions: K integers and their scale. */
typedef struct head {
    int8_t q[LAM_NEXT_WIDTH];
    float scale;
} head;

static void head_at(head *out, const void *p, const void *scale, lam_class type, size_t at, int K)
{
    if (type == LAM_ACT) {
        lam_ref_pack(out->q, &out->scale, (const float *)p + at, (size_t)K);
        return;
    }
    for (int c = 0; c < K; c++)
        out->q[c] = ((const int8_t *)p)[at + (size_t)c];
    out->scale = ((const float *)scale)[at / (size_t)K];
}

/* A head of q + u or q + v. */
typedef struct query {
    int32_t q[LAM_NEXT_WIDTH];
    float scale;
} query;

static void query_of(query *out, const float *q, const float *bias, int K)
{
    float x[LAM_NEXT_WIDTH];
    for (int c = 0; c < K; c++)
        x[c] = bias ? q[c] + bias[c] : q[c];
    const lam_exact_grid grid = lam_ref_grid(x, (size_t)K, LAM_EXACT_ROW);
    for (int c = 0; c < K; c++)
        out->q[c] = lam_ref_level(grid, x[c]);
    out->scale = grid.scale;
}

/* float(q . k) * (s_q * s_k) */
static float product(const query *q, const head *k, int K)
{
    int64_t sum = 0;
    for (int c = 0; c < K; c++)
        sum += (int64_t)q->q[c] * k->q[c];
    return (float)sum * (q->scale * k->scale);
}

/* One query of one head. */
typedef struct work {
    const lam_attn *a;
    size_t b, h, i;
    query by_key, by_place;
} work;

static void key_at(head *out, const work *w, lam_view view, const void *scale, size_t j)
{
    const lam_attn *a = w->a;
    head_at(out, view.p, scale, a->kv_class, w->b * view.step + j * a->ldk + w->h * (size_t)a->K,
            a->K);
}

static float score(const work *w, size_t j)
{
    const lam_attn *a = w->a;
    const size_t place = a->r || a->rbias ? lam_ref_position_row(a, w->i, j) : 0;
    head k;
    key_at(&k, w, a->k, a->k_scale, j);
    float sum = product(&w->by_key, &k, a->K);
    if (a->r) {
        head_at(&k, a->r, a->r_scale, a->r_class, place * a->ldr + w->h * (size_t)a->K, a->K);
        sum = sum + product(&w->by_place, &k, a->K);
    }
    if (a->rbias)
        sum = sum + ((const float *)a->rbias)[place * (size_t)a->H + w->h];
    return sum * (float)a->scale;
}

/* o = sum of p value, where p[j] < 0 marks a key that is not visible. */
static void sum_values(float *o, const work *w, const float *p, int64_t n)
{
    const lam_attn *a = w->a;
    int64_t sums[LAM_NEXT_WIDTH] = {0};
    int32_t size = 0;
    head v;
    for (size_t j = 0; j < (size_t)a->keys; j++) {
        if (p[j] < 0.0f)
            continue;
        key_at(&v, w, a->value, a->value_scale, j);
        const int32_t now = lam_exact_size(p[j] * v.scale);
        size = now > size ? now : size;
    }
    const lam_exact_grid grid = lam_exact_grid_of(size, LAM_EXACT_ROW);
    for (size_t j = 0; j < (size_t)a->keys; j++) {
        if (p[j] < 0.0f)
            continue;
        key_at(&v, w, a->value, a->value_scale, j);
        const int64_t weight = lam_ref_level(grid, p[j] * v.scale);
        for (int c = 0; c < a->K; c++)
            sums[c] += weight * v.q[c];
    }
    const float share = lam_exact_share(size, n);
    for (int c = 0; c < a->K; c++)
        o[c] = (float)sums[c] * share;
}

static void forward(const work *w, float *p)
{
    const lam_attn *a = w->a;
    float *o = lam_ref_floats(a->o, a->ldo, w->b, w->i) + w->h * (size_t)a->K;
    float *lse = lam_ref_floats(a->lse, (size_t)a->H, w->b, w->i) + w->h;
    int32_t top = INT32_MIN;
    int seen = 0;
    for (size_t j = 0; j < (size_t)a->keys; j++) {
        if (!lam_ref_visible(w->a, w->b, w->i, j))
            continue;
        p[j] = score(w, j);
        top = lam_exact_rank(p[j]) > top ? lam_exact_rank(p[j]) : top;
        seen = 1;
    }
    int64_t n = 0;
    for (size_t j = 0; j < (size_t)a->keys; j++) {
        p[j] = lam_ref_visible(w->a, w->b, w->i, j) ? lam_exact_expf(p[j] - lam_exact_unrank(top))
                                                    : -1.0f;
        n += p[j] < 0.0f ? 0 : lam_exact_round(p[j] * (float)LAM_EXACT_P);
    }
    *lse = seen ? lam_exact_lse(lam_exact_unrank(top), n) : -INFINITY;
    for (int c = 0; c < a->K; c++)
        o[c] = 0.0f;
    if (seen)
        sum_values(o, w, p, n);
}

void lam_ref_exact_attn_fwd(lam_dev *dev, const lam_attn *a)
{
    const lam_ref_dev *ref = (const lam_ref_dev *)dev;
    assert(a->K <= LAM_NEXT_WIDTH && (size_t)a->keys <= ref->n_scores && a->drop.p == 0.0);
    work w = {.a = a};
    for (w.b = 0; w.b < (size_t)a->B; w.b++)
        for (w.h = 0; w.h < (size_t)a->H; w.h++)
            for (w.i = 0; w.i < (size_t)a->queries; w.i++) {
                const size_t at = w.h * (size_t)a->K;
                const float *q = lam_ref_floats(a->q, a->ldq, w.b, w.i) + at;
                query_of(&w.by_key, q, a->u ? (const float *)a->u + at : NULL, a->K);
                query_of(&w.by_place, q, a->v ? (const float *)a->v + at : NULL, a->K);
                forward(&w, (float *)ref->scores);
            }
}

/* The new key or value of stream b, into row at[b]. */
static void put(const lam_attn_next *x, lam_view to, void *scale, lam_view from, size_t b)
{
    const lam_attn *a = &x->a;
    const size_t K = (size_t)a->K;
    const size_t at = b * to.step + (size_t)((const int32_t *)x->at)[b] * a->ldk;
    const float *row = (const float *)from.p + b * from.step;
    for (size_t h = 0; h < (size_t)a->H; h++)
        lam_ref_pack((int8_t *)to.p + at + h * K, (float *)scale + at / K + h, row + h * K, K);
}

void lam_ref_exact_attn_next(lam_dev *dev, const lam_attn_next *x)
{
    assert(x->a.kv_class == LAM_BYTE && x->a.queries == 1 && x->a.mode == LAM_CAUSAL);
    for (size_t b = 0; b < (size_t)x->a.B; b++) {
        lam_attn a = x->a;
        put(x, a.k, a.k_scale, x->k, b);
        put(x, a.value, a.value_scale, x->value, b);
        a.B = 1;
        a.shift = ((const int32_t *)x->at)[b];
        a.keys = a.shift + 1;
        a.q.p = lam_at(dev, LAM_ACT, a.q.p, b * a.q.step);
        a.k.p = lam_at(dev, LAM_BYTE, a.k.p, b * a.k.step);
        a.value.p = lam_at(dev, LAM_BYTE, a.value.p, b * a.value.step);
        a.k_scale = (float *)a.k_scale + b * a.k.step / (size_t)a.K;
        a.value_scale = (float *)a.value_scale + b * a.value.step / (size_t)a.K;
        a.o.p = lam_at(dev, LAM_ACT, a.o.p, b * a.o.step);
        a.lse.p = lam_at(dev, LAM_WIDE, a.lse.p, b * a.lse.step);
        a.valid = a.valid ? (const int32_t *)a.valid + b : NULL;
        lam_ref_exact_attn_fwd(dev, &a);
    }
}
