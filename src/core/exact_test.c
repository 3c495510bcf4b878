/* exact_test.c -- the elementary functions of exact arithmetic are right to the last bits, and always the same. */
#include "core/exact.h"
#include "support/suite.h"

#include <math.h>

START_TEST(they_are_close_to_libm)
{
    for (int i = 0; i < 4000; i++) {
        const double x = -0.17 * i, y = 1e-3 * (i + 1) * (i + 1);
        ck_assert_double_le(fabs(lam_exact_exp(x) / exp(x) - 1.0), 1e-15);
        ck_assert_double_le(fabs(lam_exact_log(y) - log(y)), 4e-16 * fmax(1.0, fabs(log(y))));
        const double angle = i * pow(10000.0, -2.0 * (i % 20) / 40.0);
        const lam_exact_angle at = lam_exact_position(i, i % 20, 40);
        ck_assert_double_le(fabs(at.sin - sin(angle)), 1e-11);
        ck_assert_double_le(fabs(at.cos - cos(angle)), 1e-11);
    }
    ck_assert(lam_exact_exp(0.0) == 1.0 && lam_exact_exp(-701.0) == 0.0 &&
              lam_exact_log(1.0) == 0.0);
}
END_TEST

/* The loop that becomes vectors gives what the function gives, to the last bit. */
START_TEST(many_are_as_one)
{
    enum { MANY = 4099 };
    static double x[MANY], y[MANY];
    const double edges[] = {0.0,    -0.0,      -1e-300, -700.0, nextafter(-700.0, -INFINITY),
                            -1e300, -INFINITY, NAN};
    for (int i = 0; i < MANY; i++)
        x[i] = -701.0 * i / MANY;
    memcpy(x, edges, sizeof edges);
    lam_exact_exps(y, x, MANY);
    for (int i = 0; i < MANY; i++) {
        const double one = lam_exact_exp(x[i]);
        ck_assert_mem_eq(&one, &y[i], sizeof one);
    }
    lam_exact_exps(x, x, MANY);
    ck_assert_mem_eq(x, y, sizeof x);
}
END_TEST

START_TEST(a_log_softmax_sums_to_one)
{
    double x[5] = {3.0, -900.0, 2.5, 3.0, 0.1}, sum = 0.0;
    lam_exact_log_softmax(x, 5);
    for (int i = 0; i < 5; i++)
        sum += exp(x[i]);
    ck_assert_double_le(fabs(sum - 1.0), 1e-15);
    ck_assert(x[0] == x[3]);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, they_are_close_to_libm);
    tcase_add_test(tests, many_are_as_one);
    tcase_add_test(tests, a_log_softmax_sums_to_one);
    return test_run("core/exact", tests);
}
