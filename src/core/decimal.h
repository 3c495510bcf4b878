/* decimal.h -- a number as people write it: 12, -0.5, 1e-3.
 *
 * strtod() also takes blanks in front, 0x1p3, inf and nan, makes infinity of 1e999 and zero of 1e-999: where a
 * person wrote one of these, something else was meant. */
#ifndef LAM_CORE_DECIMAL_H
#define LAM_CORE_DECIMAL_H

#include <stddef.h>

/* The number that `text` begins with, and how many bytes it has; 0: there is none, or no double is near it.  -0 is 0. */
size_t lam_decimal(double *out, const char *text);

#endif
