/* cdf.c -- see cdf.h. */
#include "compress/cdf.h"

#include "compress/fixed.h"

/* log2(e) in the units of lam_fixed_exp2(): distances are natural logarithms. */
static const double SCALE = 0x1.71547652b82fep+0 * 0x1p+20;
static const double FAR = 32.0 * 0x1p+20; /* 2^-32: nothing but the 1 that everyone has */

static int first_largest(const double *logits, int n)
{
    int top = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[top])
            top = i;
    return top;
}

void lam_cdf_make(uint32_t *freq, const double *logits, int n, uint32_t total)
{
    const int top = first_largest(logits, n);
    const double largest = logits[top];
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        const double distance = largest - logits[i], scaled = distance * SCALE;
        freq[i] = scaled < FAR ? lam_fixed_exp2((uint32_t)scaled) : 0;
        sum += freq[i];
    }
    /* freq < 2^32 and share <= (total << 38) / 2^31 <= 2^31: the product fits. */
    const uint64_t share = ((uint64_t)(total - (uint32_t)n) << 38) / sum;
    uint32_t rest = total;
    for (int i = 0; i < n; i++) {
        freq[i] = 1 + (uint32_t)((freq[i] * share) >> 38);
        rest -= freq[i];
    }
    freq[top] += rest;
}

void lam_cdf_add_up(uint32_t *cum, const uint32_t *freq, int n)
{
    cum[0] = 0;
    for (int i = 0; i < n; i++)
        cum[i + 1] = cum[i] + freq[i];
}

int lam_cdf_find(const uint32_t *cum, int n, uint32_t value)
{
    int low = 0, high = n; /* cum[low] <= value < cum[high] */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (cum[middle] <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}
