/* size.h -- overflow-checked multiplication and addition of sizes that come from files. */
#ifndef LAM_CORE_SIZE_H
#define LAM_CORE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *out = a * b + c.  False, and *out is SIZE_MAX, where that does not fit. */
static inline bool lam_size_muladd(size_t *out, size_t a, size_t b, size_t c)
{
    const bool fits = b == 0 || a <= (SIZE_MAX - c) / b;
    *out = fits ? a * b + c : SIZE_MAX;
    return fits;
}

#endif
