/* decimal.h -- reads a number as people write it: 12, -0.5, 1e-3.
 *
 * strtod() also accepts leading blanks, 0x1p3, inf and nan, and turns 1e999 into infinity and 1e-999 into
 * zero. In an option or a file of ours each of these is a mistake. */
#ifndef LAM_CORE_DECIMAL_H
#define LAM_CORE_DECIMAL_H

#include <stddef.h>

/* The number that `text` begins with, and how many bytes it has; 0: there is none, or no double is near it.  -0 is 0. */
size_t lam_decimal(double *out, const char *text);

#endif
