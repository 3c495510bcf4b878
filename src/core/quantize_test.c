/* quantize_test.c -- int8 rows are as near as they can be, and quantising twice changes nothing. */
#include "core/quantize.h"

#include "core/rng.h"
#include "support/suite.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 101 };

START_TEST(every_number_is_within_half_a_step)
{
    lam_rng rng = {.key = 5};
    printf("seed 5\n");
    for (int power = -40; power <= 37; power++) {
        double x[N], back[N];
        int8_t q[N], again[N];
        float scale, same;
        for (int i = 0; i < N; i++)
            x[i] = lam_rng_normal(&rng) * pow(10.0, power);
        ck_assert_int_eq(lam_quantize(q, &scale, x, N), 0);
        lam_dequantize(back, q, scale, N);
        for (int i = 0; i < N; i++)
            ck_assert_double_le(fabs(back[i] - x[i]), 0.5000001 * (double)scale + 127 * DBL_MIN);
        ck_assert_int_eq(lam_quantize(again, &same, back, N), 0);
        if (scale >= FLT_MIN) {
            ck_assert(same == scale);
            ck_assert_int_eq(memcmp(q, again, sizeof q), 0);
        }
    }
}
END_TEST

START_TEST(nothing_is_nothing_and_infinity_is_refused)
{
    const double zeros[3] = {0.0, -0.0, 0.0}, tiny[2] = {1e-60, -1e-60};
    const double bad[3][2] = {{NAN, 1.0}, {1.0, -INFINITY}, {1e300, 0.0}};
    int8_t q[3];
    float scale = 1.0f;
    ck_assert_int_eq(lam_quantize(q, &scale, zeros, 3), 0);
    ck_assert(scale == 0.0f && q[0] == 0 && q[1] == 0 && q[2] == 0);
    ck_assert_int_eq(lam_quantize(q, &scale, tiny, 2), 0);
    ck_assert(scale == 0.0f && q[0] == 0 && q[1] == 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(lam_quantize(q, &scale, bad[i], 2), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_number_is_within_half_a_step);
    tcase_add_test(tests, nothing_is_nothing_and_infinity_is_refused);
    return test_run("core/quantize", tests);
}
