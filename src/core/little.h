/* little.h -- numbers in files: `n` bytes, at most 8, the lowest first. */
#ifndef LAM_CORE_LITTLE_H
#define LAM_CORE_LITTLE_H

#include <stdint.h>

static inline uint64_t lam_little(const unsigned char *bytes, int n)
{
    uint64_t value = 0;
    while (n-- > 0)
        value = value << 8 | bytes[n];
    return value;
}

/* Returns where the bytes end. */
static inline unsigned char *lam_put_little(unsigned char *bytes, uint64_t value, int n)
{
    for (; n > 0; n--, value >>= 8)
        *bytes++ = (unsigned char)value;
    return bytes;
}

#endif
