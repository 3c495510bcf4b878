/* rng.c -- Philox4x32-10 and the distributions made from it.
 *
 * Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.  The
 * constants are theirs; rng_test.c holds their known answers. */
#include "core/rng.h"

#include <assert.h>
#include <math.h>

enum { ROUNDS = 10 };

lam_u32x4 lam_philox(uint64_t key, uint64_t counter_lo, uint64_t counter_hi)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t x0 = (uint32_t)counter_lo, x1 = (uint32_t)(counter_lo >> 32);
    uint32_t x2 = (uint32_t)counter_hi, x3 = (uint32_t)(counter_hi >> 32);

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * x0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
        k0 += 0x9E3779B9u; /* the golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    return (lam_u32x4){{x0, x1, x2, x3}};
}

uint32_t lam_drop_threshold(double p)
{
    assert(p >= 0.0 && p < 1.0);
    const double scaled = floor(p * 65536.0 + 0.5);
    return scaled < 65535.0 ? (uint32_t)scaled : 65535u; /* something is always kept */
}

double lam_drop_scale(double p)
{
    return 65536.0 / (65536.0 - (double)lam_drop_threshold(p));
}

int lam_drop_keep(uint64_t seed, uint32_t step, uint32_t site, uint64_t index, uint32_t threshold)
{
    const lam_u32x4 block = lam_philox(seed, index / 8, (uint64_t)step << 32 | site);
    const uint32_t bits = block.v[index % 8 / 2] >> 16 * (index % 2) & 0xffff;
    return bits >= threshold;
}

/* The next n numbers of the stream; number i is word i % 4 of block i / 4. */
static void draw(lam_rng *rng, uint32_t *out, int n)
{
    lam_u32x4 block = {{0, 0, 0, 0}};
    for (int i = 0; i < n; i++) {
        const uint64_t at = rng->next++;
        if (i == 0 || at % 4 == 0)
            block = lam_philox(rng->key, at / 4, rng->stream);
        out[i] = block.v[at % 4];
    }
}

static uint64_t join(const uint32_t *pair)
{
    return (uint64_t)pair[1] << 32 | pair[0];
}

static double unit(const uint32_t *pair)
{
    return (double)(join(pair) >> 11) * 0x1p-53;
}

uint32_t lam_rng_u32(lam_rng *rng)
{
    uint32_t word;
    draw(rng, &word, 1);
    return word;
}

double lam_rng_uniform(lam_rng *rng)
{
    uint32_t words[2];
    draw(rng, words, 2);
    return unit(words);
}

uint64_t lam_rng_below(lam_rng *rng, uint64_t n)
{
    assert(n > 0);
    /* 2^64 mod n values at the bottom would make some remainders likelier: draw again. */
    const uint64_t reject = (0 - n) % n;
    uint64_t x;
    do {
        uint32_t words[2];
        draw(rng, words, 2);
        x = join(words);
    } while (x < reject);
    return x % n;
}

double lam_rng_normal(lam_rng *rng)
{
    uint32_t words[4];
    draw(rng, words, 4);
    const double radius = sqrt(-2.0 * log(1.0 - unit(words))); /* 1 - u is never 0 */
    return radius * cos(6.283185307179586 * unit(words + 2));
}
