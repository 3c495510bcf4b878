/* vecmath.h -- sixteen floats at a time, and the one transcendental function the kernels need.
 *
 * Sixteen floats are one register with AVX-512, two with AVX, four with SSE or NEON: a struct of GNU vectors, each as
 * wide as a register of the machine.  (One GNU vector of sixteen floats would do without the struct, but gcc keeps
 * vectors that are wider than a register in memory.)  Kernels call lam_add, lam_fma and so on, and none is written
 * twice; only what the vector syntax cannot say has a spelling for each machine, here.
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

#if defined(__AVX512F__)
enum { LAM_REG = 16 }; /* floats in a register */
#elif defined(__AVX__)
enum { LAM_REG = 8 };
#else
enum { LAM_REG = 4 };
#endif
enum { LAM_VEC = 16, LAM_REGS = LAM_VEC / LAM_REG };

typedef float lam_reg __attribute__((vector_size(LAM_REG * 4)));
typedef int32_t lam_ireg __attribute__((vector_size(LAM_REG * 4))); /* comparisons: -1 or 0 */
typedef uint32_t lam_ureg __attribute__((vector_size(LAM_REG * 4)));
typedef float lam_quad __attribute__((vector_size(16)));

typedef struct lam_f16v {
    lam_reg r[LAM_REGS];
} lam_f16v;

#ifdef __clang__
#define LAM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LAM_UNROLL _Pragma("GCC unroll 16")
#endif
#define LAM_EACH(i) LAM_UNROLL for (int i = 0; i < LAM_REGS; i++)
#define LAM_INLINE  static inline __attribute__((always_inline, unused))

/* ---- one register ---- */

LAM_INLINE lam_reg lam_reg_load(const float *p) /* any alignment */
{
    lam_reg x;
    memcpy(&x, p, sizeof x);
    return x;
}

LAM_INLINE lam_reg lam_reg_splat(float x)
{
#if defined(__AVX512F__)
    return (lam_reg)_mm512_set1_ps(x);
#elif defined(__AVX__)
    return (lam_reg){x, x, x, x, x, x, x, x};
#else
    return (lam_reg){x, x, x, x};
#endif
}

/* a * b + c, rounded once where the machine can: ops/cpu is compiled with contraction on. */
LAM_INLINE lam_reg lam_reg_fma(lam_reg a, lam_reg b, lam_reg c)
{
#if defined(__AVX512F__)
    return (lam_reg)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (lam_reg)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* Lane by lane: a <= b ? x : y; y where a or b is NaN. */
LAM_INLINE lam_reg lam_reg_select_le(lam_reg a, lam_reg b, lam_reg x, lam_reg y)
{
#if defined(__AVX512F__)
    const __mmask16 m = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ);
    return (lam_reg)_mm512_mask_blend_ps(m, (__m512)y, (__m512)x);
#else
    const lam_ireg m = a <= b;
    return (lam_reg)((m & (lam_ireg)x) | (~m & (lam_ireg)y));
#endif
}

/* b where either is NaN. */
LAM_INLINE lam_reg lam_reg_max(lam_reg a, lam_reg b)
{
#if defined(__AVX512F__)
    return (lam_reg)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (lam_reg)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return lam_reg_select_le(b, a, a, b);
#endif
}

/* ---- sixteen floats ---- */

LAM_INLINE lam_f16v lam_splat(float x)
{
    lam_f16v y;
    LAM_EACH(i)
    y.r[i] = lam_reg_splat(x);
    return y;
}

/* Any alignment. */
LAM_INLINE lam_f16v lam_load(const float *p)
{
    lam_f16v x;
    LAM_EACH(i)
    x.r[i] = lam_reg_load(p + i * LAM_REG);
    return x;
}

LAM_INLINE void lam_store(float *p, lam_f16v x)
{
    LAM_EACH(i)
    memcpy(p + i * LAM_REG, &x.r[i], sizeof x.r[i]);
}

/* The first n of sixteen, 0 <= n <= 16; other lanes read as zero and are not written. */
LAM_INLINE lam_f16v lam_load_n(const float *p, size_t n)
{
#ifdef __AVX512F__
    const __mmask16 m =
        (__mmask16)((1u << n) - 1u); /* all lanes, known to the compiler: a plain load */
    return (lam_f16v){{(lam_reg)_mm512_maskz_loadu_ps(m, p)}};
#else
    float x[LAM_VEC] = {0.0f};
    if (n == LAM_VEC) /* copying a number of bytes that only the machine knows is slow */
        return lam_load(p);
    for (size_t i = 0; i < n; i++)
        x[i] = p[i];
    return lam_load(x);
#endif
}

LAM_INLINE void lam_store_n(float *p, lam_f16v x, size_t n)
{
#ifdef __AVX512F__
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)x.r[0]);
#else
    float y[LAM_VEC];
    if (n == LAM_VEC) {
        lam_store(p, x);
        return;
    }
    lam_store(y, x);
    for (size_t i = 0; i < n; i++)
        p[i] = y[i];
#endif
}

#define LAM_LANEWISE_(name, expression)                                                            \
    LAM_INLINE lam_f16v name(lam_f16v a, lam_f16v b)                                               \
    {                                                                                              \
        LAM_EACH(i)                                                                                \
        a.r[i] = expression;                                                                       \
        return a;                                                                                  \
    }
LAM_LANEWISE_(lam_add, a.r[i] + b.r[i])
LAM_LANEWISE_(lam_sub, a.r[i] - b.r[i])
LAM_LANEWISE_(lam_mul, a.r[i] * b.r[i])
LAM_LANEWISE_(lam_div, a.r[i] / b.r[i])
LAM_LANEWISE_(lam_max, lam_reg_max(a.r[i], b.r[i])) /* b where either is NaN */

LAM_INLINE lam_f16v lam_neg(lam_f16v a)
{
    LAM_EACH(i)
    a.r[i] = -a.r[i];
    return a;
}

/* a * b + c, rounded once where the machine can. */
LAM_INLINE lam_f16v lam_fma(lam_f16v a, lam_f16v b, lam_f16v c)
{
    LAM_EACH(i)
    c.r[i] = lam_reg_fma(a.r[i], b.r[i], c.r[i]);
    return c;
}

/* Lane by lane: a <= b ? x : y; y where a or b is NaN. */
LAM_INLINE lam_f16v lam_select_le(lam_f16v a, lam_f16v b, lam_f16v x, lam_f16v y)
{
    LAM_EACH(i)
    y.r[i] = lam_reg_select_le(a.r[i], b.r[i], x.r[i], y.r[i]);
    return y;
}

/* Horizontal sum and maximum: by halves, the same order on every machine. */
LAM_INLINE float lam_sum16(lam_f16v x)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x.r[0]);
#elif defined(__AVX__)
    const lam_reg h = x.r[0] + x.r[1];
    const lam_quad q =
        __builtin_shufflevector(h, h, 0, 1, 2, 3) + __builtin_shufflevector(h, h, 4, 5, 6, 7);
    return (q[0] + q[2]) + (q[1] + q[3]);
#else
    const lam_quad q = (x.r[0] + x.r[2]) + (x.r[1] + x.r[3]);
    return (q[0] + q[2]) + (q[1] + q[3]);
#endif
}

LAM_INLINE float lam_max16(lam_f16v x)
{
#ifdef __AVX512F__
    return _mm512_reduce_max_ps((__m512)x.r[0]);
#else
    float lane[LAM_VEC];
    lam_store(lane, x);
    for (int half = LAM_VEC / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] = lane[i] > lane[i + half] ? lane[i] : lane[i + half];
    return lane[0];
#endif
}

LAM_INLINE lam_reg lam_reg_exp(lam_reg x)
{
    /* Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits. */
    const lam_reg magic = lam_reg_splat(12582912.0f);
    const lam_reg t = lam_reg_fma(x, lam_reg_splat(1.44269504f), magic);
    const lam_reg n = t - magic;
    /* log 2 in two pieces: the first has so few bits that n times it is exact. */
    lam_reg r = lam_reg_fma(n, lam_reg_splat(-0.693145752f), x);
    r = lam_reg_fma(n, lam_reg_splat(-1.42860677e-6f), r);

    /* exp r = 1 + r + r^2 q(r), q minimax in relative error, 0.03 ulp before rounding. */
    lam_reg q = lam_reg_splat(1.381446572e-3f);
    q = lam_reg_fma(q, r, lam_reg_splat(8.368780446e-3f));
    q = lam_reg_fma(q, r, lam_reg_splat(4.166839424e-2f));
    q = lam_reg_fma(q, r, lam_reg_splat(0.1666652011f));
    q = lam_reg_fma(q, r, lam_reg_splat(0.4999999341f));
    q = lam_reg_fma(q, r, lam_reg_splat(1.0f));
    const lam_reg p = lam_reg_fma(q, r, lam_reg_splat(1.0f));

    /* Times 2^n, added to the exponent; the two limits are where that leaves the normal numbers. */
    const lam_reg y = (lam_reg)((lam_ureg)p + ((lam_ureg)t << 23));
    const lam_reg low = lam_reg_select_le(lam_reg_splat(-87.3365402f), x, y, lam_reg_splat(0.0f));
    return lam_reg_select_le(x, lam_reg_splat(88.7228317f), low, x + lam_reg_splat(INFINITY));
}

LAM_INLINE lam_f16v lam_exp16(lam_f16v x)
{
    LAM_EACH(i)
    x.r[i] = lam_reg_exp(x.r[i]);
    return x;
}

#endif
