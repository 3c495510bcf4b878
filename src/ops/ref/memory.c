/* ref/memory.c -- the specification of memory interpolation, Eq. 10-11.
 *
 * alpha comes from softmax denominators s, and exp() of a logit overflows; so, as in section 4.3
 * of the paper, log s is carried and the larger is subtracted before exponentiating.  eps is
 * therefore relative to max(s->, s<-), as in the authors' code, not absolute as Eq. 11 prints.
 * Nothing flows back to c_old and lse_old: the paper stops gradients there. */
#include "ops/ref/ref.h"

#include <math.h>

typedef struct mix {
    double alpha, rest; /* rest is 1 - alpha, without the cancellation */
    double slope;       /* d(alpha) / d(log s<-) */
    double lse;         /* log(s-> + s<-), without eps */
} mix;

/* alpha = s-> / (s-> + s<- + eps), Eq. 11, all divided by the larger s.  Where s<- is the larger,
 * growing it shrinks s-> against eps too, which is the `moved` below. */
static mix mix_of(double lse_old, double lse_new, double eps)
{
    const double top = fmax(lse_old, lse_new);
    if (top == -INFINITY)
        return (mix){0.0, 1.0, 0.0, -INFINITY}; /* a slot that never attended to anything */

    const double s_old = exp(lse_old - top), s_new = exp(lse_new - top);
    const double sum = s_old + s_new + eps;
    const double moved = s_new + (lse_new >= lse_old ? eps : 0.0);
    return (mix){.alpha = s_old / sum,
                 .rest = (s_new + eps) / sum,
                 .slope = -s_old / sum * (moved / sum),
                 .lse = top + log(s_old + s_new)};
}

/* Head h of memory slot r of stream b: K columns of a context, or one statistic. */
static double *context_at(const lam_interp *a, lam_view view, size_t b, size_t r, size_t h)
{
    return lam_ref_row(view, (size_t)a->H * (size_t)a->K, b, r) + h * (size_t)a->K;
}

static double *stat_at(const lam_interp *a, lam_view view, size_t b, size_t r, size_t h)
{
    return lam_ref_row(view, (size_t)a->H, b, r) + h;
}

/* c_out = alpha c_old + (1 - alpha) c_new, Eq. 10. */
static void forward_head(const lam_interp *a, size_t b, size_t r, size_t h)
{
    const double *c_old = context_at(a, a->c_old, b, r, h),
                 *c_new = context_at(a, a->c_new, b, r, h);
    double *c_out = context_at(a, a->c_out, b, r, h);
    const mix w =
        mix_of(*stat_at(a, a->lse_old, b, r, h), *stat_at(a, a->lse_new, b, r, h), a->eps);

    for (int c = 0; c < a->K; c++)
        c_out[c] = w.alpha * c_old[c] + w.rest * c_new[c];
    *stat_at(a, a->alpha, b, r, h) = w.alpha;
    *stat_at(a, a->lse_out, b, r, h) = w.lse;
}

/* fwd was c_out = alpha c_old + (1 - alpha) c_new, with alpha a function of log s<-; so
 *   dc_new   = (1 - alpha) dc_out
 *   dlse_new = alpha' <dc_out, c_old - c_new>. */
static void backward_head(const lam_interp *a, size_t b, size_t r, size_t h)
{
    const double *c_old = context_at(a, a->c_old, b, r, h),
                 *c_new = context_at(a, a->c_new, b, r, h);
    const double *dc_out = context_at(a, a->dc_out, b, r, h);
    double *dc_new = context_at(a, a->dc_new, b, r, h);
    const mix w =
        mix_of(*stat_at(a, a->lse_old, b, r, h), *stat_at(a, a->lse_new, b, r, h), a->eps);

    double dalpha = 0.0;
    for (int c = 0; c < a->K; c++) {
        dalpha += dc_out[c] * (c_old[c] - c_new[c]);
        dc_new[c] = w.rest * dc_out[c];
    }
    *stat_at(a, a->dlse_new, b, r, h) = w.slope * dalpha;
}

void lam_ref_interp_fwd(lam_dev *dev, const lam_interp *a)
{
    (void)dev;
    for (size_t b = 0; b < (size_t)a->B; b++)
        for (size_t r = 0; r < (size_t)a->rows; r++)
            for (size_t h = 0; h < (size_t)a->H; h++)
                forward_head(a, b, r, h);
}

void lam_ref_interp_bwd(lam_dev *dev, const lam_interp *a)
{
    (void)dev;
    for (size_t b = 0; b < (size_t)a->B; b++)
        for (size_t r = 0; r < (size_t)a->rows; r++)
            for (size_t h = 0; h < (size_t)a->H; h++)
                backward_head(a, b, r, h);
}
