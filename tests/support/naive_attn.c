/* naive_attn.c -- naive float32 attention and memory interpolation, online: the softmax is kept as
 * a running maximum, sum and weighted sum, which is what a memory slot is (Eq. 9-11). */
#include "support/naive.h"

#include <assert.h>
#include <math.h>

enum { MAX_HEAD = 512 }; /* the widest head a test may have */

/* One head of one query, with everything addressed. */
typedef struct line {
    const lam_attn *a;
    const float *q, *k, *value, *r, *rbias;
    float qu[MAX_HEAD], qv[MAX_HEAD]; /* q + u, q + v */
    size_t row;                       /* of all rows of P, for dropout */
    size_t b;
    int i;
} line;

static float *view_at(lam_view v, size_t b, size_t i, size_t ld, size_t col)
{
    return (float *)v.p + b * v.step + i * ld + col;
}

static line line_of(const lam_attn *a, int b, int h, int i)
{
    const size_t col = (size_t)h * (size_t)a->K, sb = (size_t)b;
    line l = {.a = a,
              .q = view_at(a->q, sb, (size_t)i, a->ldq, col),
              .k = view_at(a->k, sb, 0, a->ldk, col),
              .value = view_at(a->value, sb, 0, a->ldk, col),
              .r = a->r ? (const float *)a->r + col : NULL,
              .rbias = a->rbias ? (const float *)a->rbias + h : NULL,
              .row = (sb * (size_t)a->H + (size_t)h) * (size_t)a->queries + (size_t)i,
              .b = sb,
              .i = i};
    assert(a->K <= MAX_HEAD);
    for (size_t c = 0; c < (size_t)a->K; c++) {
        l.qu[c] = l.q[c] + (a->u ? ((const float *)a->u)[col + c] : 0.0f);
        l.qv[c] = l.q[c] + (a->v ? ((const float *)a->v)[col + c] : 0.0f);
    }
    return l;
}

static int sees(const line *l, int j)
{
    const int ahead = j - (l->a->shift + l->i);
    if (j < lam_attn_oldest(l->a, l->b))
        return 0;
    if (l->a->mode == LAM_CAUSAL)
        return ahead <= 0 && !(l->a->reach > 0 && -ahead >= l->a->reach);
    return l->a->mode == LAM_FULL || ahead > 0;
}

static size_t r_row(const line *l, int j)
{
    return (size_t)(l->a->r_zero + l->a->r_sign * (j - l->a->shift - l->i));
}

static float dot(const float *x, const float *y, int n)
{
    float sum = 0.0f;
    for (int c = 0; c < n; c++)
        sum += x[c] * y[c];
    return sum;
}

static float score(const line *l, int j)
{
    const lam_attn *a = l->a;
    float s = dot(l->qu, l->k + (size_t)j * a->ldk, a->K);
    if (l->r)
        s += dot(l->qv, l->r + r_row(l, j) * a->ldr, a->K);
    if (l->rbias)
        s += l->rbias[r_row(l, j) * (size_t)a->H];
    return (float)a->scale * s;
}

static float keep(const line *l, int j)
{
    return lam_naive_keep(&l->a->drop, l->row * lam_naive_up8(l->a->keys) + (size_t)j);
}

static void forward_line(const line *l, float *o, float *lse)
{
    const int K = l->a->K;
    float top = -INFINITY, sum = 0.0f;
    for (int c = 0; c < K; c++)
        o[c] = 0.0f;
    for (int j = 0; j < l->a->keys; j++) {
        if (!sees(l, j))
            continue;
        const float s = score(l, j), above = s > top ? s : top;
        const float shrink = expf(top - above), e = expf(s - above), kept = e * keep(l, j);
        sum = sum * shrink + e;
        for (int c = 0; c < K; c++)
            o[c] = o[c] * shrink + kept * l->value[(size_t)j * l->a->ldk + (size_t)c];
        top = above;
    }
    *lse = sum > 0.0f ? top + logf(sum) : -INFINITY;
    for (int c = 0; sum > 0.0f && c < K; c++)
        o[c] /= sum;
}

void lam_naive_float_attn_fwd(lam_dev *dev, const lam_attn *a)
{
    (void)dev;
    for (int b = 0; b < a->B; b++)
        for (int h = 0; h < a->H; h++)
            for (int i = 0; i < a->queries; i++) {
                const line l = line_of(a, b, h, i);
                const size_t sb = (size_t)b, si = (size_t)i, sh = (size_t)h;
                forward_line(&l, view_at(a->o, sb, si, a->ldo, sh * (size_t)a->K),
                             view_at(a->lse, sb, si, (size_t)a->H, sh));
            }
}

/* Adds what the pairs of this line contribute to every gradient. */
static void backward_line(const line *l, int b, int h, float lse, float dlse)
{
    const lam_attn *a = l->a;
    const int K = a->K;
    const size_t sb = (size_t)b, si = (size_t)l->i, col = (size_t)h * (size_t)K;
    const float *d_o = view_at(a->d_o, sb, si, a->ldo, col);
    const float delta = dot(d_o, view_at(a->o, sb, si, a->ldo, col), K) - dlse;
    float *dq = view_at(a->dq, sb, si, a->ldq, col);

    for (int j = 0; j < a->keys; j++) {
        if (!sees(l, j))
            continue;
        const float p = expf(score(l, j) - lse), w = keep(l, j);
        const float dp = w * dot(d_o, l->value + (size_t)j * a->ldk, K);
        const float ds = (float)a->scale * (p * (dp - delta));
        const size_t row = l->r || l->rbias ? r_row(l, j) : 0;
        const float *k = l->k + (size_t)j * a->ldk, *r = l->r ? l->r + row * a->ldr : NULL;
        float *dk = view_at(a->dk, sb, (size_t)j, a->ldk, col);
        float *dvalue = view_at(a->dvalue, sb, (size_t)j, a->ldk, col);
        for (int c = 0; c < K; c++) {
            dq[c] += ds * (k[c] + (r ? r[c] : 0.0f));
            dk[c] += ds * l->qu[c];
            dvalue[c] += p * w * d_o[c];
            if (r)
                ((float *)a->dr)[row * a->ldr + col + (size_t)c] += ds * l->qv[c];
            if (a->u)
                ((float *)a->du)[col + (size_t)c] += ds * k[c];
            if (a->v && r)
                ((float *)a->dv)[col + (size_t)c] += ds * r[c];
        }
        if (l->rbias)
            ((float *)a->drbias)[row * (size_t)a->H + (size_t)h] += ds;
    }
}

static void clear(float *p, size_t rows, size_t ld, size_t width)
{
    for (size_t i = 0; i < rows * width; i++)
        p[i / width * ld + i % width] = 0.0f;
}

void lam_naive_attn_bwd(lam_dev *dev, const lam_attn *a)
{
    (void)dev;
    const size_t width = (size_t)a->H * (size_t)a->K, keys = (size_t)a->keys;
    if (a->r)
        clear(a->dr, (size_t)a->r_rows, a->ldr, width);
    for (int b = 0; b < a->B; b++) {
        const size_t sb = (size_t)b;
        clear(view_at(a->dq, sb, 0, a->ldq, 0), (size_t)a->queries, a->ldq, width);
        if (!a->kv_add) {
            clear(view_at(a->dk, sb, 0, a->ldk, 0), keys, a->ldk, width);
            clear(view_at(a->dvalue, sb, 0, a->ldk, 0), keys, a->ldk, width);
        }
        for (int h = 0; h < a->H; h++)
            for (int i = 0; i < a->queries; i++) {
                const line l = line_of(a, b, h, i);
                const size_t si = (size_t)i, sh = (size_t)h, H = (size_t)a->H;
                backward_line(&l, b, h, *view_at(a->lse, sb, si, H, sh),
                              a->dlse.p ? *view_at(a->dlse, sb, si, H, sh) : 0.0f);
            }
    }
}

static void attn_stats_line(const lam_attn_stats *a, const line *l, float lse, float *peak,
                            float *stats)
{
    for (int c = 0; c < a->bins; c++)
        peak[c] = 0.0f;
    for (int k = 0; k < LAM_ATTN_STATS; k++)
        stats[k] = 0.0f;
    for (int c = 0, j = a->attn.shift + l->i; j >= 0; c++)
        for (int n = 0; n < a->interval && j >= 0; n++, j--) {
            if (j >= a->attn.keys || !sees(l, j))
                continue;
            const float s = score(l, j) - lse, p = expf(s);
            const int whole = (c + 1) * a->interval <= a->attn.shift + l->i + 1 &&
                              !(a->attn.reach > 0 && (c + 1) * a->interval > a->attn.reach);
            if (whole && c < a->bins && p > peak[c])
                peak[c] = p;
            stats[LAM_ENTROPY] -= p * s;
            for (int k = 0; k < LAM_CUTS; k++)
                if (j < a->cut[k])
                    stats[LAM_SHARE + k] += p;
        }
}

void lam_naive_attn_stats(lam_dev *dev, const lam_attn_stats *a)
{
    (void)dev;
    const lam_attn *at = &a->attn;
    const size_t H = (size_t)at->H;
    for (size_t row = 0; row < (size_t)at->B * (size_t)at->queries * H; row++) {
        const size_t h = row % H, i = row / H % (size_t)at->queries,
                     b = row / H / (size_t)at->queries;
        const line l = line_of(at, (int)b, (int)h, (int)i);
        attn_stats_line(a, &l, *view_at(at->lse, b, i, H, h),
                        (float *)a->peak + row * (size_t)a->bins,
                        (float *)a->stats + row * LAM_ATTN_STATS);
    }
}

/* Memory slots one by one; `backward` chooses what is written. */
static void interp(const lam_interp *a, int backward)
{
    const size_t H = (size_t)a->H, K = (size_t)a->K, n = (size_t)a->rows * H;
    const float eps = (float)a->eps;
    for (size_t b = 0; b < (size_t)a->B; b++)
        for (size_t s = 0; s < n; s++) {
            const float lo = *view_at(a->lse_old, b, s, 1, 0),
                        ln = *view_at(a->lse_new, b, s, 1, 0);
            const float top = lo > ln ? lo : ln;
            const int none = top == -INFINITY;
            const float x = none ? 0.0f : expf(lo - top), y = none ? 0.0f : expf(ln - top);
            const float alpha = none ? 0.0f : x / (x + y + eps);
            const float *c_old = view_at(a->c_old, b, s, K, 0),
                        *c_new = view_at(a->c_new, b, s, K, 0);
            if (!backward) {
                float *out = view_at(a->c_out, b, s, K, 0);
                for (size_t c = 0; c < K; c++)
                    out[c] = alpha * c_old[c] + (1.0f - alpha) * c_new[c];
                *view_at(a->alpha, b, s, 1, 0) = alpha;
                *view_at(a->lse_out, b, s, 1, 0) = none ? -INFINITY : top + logf(x + y);
                continue;
            }
            const float rest = ln >= lo ? 1.0f - alpha : y / (x + y + eps);
            const float *g = view_at(a->dc_out, b, s, K, 0);
            float *dc = view_at(a->dc_new, b, s, K, 0), sum = 0.0f;
            for (size_t c = 0; c < K; c++) {
                sum += g[c] * (c_old[c] - c_new[c]);
                dc[c] = (1.0f - alpha) * g[c];
            }
            *view_at(a->dlse_new, b, s, 1, 0) = none ? 0.0f : -alpha * rest * sum;
        }
}

void lam_naive_interp_fwd(lam_dev *dev, const lam_interp *a)
{
    (void)dev;
    interp(a, 0);
}

void lam_naive_interp_bwd(lam_dev *dev, const lam_interp *a)
{
    (void)dev;
    interp(a, 1);
}
