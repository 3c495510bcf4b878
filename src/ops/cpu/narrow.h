/* narrow.h -- bf16 and int8 numbers, sixteen at a time, to and from floats.
 *
 * A bf16 number is the upper half of a float: widening is a shift, narrowing rounds to nearest even.
 * An int8 number widens to a float without its row's scale; whoever reads it multiplies the sum.
 * gcc takes wide vectors apart to convert them, hence the spellings of the machine's own. */
#ifndef LAM_OPS_CPU_NARROW_H
#define LAM_OPS_CPU_NARROW_H

#include "ops/cpu/vecmath.h"
#include "ops/types.h"

typedef uint16_t lam_half16v __attribute__((vector_size(32)));
typedef int8_t lam_byte16v __attribute__((vector_size(16)));

LAM_INLINE lam_f16v lam_widen_half(lam_half16v x)
{
#if defined(__AVX512F__)
    return (lam_f16v)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)x), 16);
#else
    return (lam_f16v)(__builtin_convertvector(x, lam_u16v) << 16);
#endif
}

LAM_INLINE lam_f16v lam_widen_byte(lam_byte16v x)
{
#if defined(__AVX512F__)
    return (lam_f16v)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)x));
#elif defined(__AVX2__)
    const __m256i low = _mm256_cvtepi8_epi32((__m128i)x);
    const __m256i high = _mm256_cvtepi8_epi32(_mm_unpackhi_epi64((__m128i)x, (__m128i)x));
    const __m256 both[2] = {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)};
    lam_f16v y;
    memcpy(&y, both, sizeof y);
    return y;
#else
    return __builtin_convertvector(__builtin_convertvector(x, lam_i16v), lam_f16v);
#endif
}

/* Sixteen elements from element `at` of a buffer of ACT, HALF or BYTE on. */
LAM_INLINE lam_f16v lam_load_as(const void *p, size_t at, lam_class type)
{
    lam_half16v half;
    lam_byte16v byte;
    switch (type) {
    case LAM_HALF:
        memcpy(&half, (const uint16_t *)p + at, sizeof half);
        return lam_widen_half(half);
    case LAM_BYTE:
        memcpy(&byte, (const int8_t *)p + at, sizeof byte);
        return lam_widen_byte(byte);
    default:
        return lam_load((const float *)p + at);
    }
}

/* The first n of them, 0 <= n <= 16; zeros behind. */
LAM_INLINE lam_f16v lam_load_as_n(const void *p, size_t at, lam_class type, size_t n)
{
    lam_half16v half = {0};
    lam_byte16v byte = {0};
    switch (type) {
    case LAM_HALF:
        memcpy(&half, (const uint16_t *)p + at, n * sizeof(uint16_t));
        return lam_widen_half(half);
    case LAM_BYTE:
        memcpy(&byte, (const int8_t *)p + at, n);
        return lam_widen_byte(byte);
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
        lam_store(to + i, lam_load_as(from, i, type) * lam_splat(scale));
    if (i < n)
        lam_store_n(to + i, lam_load_as_n(from, i, type, n - i) * lam_splat(scale), n - i);
}

#endif
