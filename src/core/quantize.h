/* quantize.h -- a row of numbers as int8 with one scale: x is approximately scale * q, |q| <= 127.
 *
 * The scale is the largest magnitude divided by 127, as a float, so quantising, widening and quantising
 * again gives the same bits. */
#ifndef LAM_CORE_QUANTIZE_H
#define LAM_CORE_QUANTIZE_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0 if all n numbers are finite; otherwise q and *scale are unspecified.  Zeros, and rows too small
 * for a float, have scale 0. */
int lam_quantize(int8_t *q, float *scale, const double *x, size_t n);
/* x = scale * q, exactly. */
void lam_dequantize(double *x, const int8_t *q, float scale, size_t n);

#endif
