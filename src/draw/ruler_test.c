/* ruler_test.c -- axes hold what they are given, and their numbers are round, distinct and enough. */
#include "draw/ruler.h"

#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lam_ruler settled(lam_scale scale, double a, double b)
{
    lam_ruler r = lam_ruler_empty(scale);
    lam_ruler_hold(&r, a);
    lam_ruler_hold(&r, b);
    lam_ruler_resolve(&r, &(lam_axis){0}, 0.04);
    return r;
}

START_TEST(an_axis_is_usable_whatever_it_holds)
{
    const double values[] = {0, 1, -1, 1e-300, 1e300, -5e-8, NAN, INFINITY, 3.25};
    const int n = sizeof values / sizeof *values;
    for (int k = 0; k < 2 * n * n; k++) {
        const lam_scale scale = k % 2 ? LAM_SCALE_LOG : LAM_SCALE_LINEAR;
        const double a = values[k / 2 % n], b = values[k / 2 / n];
        const lam_ruler r = settled(scale, a, b);
        ck_assert_msg(r.low < r.high && isfinite(r.high - r.low), "%g %g", a, b);
        ck_assert(scale == LAM_SCALE_LINEAR || r.low > 0);
        if (lam_ruler_has(&r, a))
            ck_assert(lam_ruler_at(&r, a) >= -1e-9 && lam_ruler_at(&r, a) <= 1 + 1e-9);
    }
}
END_TEST

START_TEST(the_axis_own_ends_win_where_they_make_sense)
{
    lam_ruler r = lam_ruler_empty(LAM_SCALE_LOG);
    lam_ruler_hold(&r, 5);
    lam_ruler_resolve(&r, &(lam_axis){.min = 1, .max = 100}, 0.04);
    ck_assert_double_eq_tol(lam_ruler_at(&r, 10), 0.5, 1e-12);
    lam_ruler_resolve(&r, &(lam_axis){.min = -1, .max = 100}, 0); /* no log axis begins below 0 */
    ck_assert_double_gt(r.low, 0);
}
END_TEST

START_TEST(ticks_are_round_rising_and_inside)
{
    lam_rng rng = test_rng(5);
    for (int k = 0; k < 3000; k++) {
        const double size = pow(10, 16 * lam_rng_uniform(&rng) - 8);
        const double a = size * (lam_rng_uniform(&rng) - (k % 3 == 0)),
                     b = a + size * lam_rng_uniform(&rng);
        const lam_ruler r = settled(k % 2 ? LAM_SCALE_LOG : LAM_SCALE_LINEAR, a, b);
        lam_ticks t;
        lam_ticks_make(&t, &r, 6);
        int numbers = 0;
        ck_assert_int_le(t.n, LAM_TICKS_MAX);
        for (int i = 0; i < t.n; i++) {
            ck_assert_double_ge(t.at[i], r.low - 1e-6 * (r.high - r.low));
            ck_assert_double_le(t.at[i], r.high + 1e-6 * (r.high - r.low));
            ck_assert(i == 0 || t.at[i] > t.at[i - 1]);
            numbers += t.text[i][0] != '\0';
            for (int j = 0; j < i; j++)
                ck_assert_msg(!t.text[i][0] || strcmp(t.text[i], t.text[j]) != 0,
                              "%s twice in %.17g..%.17g", t.text[i], r.low, r.high);
        }
        ck_assert_msg(numbers >= 1 && numbers <= 14, "%d numbers in %g..%g", numbers, r.low,
                      r.high);
    }
}
END_TEST

START_TEST(between_whole_numbers_nothing_is_written)
{
    lam_ruler r = lam_ruler_empty(LAM_SCALE_LINEAR);
    lam_ticks t;
    lam_ruler_hold(&r, 1);
    lam_ruler_hold(&r, 4);
    lam_ticks_make(&t, &r, 7);
    ck_assert_int_eq(t.n, 4);
    ck_assert_str_eq(t.text[0], "1");
    lam_ruler_hold(&r, 2.5);
    lam_ticks_make(&t, &r, 7);
    ck_assert_int_eq(t.n, 7);
}
END_TEST

START_TEST(numbers_are_written_as_people_do)
{
    const struct {
        double low, high;
        lam_scale scale;
        const char *texts;
    } cases[] = {
        {0, 100000, LAM_SCALE_LINEAR, "0 20k 40k 60k 80k 100k "},
        {0, 1, LAM_SCALE_LINEAR, "0 0.2 0.4 0.6 0.8 1.0 "},
        {1.37, 1.45, LAM_SCALE_LINEAR, "1.38 1.40 1.42 1.44 "},
        {-3, 3, LAM_SCALE_LINEAR, "-3 -2 -1 0 1 2 3 "},
        {0, 2e-6, LAM_SCALE_LINEAR, "0 5e-07 1e-06 1.5e-06 2e-06 "},
        {1, 1000, LAM_SCALE_LOG, "1 10 100 1000 "},
        {0.0005, 0.02, LAM_SCALE_LOG, "0.0005 0.001 0.002 0.005 0.01 0.02 "},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char all[256] = "";
        lam_ticks t;
        lam_ticks_make(
            &t, &(lam_ruler){.scale = cases[k].scale, .low = cases[k].low, .high = cases[k].high},
            6);
        for (int i = 0; i < t.n; i++)
            if (t.text[i][0])
                strcat(strcat(all, t.text[i]), " ");
        ck_assert_str_eq(all, cases[k].texts);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, an_axis_is_usable_whatever_it_holds);
    tcase_add_test(tests, the_axis_own_ends_win_where_they_make_sense);
    tcase_add_test(tests, ticks_are_round_rising_and_inside);
    tcase_add_test(tests, between_whole_numbers_nothing_is_written);
    tcase_add_test(tests, numbers_are_written_as_people_do);
    return test_run("draw/ruler", tests);
}
