/* quantize.c -- see quantize.h. */
#include "core/quantize.h"

#include <math.h>

int lam_quantize(int8_t *q, float *scale, const double *x, size_t n)
{
    double most = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return 1;
        most = fmax(most, fabs(x[i]));
    }
    *scale = (float)(most / 127.0);
    if (!isfinite(*scale))
        return 1;
    for (size_t i = 0; i < n; i++) {
        const double steps = *scale > 0.0f ? rint(x[i] / (double)*scale) : 0.0;
        q[i] = (int8_t)fmax(-127.0, fmin(127.0, steps)); /* a subnormal scale is coarse */
    }
    return 0;
}

void lam_dequantize(double *x, const int8_t *q, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (double)scale * q[i];
}
