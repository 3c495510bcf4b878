/* rng.h -- counter-based random numbers: Philox4x32-10 (Salmon et al., 2011).
 *
 * A number is a pure function of (key, counter).  Nothing is stored, results do not depend on how
 * work is divided, and the same bits come out of every back-end: cpu and cuda have their own
 * vectorised copies, tested against this one. */
#ifndef LAM_CORE_RNG_H
#define LAM_CORE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct lam_u32x4 {
    uint32_t v[4];
} lam_u32x4;

/* Ten rounds on counter words {lo(counter_lo), hi(counter_lo), lo(counter_hi), hi(counter_hi)}
 * under key words {lo(key), hi(key)}. */
lam_u32x4 lam_philox(uint64_t key, uint64_t counter_lo, uint64_t counter_hi);

/* Dropout.  The element at `index` of dropout site `site` in step `step` is kept iff its 16 random
 * bits are >= lam_drop_threshold(p).  Eight elements share one Philox block:
 *     block = lam_philox(seed, index / 8, (uint64_t)step << 32 | site)
 *     bits  = block.v[(index % 8) / 2] >> 16 * (index % 2) & 0xffff
 * Kept values are scaled by lam_drop_scale(p) = 65536 / (65536 - threshold), the inverse of the
 * probability really used (p is rounded to 1/65536), so the mean is exact. */
uint32_t lam_drop_threshold(double p);
double lam_drop_scale(double p);
int lam_drop_keep(uint64_t seed, uint32_t step, uint32_t site, uint64_t index, uint32_t threshold);

/* A sequential stream over the same generator, for initialisation, shuffles and sampling.
 * Plain data: saving it saves the position. */
typedef struct lam_rng {
    uint64_t key;
    uint64_t stream;
    uint64_t next; /* 32-bit numbers drawn so far */
} lam_rng;

uint32_t lam_rng_u32(lam_rng *rng);
double lam_rng_uniform(lam_rng *rng);             /* [0, 1), 53 bits */
uint64_t lam_rng_below(lam_rng *rng, uint64_t n); /* [0, n), unbiased; n > 0 */
double lam_rng_normal(lam_rng *rng);              /* Box-Muller, one value a call */

#endif
