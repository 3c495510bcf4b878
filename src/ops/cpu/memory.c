/* cpu/memory.c -- memory interpolation, Eq. 10-11, in float.
 *
 * ref/memory.c says what is computed and where gradients stop.  The larger of the two sums is 1 after
 * dividing by it, so one exponential is enough, and log(s-> + s<-) is a log1p. */
#include "ops/cpu/cpu.h"
#include "ops/cpu/vecmath.h"

typedef struct mix {
    float alpha, rest; /* rest is 1 - alpha, without the cancellation */
    float slope;       /* d(alpha) / d(log s<-) */
    float lse;         /* log(s-> + s<-), without eps */
} mix;

static mix mix_of(float lse_old, float lse_new, float eps)
{
    const float top = lse_old > lse_new ? lse_old : lse_new;
    if (top == -INFINITY)
        return (mix){0.0f, 1.0f, 0.0f, -INFINITY}; /* a slot that never attended to anything */

    const float small = expf(lse_old > lse_new ? lse_new - lse_old : lse_old - lse_new);
    const float s_old = lse_old > lse_new ? 1.0f : small, s_new = lse_old > lse_new ? small : 1.0f;
    const float inverse = 1.0f / (1.0f + small + eps), alpha = s_old * inverse;
    const float moved = s_new + (lse_new >= lse_old ? eps : 0.0f); /* then the larger moves too */
    return (mix){alpha, (s_new + eps) * inverse, -alpha * moved * inverse, top + log1pf(small)};
}

/* One head of one slot, and where it lies. */
typedef struct head {
    size_t b, r, h, K;
} head;

static float *context_at(const lam_interp *a, lam_view view, const head *x)
{
    return lam_cpu_row(view, (size_t)a->H * x->K, x->b, x->r) + x->h * x->K;
}

static float *stat_at(const lam_interp *a, lam_view view, const head *x)
{
    return lam_cpu_row(view, (size_t)a->H, x->b, x->r) + x->h;
}

static mix mix_at(const lam_interp *a, const head *x)
{
    return mix_of(*stat_at(a, a->lse_old, x), *stat_at(a, a->lse_new, x), (float)a->eps);
}

/* c_out = alpha c_old + (1 - alpha) c_new, Eq. 10. */
static void forward_head(const lam_interp *a, const head *x)
{
    const float *c_old = context_at(a, a->c_old, x), *c_new = context_at(a, a->c_new, x);
    float *c_out = context_at(a, a->c_out, x);
    const mix w = mix_at(a, x);
#pragma omp simd
    for (size_t c = 0; c < x->K; c++)
        c_out[c] = w.alpha * c_old[c] + w.rest * c_new[c];
    *stat_at(a, a->alpha, x) = w.alpha;
    *stat_at(a, a->lse_out, x) = w.lse;
}

/* fwd was c_out = alpha c_old + (1 - alpha) c_new, with alpha a function of log s<-; so
 *   dc_new = (1 - alpha) dc_out,   dlse_new = alpha' <dc_out, c_old - c_new>. */
static void backward_head(const lam_interp *a, const head *x)
{
    const float *c_old = context_at(a, a->c_old, x), *c_new = context_at(a, a->c_new, x);
    const float *dc_out = context_at(a, a->dc_out, x);
    float *dc_new = context_at(a, a->dc_new, x), dalpha = 0.0f;
    const mix w = mix_at(a, x);
#pragma omp simd reduction(+ : dalpha)
    for (size_t c = 0; c < x->K; c++) {
        dalpha += dc_out[c] * (c_old[c] - c_new[c]);
        dc_new[c] = w.rest * dc_out[c];
    }
    *stat_at(a, a->dlse_new, x) = w.slope * dalpha;
}

static void each_head(lam_dev *dev, const lam_interp *a,
                      void (*fn)(const lam_interp *, const head *))
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows, H = (size_t)a->H, K = (size_t)a->K;
    const size_t all = rows * (size_t)a->B;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, all *H *K)) schedule(static)
    for (size_t i = 0; i < all; i++)
        for (size_t h = 0; h < H; h++)
            fn(a, &(head){.b = i / rows, .r = i % rows, .h = h, .K = K});
}

void lam_cpu_interp_fwd(lam_dev *dev, const lam_interp *a)
{
    each_head(dev, a, forward_head);
}

void lam_cpu_interp_bwd(lam_dev *dev, const lam_interp *a)
{
    each_head(dev, a, backward_head);
}
