/* cdf.h -- from a model's logits to integer frequencies that add up to 2^24.
 *
 * A logit enters as a double.  Its distance to the largest one is a single IEEE subtraction, brought to fixed point
 * by a single IEEE multiplication that is rounded down; everything after that is integers (fixed.h).  So equal
 * logits give equal frequencies on every machine.  Every symbol has a frequency of at least 1: anything can be coded. */
#ifndef LAM_COMPRESS_CDF_H
#define LAM_COMPRESS_CDF_H

#include "compress/range_coder.h"

/* Most symbols of an alphabet: each takes at least one part in 2^24, and there must be something left to divide. */
enum { LAM_CDF_MOST = 1 << 20 };

/* freq [n] of logits [n], 1 <= n <= LAM_CDF_MOST, finite: they add up to `total` (above n, at most LAM_TOTAL).
 * What rounding leaves goes to the first of the most likely symbols. */
void lam_cdf_make(uint32_t *freq, const double *logits, int n, uint32_t total);

/* cum[i] = freq[0] + .. + freq[i - 1], for i = 0 .. n. */
void lam_cdf_add_up(uint32_t *cum, const uint32_t *freq, int n);

/* The symbol i with cum[i] <= value < cum[i + 1]. */
int lam_cdf_find(const uint32_t *cum, int n, uint32_t value);

#endif
