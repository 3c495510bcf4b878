/* ref/attn.c -- the specification of relative-position attention, Eq. 2, 6, 9 and 12.
 *
 * One stream, head, query at a time: a row of scores S, its log-sum-exp, the weights P, the
 * weighted sum.  Which keys are visible and which positional row a pair reads is decided pair by
 * pair; the model above chose the tables.  Backward recomputes P from the stored log-sum-exp.
 * The scale multiplies the scores once, here, and is sqrt of the head width (Eq. 2 prints d). */
#include "ops/ref/ref.h"

#include <assert.h>
#include <math.h>

/* What one query of one head reads; NULL where the call has no such thing. */
typedef struct query {
    size_t b, h, i;
    const double *q; /* [K] */
    const double *u, *v;
} query;

static query query_at(const lam_attn *a, size_t b, size_t h, size_t i)
{
    const size_t at = h * (size_t)a->K;
    return (query){.b = b,
                   .h = h,
                   .i = i,
                   .q = lam_ref_row(a->q, a->ldq, b, i) + at,
                   .u = a->u ? (const double *)a->u + at : NULL,
                   .v = a->v ? (const double *)a->v + at : NULL};
}

/* Column c of head h of row j of k or value. */
static double key_element(const lam_attn *a, lam_view view, const query *x, size_t j, int c)
{
    const size_t at = x->b * view.step + j * a->ldk + x->h * (size_t)a->K + (size_t)c;
    return lam_ref_element(view.p, a->kv_class, at);
}

/* Head h of row j of k, value, or one of their gradients. */
static double *key_at(const lam_attn *a, lam_view view, const query *x, size_t j)
{
    return lam_ref_row(view, a->ldk, x->b, j) + x->h * (size_t)a->K;
}

/* Head h of a row of r or dr. */
static double *position_at(const lam_attn *a, const void *r, const query *x, size_t row)
{
    return (double *)(uintptr_t)r + row * a->ldr + x->h * (size_t)a->K;
}

/* The factor of P[i][j] under dropout. */
static double mask(const lam_attn *a, const query *x, size_t j)
{
    const size_t row = (x->b * (size_t)a->H + x->h) * (size_t)a->queries + x->i;
    return lam_ref_mask(&a->drop, (size_t)a->keys, row, j);
}

/* scale * ( (q_i + u) . k_j + (q_i + v) . r + rbias ), Eq. 6 and 12. */
static double score(const lam_attn *a, const query *x, size_t j)
{
    double sum = 0.0;
    for (int c = 0; c < a->K; c++)
        sum += (x->q[c] + (x->u ? x->u[c] : 0.0)) * key_element(a, a->k, x, j, c);
    if (a->r) {
        const size_t at = lam_ref_position_row(a, x->i, j) * a->ldr + x->h * (size_t)a->K;
        for (int c = 0; c < a->K; c++)
            sum += (x->q[c] + (x->v ? x->v[c] : 0.0)) *
                   lam_ref_element(a->r, a->r_class, at + (size_t)c);
    }
    if (a->rbias)
        sum += ((const double *)a->rbias)[lam_ref_position_row(a, x->i, j) * (size_t)a->H + x->h];
    return a->scale * sum;
}

/* log sum exp, with the largest term taken out; -infinity when there is no visible key. */
static double log_sum_exp(const double *s, size_t n)
{
    double top = -INFINITY, sum = 0.0;
    for (size_t j = 0; j < n; j++)
        top = fmax(top, s[j]);
    if (top == -INFINITY)
        return -INFINITY;
    for (size_t j = 0; j < n; j++)
        sum += exp(s[j] - top);
    return top + log(sum);
}

static void forward_query(double *s, const lam_attn *a, const query *x)
{
    const size_t keys = (size_t)a->keys, H = (size_t)a->H;
    double *o = lam_ref_row(a->o, a->ldo, x->b, x->i) + x->h * (size_t)a->K;
    double *lse = lam_ref_row(a->lse, H, x->b, x->i) + x->h;

    for (size_t j = 0; j < keys; j++)
        s[j] = lam_ref_visible(a, x->b, x->i, j) ? score(a, x, j) : -INFINITY;
    *lse = log_sum_exp(s, keys);
    for (int c = 0; c < a->K; c++)
        o[c] = 0.0;
    for (size_t j = 0; j < keys; j++) {
        if (s[j] == -INFINITY)
            continue;
        const double p = exp(s[j] - *lse) * mask(a, x, j);
        for (int c = 0; c < a->K; c++)
            o[c] += p * key_element(a, a->value, x, j, c);
    }
}

void lam_ref_attn_fwd(lam_dev *dev, const lam_attn *a)
{
    const lam_ref_dev *ref = (const lam_ref_dev *)dev;
    assert(a->queries >= 1 && a->keys >= 1 && (size_t)a->keys <= ref->n_scores);
    for (size_t b = 0; b < (size_t)a->B; b++)
        for (size_t h = 0; h < (size_t)a->H; h++)
            for (size_t i = 0; i < (size_t)a->queries; i++) {
                const query x = query_at(a, b, h, i);
                forward_query(ref->scores, a, &x);
            }
}

/* Stream b alone, as a call of its own: it cannot know its neighbours. */
void lam_ref_attn_next(lam_dev *dev, const lam_attn_next *x)
{
    lam_host_put_kv(dev, x);
    for (size_t b = 0; b < (size_t)x->a.B; b++) {
        lam_attn a = x->a;
        a.B = 1;
        a.shift = ((const int32_t *)x->at)[b];
        a.keys = a.shift + 1;
        a.q.p = lam_at(dev, LAM_ACT, a.q.p, b * a.q.step);
        a.k.p = lam_at(dev, a.kv_class, a.k.p, b * a.k.step);
        a.value.p = lam_at(dev, a.kv_class, a.value.p, b * a.value.step);
        a.o.p = lam_at(dev, LAM_ACT, a.o.p, b * a.o.step);
        a.lse.p = lam_at(dev, LAM_WIDE, a.lse.p, b * a.lse.step);
        a.valid = a.valid ? (const int32_t *)a.valid + b : NULL;
        lam_ref_attn_fwd(dev, &a);
    }
}

/* fwd was o_i = sum_j drop(P_ij) value_j with P = exp(S - lse).  Through o alone,
 * dS_ij = P_ij (dP_ij - sum_j P_ij dP_ij), and that sum is do_i . o_i; through lse, whose gradient
 * with respect to S_ij is P_ij, dS_ij += P_ij dlse_i.  Together P (dP - delta). */
static double delta_of(const lam_attn *a, const query *x)
{
    const size_t H = (size_t)a->H, at = x->h * (size_t)a->K;
    const double *o = lam_ref_row(a->o, a->ldo, x->b, x->i) + at;
    const double *d_o = lam_ref_row(a->d_o, a->ldo, x->b, x->i) + at;
    double sum = a->dlse.p ? -lam_ref_row(a->dlse, H, x->b, x->i)[x->h] : 0.0;
    for (int c = 0; c < a->K; c++)
        sum += d_o[c] * o[c];
    return sum;
}

/* fwd was S = scale ((q + u) . k + (q + v) . r + rbias); g is scale * dS. */
static void backward_score(const lam_attn *a, const query *x, size_t j, double g)
{
    const size_t at = x->h * (size_t)a->K;
    const double *k = key_at(a, a->k, x, j);
    double *dq = lam_ref_row(a->dq, a->ldq, x->b, x->i) + at, *dk = key_at(a, a->dk, x, j);
    double *du = a->u ? (double *)a->du + at : NULL, *dv = a->v ? (double *)a->dv + at : NULL;

    for (int c = 0; c < a->K; c++) {
        dq[c] += g * k[c];
        dk[c] += g * (x->q[c] + (x->u ? x->u[c] : 0.0));
        if (du)
            du[c] += g * k[c];
    }
    if (a->r) {
        const size_t row = lam_ref_position_row(a, x->i, j);
        const double *r = position_at(a, a->r, x, row);
        double *dr = position_at(a, a->dr, x, row);
        for (int c = 0; c < a->K; c++) {
            dq[c] += g * r[c];
            dr[c] += g * (x->q[c] + (x->v ? x->v[c] : 0.0));
            if (dv)
                dv[c] += g * r[c];
        }
    }
    if (a->rbias)
        ((double *)a->drbias)[lam_ref_position_row(a, x->i, j) * (size_t)a->H + x->h] += g;
}

static void backward_query(const lam_attn *a, const query *x)
{
    const size_t H = (size_t)a->H, at = x->h * (size_t)a->K;
    const double lse = lam_ref_row(a->lse, H, x->b, x->i)[x->h];
    if (lse == -INFINITY)
        return; /* saw no key: o = 0 and lse = -infinity whatever the inputs are */
    const double *d_o = lam_ref_row(a->d_o, a->ldo, x->b, x->i) + at;
    const double delta = delta_of(a, x);

    for (size_t j = 0; j < (size_t)a->keys; j++) {
        if (!lam_ref_visible(a, x->b, x->i, j))
            continue;
        const double p = exp(score(a, x, j) - lse), drop = mask(a, x, j);
        const double *value = key_at(a, a->value, x, j);
        double *dvalue = key_at(a, a->dvalue, x, j);
        double dp = 0.0;
        for (int c = 0; c < a->K; c++) {
            dp += drop * d_o[c] * value[c];
            dvalue[c] += drop * p * d_o[c];
        }
        backward_score(a, x, j, a->scale * p * (dp - delta));
    }
}

void lam_ref_attn_weights(double *p, const lam_attn *a, size_t b, size_t h, size_t i)
{
    const query x = query_at(a, b, h, i);
    const double lse = lam_ref_row(a->lse, (size_t)a->H, b, i)[h];
    for (size_t j = 0; j < (size_t)a->keys; j++)
        p[j] = lam_ref_visible(a, b, i, j) ? exp(score(a, &x, j) - lse) : 0.0;
}

static void zero_rows(double *p, size_t ld, size_t rows, size_t width)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < width; c++)
            p[r * ld + c] = 0.0;
}

/* Everything that is overwritten starts from zero, then pairs add to it. */
void lam_ref_attn_bwd(lam_dev *dev, const lam_attn *a)
{
    (void)dev;
    const size_t width = (size_t)a->H * (size_t)a->K, keys = (size_t)a->keys;
    if (a->r)
        zero_rows(a->dr, a->ldr, (size_t)a->r_rows, width);
    for (size_t b = 0; b < (size_t)a->B; b++) {
        zero_rows(lam_ref_row(a->dq, a->ldq, b, 0), a->ldq, (size_t)a->queries, width);
        if (!a->kv_add) {
            zero_rows(lam_ref_row(a->dk, a->ldk, b, 0), a->ldk, keys, width);
            zero_rows(lam_ref_row(a->dvalue, a->ldk, b, 0), a->ldk, keys, width);
        }
        for (size_t h = 0; h < (size_t)a->H; h++)
            for (size_t i = 0; i < (size_t)a->queries; i++) {
                const query x = query_at(a, b, h, i);
                backward_query(a, &x);
            }
    }
}
