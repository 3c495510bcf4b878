/* cpu/optim.c -- global norm, clipping, the update rules and a run's totals: one pass over memory each.
 *
 * The elements of all parts, one after the other, are cut into a fixed number of ranges.  A range is
 * one thread's work, and the norm adds the ranges' sums (double) in order. */
#include "ops/cpu/cpu.h"
#include "ops/cpu/vecmath.h"

#include <math.h>

enum { RANGES = 128, GRAIN = 64 }; /* borders fall on multiples of GRAIN elements */

/* What is left of a range: visited part by part. */
typedef struct range {
    const lam_part *parts;
    int n_parts, part;
    size_t begin, end; /* counted through all parts */
    size_t above;      /* elements of the parts before `part` */
} range;

static size_t count_all(const lam_part *parts, int n_parts)
{
    size_t n = 0;
    for (int i = 0; i < n_parts; i++)
        n += parts[i].count;
    return n;
}

static size_t border(size_t total, size_t i)
{
    const size_t grains = (total + GRAIN - 1) / GRAIN, at = grains * i / RANGES * GRAIN;
    return at < total ? at : total;
}

static range range_at(const lam_part *parts, int n_parts, size_t total, size_t i)
{
    return (range){
        .parts = parts, .n_parts = n_parts, .begin = border(total, i), .end = border(total, i + 1)};
}

/* The next stretch of the range that lies in one part: elements *from .. *from + *n - 1 of the flat
 * vector.  NULL when the range is done. */
static const lam_part *next_stretch(range *r, size_t *from, size_t *n)
{
    while (r->begin < r->end && r->part < r->n_parts) {
        const lam_part *part = &r->parts[r->part];
        const size_t in = r->begin - r->above; /* place in this part, or past it */
        if (in < part->count) {
            const size_t left = part->count - in, want = r->end - r->begin;
            *from = part->offset + in;
            *n = want < left ? want : left;
            r->begin += *n;
            return part;
        }
        r->above += part->count;
        r->part++;
    }
    return NULL;
}

static double square_sum(const float *g, size_t n)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += (double)g[i] * (double)g[i];
    return sum;
}

void lam_cpu_gnorm(lam_dev *dev, const lam_gnorm *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t total = count_all(a->parts, a->n_parts);
    double partial[RANGES], squares = 0.0;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, total)) schedule(static)
    for (size_t i = 0; i < RANGES; i++) {
        range r = range_at(a->parts, a->n_parts, total, i);
        size_t from, n;
        partial[i] = 0.0;
        while (next_stretch(&r, &from, &n))
            partial[i] += square_sum((const float *)a->grad + from, n);
    }
    for (size_t i = 0; i < RANGES; i++)
        squares += partial[i];
    *(float *)a->norm = (float)sqrt(squares);
}

/* A stretch of one part, with the part's numbers as the inner loops want them. */
typedef struct stretch {
    size_t n;
    const float *grad;
    float *p, *m, *v;
    float clip, lr, decay; /* decay already times lr */
    float b1, b2, c1, c2;  /* beta and 1 - beta, the latter formed in double */
    float fix1, fix2;      /* inverses */
    float eps;
} stretch;

/* p -= lr * (m/fix1) / (sqrt(v/fix2) + eps) */
static void adam(const stretch *s)
{
    const float *grad = s->grad, step = s->lr * s->fix1, fix2 = s->fix2, eps = s->eps;
    const float clip = s->clip, decay = s->decay, b1 = s->b1, b2 = s->b2;
    const float c1 = s->c1, c2 = s->c2;
    float *p = s->p, *m = s->m, *v = s->v;
#pragma omp simd
    for (size_t i = 0; i < s->n; i++) {
        const float g = clip * grad[i];
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * (g * g);
        p[i] -= decay * p[i];
        p[i] -= step * m[i] / (sqrtf(v[i] * fix2) + eps);
    }
}

/* m = beta1 m + g; p -= lr * m */
static void sgd(const stretch *s)
{
    const float *grad = s->grad, clip = s->clip, decay = s->decay, b1 = s->b1, lr = s->lr;
    float *p = s->p, *m = s->m;
#pragma omp simd
    for (size_t i = 0; i < s->n; i++) {
        m[i] = b1 * m[i] + clip * grad[i];
        p[i] -= decay * p[i];
        p[i] -= lr * m[i];
    }
}

/* v += g^2; p -= lr * g / (sqrt(v) + eps) */
static void adagrad(const stretch *s)
{
    const float *grad = s->grad, clip = s->clip, decay = s->decay, eps = s->eps, lr = s->lr;
    float *p = s->p, *v = s->v;
#pragma omp simd
    for (size_t i = 0; i < s->n; i++) {
        const float g = clip * grad[i];
        v[i] += g * g;
        p[i] -= decay * p[i];
        p[i] -= lr * g / (sqrtf(v[i]) + eps);
    }
}

static stretch stretch_at(const lam_update *a, const lam_part *part, double clip, size_t from)
{
    return (stretch){.grad = (const float *)a->grad + from,
                     .p = (float *)a->master + from,
                     .m = a->m ? (float *)a->m + from : NULL,
                     .v = a->v ? (float *)a->v + from : NULL,
                     .clip = (float)clip,
                     .lr = (float)part->lr,
                     .decay = (float)(part->lr * part->decay),
                     .b1 = (float)a->beta1,
                     .b2 = (float)a->beta2,
                     .c1 = (float)(1.0 - a->beta1),
                     .c2 = (float)(1.0 - a->beta2),
                     .eps = (float)a->eps,
                     .fix1 = (float)(1.0 / part->fix1),
                     .fix2 = (float)(1.0 / part->fix2)};
}

static void step(const lam_update *a, const stretch *s)
{
    switch (a->kind) {
    case LAM_ADAM:
        adam(s);
        break;
    case LAM_SGD:
        sgd(s);
        break;
    case LAM_ADAGRAD:
        adagrad(s);
        break;
    }
}

void lam_cpu_update(lam_dev *dev, const lam_update *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const double norm = (double)*(const float *)a->norm;
    if (!isfinite(norm))
        return; /* a broken gradient must not reach the weights */
    const double clip = a->clip == 0.0 ? 1.0 : fmin(1.0, a->clip / (norm + 1e-6));
    const size_t total = count_all(a->parts, a->n_parts);

#pragma omp parallel for num_threads(lam_cpu_team(cpu, total)) schedule(static)
    for (size_t i = 0; i < RANGES; i++) {
        range r = range_at(a->parts, a->n_parts, total, i);
        const lam_part *part;
        size_t from, n;
        while ((part = next_stretch(&r, &from, &n)) != NULL) {
            stretch s = stretch_at(a, part, clip, from);
            s.n = n;
            step(a, &s);
            if (a->weight && a->weight != a->master)
                memcpy((float *)a->weight + from, s.p, n * sizeof(float));
        }
    }
}

void lam_cpu_tally(lam_dev *dev, const lam_tally *a)
{
    (void)dev;
    float *totals = a->totals;
    double sum = 0.0;
    int finite = 1;
    for (int i = 0; i < a->n; i++)
        sum += (double)((const float *)a->x)[i];
    for (int i = 0; i < a->n_norms; i++)
        finite &= isfinite(((const float *)a->norms)[i]) != 0;
    if (isfinite(sum)) {
        const double all = (double)totals[0] + (double)totals[1] + sum;
        totals[0] = (float)all;
        totals[1] = (float)(all - (double)totals[0]);
    } else {
        totals[2] += (float)a->n;
    }
    totals[3] += finite ? 0 : 1;
}
