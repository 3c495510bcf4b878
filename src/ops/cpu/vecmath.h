/* vecmath.h -- sixteen floats at a time, and the one transcendental function the kernels need.
 *
 * GNU vectors, which gcc and clang lower to one AVX-512 register, two AVX2 ones or four of SSE or
 * NEON: no kernel is written twice.  Only what the vector syntax cannot say (fused multiply-add, max,
 * select, masked access) has an AVX-512 spelling beside the portable one.  Comparisons go through
 * lam_select_le and lam_max: written as a <= b they are slow wherever there is no AVX-512.
 *
 * lam_exp16 is a polynomial of degree 6 after the reduction x = n log 2 + r, |r| <= log(2) / 2, with
 * an error below 1 ulp (1.2 without FMA).  Results below FLT_MIN are 0: in a softmax they are lost
 * anyway, and subnormal numbers are slow.  exp(-inf) = 0, exp(large) = inf, exp(nan) = nan. */
#ifndef LAM_OPS_CPU_VECMATH_H
#define LAM_OPS_CPU_VECMATH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Without AVX-512 compilers warn that passing such vectors has no stable ABI; here all is inlined. */
#pragma GCC diagnostic ignored "-Wpsabi"

enum { LAM_VEC = 16 };

typedef float lam_f16v __attribute__((vector_size(64)));
typedef int32_t lam_i16v __attribute__((vector_size(64))); /* comparisons give -1 (true) or 0 */
typedef uint32_t lam_u16v __attribute__((vector_size(64)));

#ifdef __AVX__
enum { LAM_PIECE = 32 }; /* bytes of the widest register, where that is less than a vector */
#else
enum { LAM_PIECE = 16 };
#endif

#define LAM_ROTATE_(n)                                                                             \
    (0 + n) % 16, (1 + n) % 16, (2 + n) % 16, (3 + n) % 16, (4 + n) % 16, (5 + n) % 16,            \
        (6 + n) % 16, (7 + n) % 16, (8 + n) % 16, (9 + n) % 16, (10 + n) % 16, (11 + n) % 16,      \
        (12 + n) % 16, (13 + n) % 16, (14 + n) % 16, (15 + n) % 16
#ifdef __clang__
#define LAM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LAM_UNROLL _Pragma("GCC unroll 16")
#endif
#define LAM_INLINE static inline __attribute__((always_inline, unused))

LAM_INLINE lam_f16v lam_splat(float x)
{
    return (lam_f16v){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

LAM_INLINE lam_i16v lam_splat_i(int32_t x)
{
    return (lam_i16v){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

/* Any alignment. */
LAM_INLINE lam_f16v lam_load(const float *p)
{
    lam_f16v x;
    memcpy(&x, p, sizeof x);
    return x;
}

LAM_INLINE void lam_store(float *p, lam_f16v x)
{
    memcpy(p, &x, sizeof x);
}

/* The first n of sixteen, 0 <= n <= 16; other lanes read as zero and are not written. */
LAM_INLINE lam_f16v lam_load_n(const float *p, size_t n)
{
    if (__builtin_constant_p(n) && n == LAM_VEC)
        return lam_load(p);
#ifdef __AVX512F__
    return (lam_f16v)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
#else
    lam_f16v x = lam_splat(0.0f);
    memcpy(&x, p, n * sizeof *p);
    return x;
#endif
}

LAM_INLINE void lam_store_n(float *p, lam_f16v x, size_t n)
{
    if (__builtin_constant_p(n) && n == LAM_VEC) {
        lam_store(p, x);
        return;
    }
#ifdef __AVX512F__
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)x);
#else
    memcpy(p, &x, n * sizeof *p);
#endif
}

/* a * b + c, rounded once where the machine can: ops/cpu is compiled with contraction on. */
LAM_INLINE lam_f16v lam_fma(lam_f16v a, lam_f16v b, lam_f16v c)
{
#ifdef __AVX512F__
    return (lam_f16v)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    return a * b + c;
#endif
}

/* Lane by lane: mask ? a : b, where mask lanes are -1 or 0. */
LAM_INLINE lam_f16v lam_select(lam_i16v mask, lam_f16v a, lam_f16v b)
{
#ifdef __AVX512F__
    const __mmask16 m = _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask);
    return (lam_f16v)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a);
#else
    return (lam_f16v)((mask & (lam_i16v)a) | (~mask & (lam_i16v)b));
#endif
}

#ifndef __AVX512F__
/* a <= b in pieces of the machine's size: gcc would compare a wider vector float by float. */
LAM_INLINE lam_i16v lam_le_pieces(lam_f16v a, lam_f16v b)
{
    typedef float piece __attribute__((vector_size(LAM_PIECE)));
    typedef int32_t truth __attribute__((vector_size(LAM_PIECE)));
    lam_i16v mask;
    for (size_t at = 0; at < sizeof mask; at += LAM_PIECE) {
        piece x, y;
        memcpy(&x, (const char *)&a + at, sizeof x);
        memcpy(&y, (const char *)&b + at, sizeof y);
        const truth t = x <= y;
        memcpy((char *)&mask + at, &t, sizeof t);
    }
    return mask;
}
#endif

/* Lane by lane: a <= b ? x : y; y where a or b is NaN. */
LAM_INLINE lam_f16v lam_select_le(lam_f16v a, lam_f16v b, lam_f16v x, lam_f16v y)
{
#ifdef __AVX512F__
    const __mmask16 m = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ);
    return (lam_f16v)_mm512_mask_blend_ps(m, (__m512)y, (__m512)x);
#else
    return lam_select(lam_le_pieces(a, b), x, y);
#endif
}

/* b where either is NaN. */
LAM_INLINE lam_f16v lam_max(lam_f16v a, lam_f16v b)
{
#ifdef __AVX512F__
    return (lam_f16v)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return lam_select_le(b, a, a, b);
#endif
}

/* Horizontal sum and maximum: by halves, the same order on every machine. */
LAM_INLINE float lam_sum16(lam_f16v x)
{
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)x);
#else
    const lam_f16v a = x + __builtin_shufflevector(x, x, LAM_ROTATE_(8));
    const lam_f16v b = a + __builtin_shufflevector(a, a, LAM_ROTATE_(4));
    return (b[0] + b[2]) + (b[1] + b[3]);
#endif
}

LAM_INLINE float lam_max16(lam_f16v x)
{
#ifdef __AVX512F__
    return _mm512_reduce_max_ps((__m512)x);
#else
    x = lam_max(x, __builtin_shufflevector(x, x, LAM_ROTATE_(8)));
    x = lam_max(x, __builtin_shufflevector(x, x, LAM_ROTATE_(4)));
    x = lam_max(x, __builtin_shufflevector(x, x, LAM_ROTATE_(2)));
    return x[0] > x[1] ? x[0] : x[1];
#endif
}

LAM_INLINE lam_f16v lam_exp16(lam_f16v x)
{
    /* Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits. */
    const lam_f16v magic = lam_splat(12582912.0f);
    const lam_f16v t = lam_fma(x, lam_splat(1.44269504f), magic);
    const lam_f16v n = t - magic;
    /* log 2 in two pieces: the first has so few bits that n times it is exact. */
    lam_f16v r = lam_fma(n, lam_splat(-0.693145752f), x);
    r = lam_fma(n, lam_splat(-1.42860677e-6f), r);

    /* exp r = 1 + r + r^2 q(r), q minimax in relative error, 0.03 ulp before rounding. */
    lam_f16v q = lam_splat(1.381446572e-3f);
    q = lam_fma(q, r, lam_splat(8.368780446e-3f));
    q = lam_fma(q, r, lam_splat(4.166839424e-2f));
    q = lam_fma(q, r, lam_splat(0.1666652011f));
    q = lam_fma(q, r, lam_splat(0.4999999341f));
    q = lam_fma(q, r, lam_splat(1.0f));
    const lam_f16v p = lam_fma(q, r, lam_splat(1.0f));

    /* Times 2^n, added to the exponent; the two limits are where that leaves the normal numbers. */
    const lam_f16v y = (lam_f16v)((lam_u16v)p + ((lam_u16v)t << 23));
    const lam_f16v low = lam_select_le(lam_splat(-87.3365402f), x, y, lam_splat(0.0f));
    return lam_select_le(x, lam_splat(88.7228317f), low, x + INFINITY);
}

#endif
