/* exact.c -- see exact.h. */
#include "core/exact.h"

double lam_exact_exp(double x)
{
    return lam_exact_exp_inline(x);
}

double lam_exact_log(double x)
{
    return lam_exact_log_inline(x);
}

/* Taylor's series of sin (odd = 1) or cos (odd = 0) for |r| <= pi / 4. */
static double series(double r, int odd)
{
    const double s = r * r;
    double p = 1.0;
    for (int i = 18 + odd; i >= 2; i -= 2) {
        const double below = (double)i * (double)(i - 1);
        p = 1.0 - p * s / below;
    }
    return odd ? p * r : p;
}

lam_exact_angle lam_exact_position(double position, int t, int D)
{
    const double log_10000 = 9.2103403719761836;
    const double step = lam_exact_exp(-2.0 * (double)t / (double)D * log_10000);
    const double angle = position * step;
    const int64_t n = lam_exact_round64(angle * 0.63661977236758138); /* quarter turns */
    const double k = (double)n;
    /* pi / 2 in three parts of 33 bits, so that k times each is exact. */
    const double r = ((angle - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11) -
                     k * 2.02226624879595063154e-21;
    const double sine = series(r, 1), cosine = series(r, 0);
    switch (n & 3) {
    case 0:
        return (lam_exact_angle){sine, cosine};
    case 1:
        return (lam_exact_angle){cosine, -sine};
    case 2:
        return (lam_exact_angle){-sine, -cosine};
    default:
        return (lam_exact_angle){-cosine, sine};
    }
}

void lam_exact_log_softmax(double *x, size_t n)
{
    double top = x[0], sum = 0.0;
    for (size_t i = 1; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (size_t i = 0; i < n; i++)
        sum += lam_exact_exp(x[i] - top);
    const double lse = top + lam_exact_log(sum);
    for (size_t i = 0; i < n; i++)
        x[i] -= lse;
}
