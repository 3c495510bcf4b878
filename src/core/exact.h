/* exact.h -- elementary functions that give the same bits on every machine.
 *
 * Each step is one IEEE-754 operation (+ - * / of float or double, correctly rounded to nearest even) or an
 * operation on integers, in the order written: no libm, no fused multiply-add, no reassociation.  Vector
 * units and GPUs have the same operations, so a loop over these functions may be vectorised freely.  Results
 * are never subnormal, so that flushing modes do not matter.
 *
 * What is inline must not be contracted: only files named exact*.c include this for the inline functions,
 * because CMakeLists.txt compiles those with -ffp-contract=off; CUDA names the operations by their rounding.
 * All other files call the functions at the end. */
#ifndef LAM_CORE_EXACT_H
#define LAM_CORE_EXACT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define LAM_EXACT static inline __host__ __device__
#else
#define LAM_EXACT static inline
#endif

#ifdef __CUDA_ARCH__
#define LAM_ADD(a, b)  __fadd_rn(a, b)
#define LAM_MUL(a, b)  __fmul_rn(a, b)
#define LAM_DIV(a, b)  __fdiv_rn(a, b)
#define LAM_DADD(a, b) __dadd_rn(a, b)
#define LAM_DMUL(a, b) __dmul_rn(a, b)
#define LAM_DDIV(a, b) __ddiv_rn(a, b)
#define LAM_DSQRT(a)   __dsqrt_rn(a)
#else
#define LAM_ADD(a, b)  ((a) + (b))
#define LAM_MUL(a, b)  ((a) * (b))
#define LAM_DIV(a, b)  ((a) / (b))
#define LAM_DADD(a, b) ((a) + (b))
#define LAM_DMUL(a, b) ((a) * (b))
#define LAM_DDIV(a, b) ((a) / (b))
#define LAM_DSQRT(a)   sqrt(a) /* IEEE-754 has it rounded correctly */
#endif

LAM_EXACT int32_t lam_exact_bits(float x)
{
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

LAM_EXACT float lam_exact_float(int32_t i)
{
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}

LAM_EXACT int64_t lam_exact_bits64(double x)
{
    int64_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

LAM_EXACT double lam_exact_double(int64_t i)
{
    double x;
    memcpy(&x, &i, sizeof x);
    return x;
}

/* |x| as an integer that grows with it: the largest of several does not depend on their order, and a NaN or
 * infinity, LAM_EXACT_INF or above, is larger than every number. */
#define LAM_EXACT_INF 0x7f800000

LAM_EXACT int32_t lam_exact_size(float x)
{
    return lam_exact_bits(x) & 0x7fffffff;
}

/* The nearest integer, |x| <= 2^21: the sum's last bit is worth 1. */
LAM_EXACT int32_t lam_exact_round(float x)
{
    return lam_exact_bits(LAM_ADD(x, 12582912.0f)) - 0x4b400000;
}

/* The same for |x| <= 2^50. */
LAM_EXACT int64_t lam_exact_round64(double x)
{
    return lam_exact_bits64(LAM_DADD(x, 6755399441055744.0)) - 0x4338000000000000;
}

/* e^x for x <= 0, to 2 ulp; 0 below -80, and for NaN. */
LAM_EXACT float lam_exact_expf(float x)
{
    const float low = x >= -80.0f ? x : -80.0f;
    const float shifted = LAM_ADD(LAM_MUL(low, 1.44269504f), 12582912.0f);
    const float n = LAM_ADD(shifted, -12582912.0f);
    /* ln 2 in two parts, of which n times the first is exact. */
    const float r = LAM_ADD(LAM_ADD(low, LAM_MUL(n, -0.693359375f)), LAM_MUL(n, 2.12194440e-4f));
    float p = 1.98412698e-4f; /* 1 / 7! */
    p = LAM_ADD(LAM_MUL(p, r), 1.38888889e-3f);
    p = LAM_ADD(LAM_MUL(p, r), 8.33333333e-3f);
    p = LAM_ADD(LAM_MUL(p, r), 4.16666667e-2f);
    p = LAM_ADD(LAM_MUL(p, r), 1.66666667e-1f);
    p = LAM_ADD(LAM_MUL(p, r), 0.5f);
    p = LAM_ADD(LAM_MUL(p, r), 1.0f);
    p = LAM_ADD(LAM_MUL(p, r), 1.0f);
    const int32_t power = lam_exact_bits(shifted) - 0x4b400000; /* n */
    const float y = LAM_MUL(p, lam_exact_float((int32_t)((uint32_t)(power + 127) << 23)));
    return x >= -80.0f ? y : 0.0f;
}

/* e^x for x <= 0, to 2 ulp; 0 below -700, and for NaN. */
LAM_EXACT double lam_exact_exp_inline(double x)
{
    if (!(x >= -700.0))
        return 0.0;
    const int64_t n = lam_exact_round64(LAM_DMUL(x, 1.4426950408889634));
    const double k = (double)n;
    const double r = LAM_DADD(LAM_DADD(x, LAM_DMUL(k, -0.693147180369123816490)),
                              LAM_DMUL(k, -1.90821492927058770002e-10));
    double p = 1.1470745597729725e-11; /* 1 / 14! */
    p = LAM_DADD(LAM_DMUL(p, r), 1.6059043836821613e-10);
    p = LAM_DADD(LAM_DMUL(p, r), 2.08767569878681e-09);
    p = LAM_DADD(LAM_DMUL(p, r), 2.505210838544172e-08);
    p = LAM_DADD(LAM_DMUL(p, r), 2.7557319223985888e-07);
    p = LAM_DADD(LAM_DMUL(p, r), 2.7557319223985893e-06);
    p = LAM_DADD(LAM_DMUL(p, r), 2.4801587301587302e-05);
    p = LAM_DADD(LAM_DMUL(p, r), 0.00019841269841269841);
    p = LAM_DADD(LAM_DMUL(p, r), 0.0013888888888888889);
    p = LAM_DADD(LAM_DMUL(p, r), 0.0083333333333333332);
    p = LAM_DADD(LAM_DMUL(p, r), 0.041666666666666664);
    p = LAM_DADD(LAM_DMUL(p, r), 0.16666666666666666);
    p = LAM_DADD(LAM_DMUL(p, r), 0.5);
    p = LAM_DADD(LAM_DMUL(p, r), 1.0);
    p = LAM_DADD(LAM_DMUL(p, r), 1.0);
    return LAM_DMUL(p, lam_exact_double((n + 1023) * ((int64_t)1 << 52)));
}

/* log x for a normal x > 0, to 2 ulp of the larger of 1 and the result. */
LAM_EXACT double lam_exact_log_inline(double x)
{
    const int64_t bits = lam_exact_bits64(x);
    int64_t e = (bits >> 52) - 1023;
    double m = lam_exact_double((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
    if (m > 1.4142135623730951) {
        m = LAM_DMUL(m, 0.5);
        e++;
    }
    /* log m = 2 (f + f^3 / 3 + f^5 / 5 ...) */
    const double f = LAM_DDIV(LAM_DADD(m, -1.0), LAM_DADD(m, 1.0)), s = LAM_DMUL(f, f);
    double p = 0.043478260869565216; /* 1 / 23 */
    p = LAM_DADD(LAM_DMUL(p, s), 0.047619047619047616);
    p = LAM_DADD(LAM_DMUL(p, s), 0.052631578947368418);
    p = LAM_DADD(LAM_DMUL(p, s), 0.058823529411764705);
    p = LAM_DADD(LAM_DMUL(p, s), 0.066666666666666666);
    p = LAM_DADD(LAM_DMUL(p, s), 0.076923076923076927);
    p = LAM_DADD(LAM_DMUL(p, s), 0.090909090909090912);
    p = LAM_DADD(LAM_DMUL(p, s), 0.1111111111111111);
    p = LAM_DADD(LAM_DMUL(p, s), 0.14285714285714285);
    p = LAM_DADD(LAM_DMUL(p, s), 0.20000000000000001);
    p = LAM_DADD(LAM_DMUL(p, s), 0.33333333333333331);
    p = LAM_DADD(LAM_DMUL(p, s), 1.0);
    const double log_m = LAM_DMUL(LAM_DMUL(2.0, f), p), k = (double)e;
    return LAM_DADD(LAM_DMUL(k, 0.693147180369123816490),
                    LAM_DADD(LAM_DMUL(k, 1.90821492927058770002e-10), log_m));
}

/* The same as functions, for callers of any kind. */
double lam_exact_exp(double x); /* x <= 0 */
/* out[i] = lam_exact_exp(x[i]), the same bits in less time; out may be x. */
void lam_exact_exps(double *out, const double *x, size_t n);
double lam_exact_log(double x); /* x > 0, normal */
/* sin and cos of position * 10000^(-2 t / D), |position| <= 2^20: what a table of positions holds. */
typedef struct lam_exact_angle {
    double sin, cos;
} lam_exact_angle;
lam_exact_angle lam_exact_position(double position, int t, int D);
/* x -= log sum exp x, the sum taken in the order of x. */
void lam_exact_log_softmax(double *x, size_t n);

#endif
