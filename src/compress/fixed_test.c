/* fixed_test.c -- integer powers and logarithms are close to libm's and monotonic. */
#include "compress/fixed.h"

#include "support/suite.h"

#include <math.h>

START_TEST(powers_are_close_and_fall)
{
    uint32_t before = UINT32_MAX;
    for (uint32_t x = 0; x < 33u << 20; x += 61) {
        const uint32_t got = lam_fixed_exp2(x);
        const double want = ldexp(exp2(-(double)x / 1048576.0), 31);
        ck_assert_msg(fabs(got - want) <= 1.0 + want * 1e-8, "2^-%u/2^20: %u, not %.2f", x, got,
                      want);
        ck_assert_uint_le(got, before);
        before = got;
    }
    ck_assert_uint_eq(lam_fixed_exp2(0), 1u << 31);
    ck_assert_uint_eq(lam_fixed_exp2(1u << 20), 1u << 30);
    ck_assert_uint_eq(lam_fixed_exp2(UINT32_MAX), 0);
}
END_TEST

START_TEST(logarithms_are_close_and_rise)
{
    int32_t before = 0;
    for (uint64_t x = 1; x <= UINT32_MAX; x += 1 + x / 3000) {
        const int32_t got = lam_fixed_log2((uint32_t)x);
        ck_assert_double_le(fabs(got / 65536.0 - log2((double)x)), 2e-5);
        ck_assert_int_ge(got, before);
        before = got;
    }
    for (int i = 0; i < 32; i++)
        ck_assert_int_eq(lam_fixed_log2(1u << i), i << 16);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, powers_are_close_and_fall);
    tcase_add_test(tests, logarithms_are_close_and_rise);
    return test_run("compress/fixed", tests);
}
