/* encoding.c -- see encoding.h.  The double sum over k != l is (sum sin)(sum cos) less the terms k = l. */
#include "measure/encoding.h"

#include <assert.h>
#include <math.h>

typedef struct sums {
    double sine, cosine, both; /* sum sin, sum cos, sum sin cos */
} sums;

static double frequency(int d, int k)
{
    return pow(10000.0, -2.0 * k / d);
}

static sums sums_at(int d, double t)
{
    sums s = {0};
    assert(d >= 2 && d % 2 == 0);
    for (int k = 1; k <= d / 2; k++) {
        const double x = frequency(d, k) * t;
        s.sine += sin(x);
        s.cosine += cos(x);
        s.both += sin(x) * cos(x);
    }
    return s;
}

double lam_encoding_g(int d, double t)
{
    const sums s = sums_at(d, t);
    return s.sine * s.cosine - s.both;
}

/* d/dt of sin(w_k t) cos(w_l t) at 0 is w_k, for each of d/2 - 1 l. */
double lam_encoding_slope(int d)
{
    double sum = 0.0;
    for (int k = 1; k <= d / 2; k++)
        sum += frequency(d, k);
    return (d / 2.0 - 1.0) * sum;
}

double lam_encoding_gamma(int d)
{
    return d / (2.0 * (pow(1e8, 1.0 / d) - 1.0));
}

double lam_encoding_gamma_large(int d)
{
    return (double)d * d / (2.0 * log(1e8));
}

double lam_encoding_variance(int d, double t, double rho)
{
    return 1.0 + 4.0 * rho * lam_encoding_g(d, t) / d;
}

double lam_encoding_variance_all(int d, double t, double rho)
{
    const sums s = sums_at(d, t);
    const double both = s.sine + s.cosine;
    return 1.0 - rho + 2.0 * rho * both * both / d;
}
