/* exact_many.c -- lam_exact_exp of many numbers, in a form that compilers turn into vector instructions. */
#include "core/exact.h"

/* The steps of lam_exact_exp_inline, with the nearest integer taken from the sum that rounds it: a conversion between
 * 64-bit integers and doubles, or a branch, would keep the loop scalar. */
LAM_EXACT void exps(double *out, const double *x, size_t n)
{
    static const double magic = 6755399441055744.0; /* lam_exact_round64 */
    for (size_t i = 0; i < n; i++) {
        /* All bits if x >= -700, else none; NaN is larger than all numbers. */
        const int64_t bits = lam_exact_bits64(x[i]), size = bits & INT64_MAX;
        const int64_t near = (size - lam_exact_bits64(700.0) - 1) >> 63;
        const double low = lam_exact_double(bits & near);
        const double shifted = LAM_DADD(LAM_DMUL(low, 1.4426950408889634), magic);
        const double k = LAM_DADD(shifted, -magic);
        const double r = LAM_DADD(LAM_DADD(low, LAM_DMUL(k, -0.693147180369123816490)),
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
        const uint64_t power =
            (uint64_t)lam_exact_bits64(shifted) - (uint64_t)lam_exact_bits64(magic) + 1023;
        const double y = LAM_DMUL(p, lam_exact_double((int64_t)(power << 52)));
        out[i] = lam_exact_double(lam_exact_bits64(y) & near);
    }
}

#if defined __x86_64__ && defined __GNUC__
/* The same steps with vectors of four and of eight: the compiler must not fuse any (CMakeLists.txt). */
__attribute__((target("avx2"))) static void exps_of_4(double *out, const double *x, size_t n)
{
    exps(out, x, n);
}

__attribute__((target("avx512f,avx512dq,avx512vl"))) static void
exps_of_8(double *out, const double *x, size_t n)
{
    exps(out, x, n);
}

void lam_exact_exps(double *out, const double *x, size_t n)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        exps_of_8(out, x, n);
    else if (__builtin_cpu_supports("avx2"))
        exps_of_4(out, x, n);
    else
        exps(out, x, n);
}
#else
void lam_exact_exps(double *out, const double *x, size_t n)
{
    exps(out, x, n);
}
#endif
