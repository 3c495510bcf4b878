/* philox.h -- dropout masks, sixty-four elements a call: the bits of core/rng.h, computed in vectors.
 *
 * One lane is one Philox4x32-10 block, that is eight elements of sixteen bits.  A 32-bit word sits in
 * the low half of a 64-bit lane, because there a widening product is one instruction; it reads low
 * halves only, so the high halves may hold rubbish and are never cleaned.  Lanes are numbered so that
 * interleaving the four words at the end leaves the elements in order.
 *
 * Same definition, own source: philox_test.c holds the two against each other. */
#ifndef LAM_OPS_CPU_PHILOX_H
#define LAM_OPS_CPU_PHILOX_H

#include "core/rng.h"
#include "ops/cpu/vecmath.h"
#include "ops/types.h"

enum { LAM_PHILOX_ROUNDS = 10 };

/* A lam_drop made ready: made once per operation, read by all threads. */
typedef struct lam_mask {
    uint32_t key0[LAM_PHILOX_ROUNDS], key1[LAM_PHILOX_ROUNDS];
    uint32_t site, step;
    uint32_t threshold; /* <= 65535 */
    float scale;        /* of the kept elements; 1 when off */
    int on;
} lam_mask;

LAM_INLINE lam_mask lam_mask_make(const lam_drop *drop)
{
    lam_mask m = {
        .site = drop->site, .step = lam_drop_step(drop), .scale = 1.0f, .on = drop->p != 0.0};
    for (uint32_t i = 0; i < LAM_PHILOX_ROUNDS; i++) {
        m.key0[i] = (uint32_t)drop->seed + i * 0x9E3779B9u;
        m.key1[i] = (uint32_t)(drop->seed >> 32) + i * 0xBB67AE85u;
    }
    if (m.on) {
        m.threshold = lam_drop_threshold(drop->p);
        m.scale = (float)lam_drop_scale(drop->p);
    }
    return m;
}

/* The Philox block that a matrix row begins with: index row * round_up(width, 8), eight a block. */
LAM_INLINE uint64_t lam_mask_block(size_t row, size_t width)
{
    return (uint64_t)row * ((width + 7) / 8);
}

/* A vector of 64-bit lanes, and the four things done with it. */

#if defined(__AVX512BW__)
typedef __m512i lam_lanes;
enum { LAM_LANES = 8 };
#define LAM_LANES_SET(x)       _mm512_set1_epi32((int)(x))
#define LAM_LANES_MUL(x, y)    _mm512_mul_epu32(x, y)
#define LAM_LANES_HIGH(x)      _mm512_srli_epi64(x, 32)
#define LAM_LANES_XOR(x, y, z) _mm512_ternarylogic_epi32(x, y, z, 0x96)
#elif defined(__AVX2__)
typedef __m256i lam_lanes;
enum { LAM_LANES = 4 };
#define LAM_LANES_SET(x)       _mm256_set1_epi32((int)(x))
#define LAM_LANES_MUL(x, y)    _mm256_mul_epu32(x, y)
#define LAM_LANES_HIGH(x)      _mm256_srli_epi64(x, 32)
#define LAM_LANES_XOR(x, y, z) _mm256_xor_si256(_mm256_xor_si256(x, y), z)
#else
typedef uint64_t lam_lanes;
enum { LAM_LANES = 1 };
#define LAM_LANES_SET(x)       ((uint64_t)(x))
#define LAM_LANES_MUL(x, y)    ((uint64_t)(uint32_t)(x) * (uint32_t)(y))
#define LAM_LANES_HIGH(x)      ((x) >> 32)
#define LAM_LANES_XOR(x, y, z) ((x) ^ (y) ^ (z))
#endif

typedef struct lam_philox_lanes {
    lam_lanes v[4]; /* results in the low halves */
} lam_philox_lanes;

/* The low halves of `counter` are words 0, the high halves words 1. */
LAM_INLINE lam_philox_lanes lam_philox_run(const lam_mask *m, lam_lanes counter)
{
    lam_lanes x0 = counter, x1 = LAM_LANES_HIGH(counter);
    lam_lanes x2 = LAM_LANES_SET(m->site), x3 = LAM_LANES_SET(m->step);
    for (int i = 0; i < LAM_PHILOX_ROUNDS; i++) {
        const lam_lanes p0 = LAM_LANES_MUL(x0, LAM_LANES_SET(0xD2511F53u));
        const lam_lanes p1 = LAM_LANES_MUL(x2, LAM_LANES_SET(0xCD9E8D57u));
        x0 = LAM_LANES_XOR(LAM_LANES_HIGH(p1), x1, LAM_LANES_SET(m->key0[i]));
        x1 = p1;
        x2 = LAM_LANES_XOR(LAM_LANES_HIGH(p0), x3, LAM_LANES_SET(m->key1[i]));
        x3 = p0;
    }
    return (lam_philox_lanes){{x0, x1, x2, x3}};
}

/* Bit i says whether element 8 * block + i is kept, 0 <= i < 64. */
LAM_INLINE uint64_t lam_mask_bits(const lam_mask *m, uint64_t block)
{
#if defined(__AVX512BW__)
    /* unpacklo takes the even lanes, unpackhi the odd ones: blocks 0-3 sit in the former. */
    const __m512i counter = _mm512_add_epi64(_mm512_set1_epi64((long long)block),
                                             _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7));
    const lam_philox_lanes r = lam_philox_run(m, counter);
    const __m512i lo = _mm512_mask_shuffle_epi32(r.v[0], 0xAAAA, r.v[1], 0xA0);
    const __m512i hi = _mm512_mask_shuffle_epi32(r.v[2], 0xAAAA, r.v[3], 0xA0);
    const __m512i t = _mm512_set1_epi16((short)m->threshold);
    const uint64_t first = _mm512_cmpge_epu16_mask(_mm512_unpacklo_epi64(lo, hi), t);
    const uint64_t second = _mm512_cmpge_epu16_mask(_mm512_unpackhi_epi64(lo, hi), t);
    return first | second << 32;
#elif defined(__AVX2__)
    const __m256i t = _mm256_set1_epi16((short)m->threshold);
    uint64_t bits = 0;
    for (int part = 0; part < 2; part++) {
        const __m256i counter = _mm256_add_epi64(_mm256_set1_epi64x((long long)block + 4 * part),
                                                 _mm256_setr_epi64x(0, 2, 1, 3));
        const lam_philox_lanes r = lam_philox_run(m, counter);
        const __m256i lo = _mm256_blend_epi32(r.v[0], _mm256_slli_epi64(r.v[1], 32), 0xAA);
        const __m256i hi = _mm256_blend_epi32(r.v[2], _mm256_slli_epi64(r.v[3], 32), 0xAA);
        const __m256i a = _mm256_unpacklo_epi64(lo, hi), b = _mm256_unpackhi_epi64(lo, hi);
        const __m256i keep = _mm256_packs_epi16(_mm256_cmpeq_epi16(_mm256_max_epu16(a, t), a),
                                                _mm256_cmpeq_epi16(_mm256_max_epu16(b, t), b));
        /* packs works in 128-bit halves: bytes of a0 b0 a1 b1, wanted a0 a1 b0 b1 */
        const __m256i order = _mm256_permute4x64_epi64(keep, 0xD8);
        bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(order) << 32 * part;
    }
    return bits;
#else
    uint64_t bits = 0;
    for (int b = 0; b < 8; b++) {
        const lam_philox_lanes r = lam_philox_run(m, block + (uint64_t)b);
        for (int i = 0; i < 8; i++)
            bits |= (uint64_t)(((uint32_t)r.v[i / 2] >> 16 * (i % 2) & 0xffff) >= m->threshold)
                    << (8 * b + i);
    }
    return bits;
#endif
}

/* Walking along a row by sixteens: the bits of column `col` on, given those of column col - 16.
 * Everything is kept when the mask is off. */
LAM_INLINE uint64_t lam_mask_next(const lam_mask *m, uint64_t bits, uint64_t row_block, size_t col)
{
    if (!m->on)
        return ~UINT64_C(0);
    return col % 64 == 0 ? lam_mask_bits(m, row_block + col / 8) : bits >> LAM_VEC;
}

/* x where the bit of the lane is set, else 0; reads the low sixteen bits. */
LAM_INLINE lam_f16v lam_keep16(lam_f16v x, uint64_t bits)
{
#ifdef __AVX512F__
    return (lam_f16v){{(lam_reg)_mm512_maskz_mov_ps((__mmask16)bits, (__m512)x.r[0])}};
#else
    static const int32_t lane[LAM_VEC] = {1,       1 << 1,  1 << 2,  1 << 3, 1 << 4,  1 << 5,
                                          1 << 6,  1 << 7,  1 << 8,  1 << 9, 1 << 10, 1 << 11,
                                          1 << 12, 1 << 13, 1 << 14, 1 << 15};
    const lam_ireg all = (lam_ireg){0} + (int32_t)(bits & 0xffff);
    LAM_EACH(i)
    {
        lam_ireg bit;
        memcpy(&bit, lane + i * LAM_REG, sizeof bit);
        x.r[i] = (lam_reg)((lam_ireg)x.r[i] & ((all & bit) == bit));
    }
    return x;
#endif
}

#endif
