/* narrow.h -- bf16 and int8 numbers, sixteen at a time, to and from floats.
 *
 * A bf16 number is the upper half of a float: widening is a shift, narrowing rounds to nearest even.
 * An int8 number widens to a float without its row's scale; whoever reads it multiplies the sum. */
#ifndef LAM_OPS_CPU_NARROW_H
#define LAM_OPS_CPU_NARROW_H

#include "ops/cpu/vecmath.h"
#include "ops/types.h"

/* A register of them, from p on. */
LAM_INLINE lam_reg lam_reg_load_half(const uint16_t *p)
{
    typedef uint16_t halves __attribute__((vector_size(LAM_REG * 2)));
    halves x;
    memcpy(&x, p, sizeof x);
#if defined(__AVX512F__)
    return (lam_reg)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)x), 16);
#elif defined(__AVX2__)
    return (lam_reg)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)x), 16);
#else
    return (lam_reg)(__builtin_convertvector(x, lam_ureg) << 16);
#endif
}

LAM_INLINE lam_reg lam_reg_load_byte(const int8_t *p)
{
#if defined(__AVX512F__)
    __m128i x;
    memcpy(&x, p, sizeof x);
    return (lam_reg)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x));
#elif defined(__AVX2__)
    return (lam_reg)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
#else
    typedef int8_t bytes __attribute__((vector_size(LAM_REG)));
    bytes x;
    memcpy(&x, p, sizeof x);
    return __builtin_convertvector(__builtin_convertvector(x, lam_ireg), lam_reg);
#endif
}

/* A register of elements from element `at` of a buffer of ACT, HALF or BYTE on. */
LAM_INLINE lam_reg lam_reg_load_as(const void *p, size_t at, lam_class type)
{
    switch (type) {
    case LAM_HALF:
        return lam_reg_load_half((const uint16_t *)p + at);
    case LAM_BYTE:
        return lam_reg_load_byte((const int8_t *)p + at);
    default:
        return lam_reg_load((const float *)p + at);
    }
}

/* Sixteen of them. */
LAM_INLINE lam_f16v lam_load_as(const void *p, size_t at, lam_class type)
{
    lam_f16v x;
    LAM_EACH(i)
    x.r[i] = lam_reg_load_as(p, at + (size_t)i * LAM_REG, type);
    return x;
}

/* The first n of them, 0 <= n <= 16; zeros behind. */
LAM_INLINE lam_f16v lam_load_as_n(const void *p, size_t at, lam_class type, size_t n)
{
    uint16_t half[LAM_VEC] = {0};
    int8_t byte[LAM_VEC] = {0};
    if (__builtin_constant_p(n) && n == LAM_VEC)
        return lam_load_as(p, at, type);
    switch (type) {
    case LAM_HALF:
        memcpy(half, (const uint16_t *)p + at, n * sizeof *half);
        return lam_load_as(half, 0, type);
    case LAM_BYTE:
        memcpy(byte, (const int8_t *)p + at, n);
        return lam_load_as(byte, 0, type);
    default:
        return lam_load_n((const float *)p + at, n);
    }
}

/* The nearest bf16 of x, ties to even; NaN stays NaN. */
LAM_INLINE uint16_t lam_to_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* to[i] = the nearest bf16 of from[i]. */
LAM_INLINE void lam_narrow_row(uint16_t *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = lam_to_half(from[i]);
}

/* to[i] = scale * element i of `from`, n of ACT, HALF or BYTE. */
LAM_INLINE void lam_widen_row(float *to, const void *from, lam_class type, float scale, size_t n)
{
    size_t i = 0;
    for (; i + LAM_VEC <= n; i += LAM_VEC)
        lam_store(to + i, lam_mul(lam_load_as(from, i, type), lam_splat(scale)));
    if (i < n)
        lam_store_n(to + i, lam_mul(lam_load_as_n(from, i, type, n - i), lam_splat(scale)), n - i);
}

#endif
