/* fixed.h -- powers and logarithms of 2 in integers: the same bits on every machine.
 *
 * libm may differ by one unit in the last place from one machine to the next, and one such unit would destroy
 * the rest of an archive. */
#ifndef LAM_COMPRESS_FIXED_H
#define LAM_COMPRESS_FIXED_H

#include <stdint.h>

/* 2^-x in units of 2^-31; x is in units of 2^-20.  At most 2^31; 0 where x is 32 or more. */
uint32_t lam_fixed_exp2(uint32_t x);

/* log2(x), x > 0, in units of 2^-16, rounded down.  It never falls when x rises. */
int32_t lam_fixed_log2(uint32_t x);

#endif
