/* vecmath_test.c -- how wrong is lam_exp16, and what does it do at the ends? */
#include "ops/cpu/vecmath.h"
#include "support/suite.h"

#include <float.h>

/* |got - exp(x)| in units in the last place of exp(x). */
static double ulps(float got, float x)
{
    const double want = exp((double)x);
    int exponent;
    (void)frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1.0, exponent - FLT_MANT_DIG);
}

static float exp_of(float x)
{
    float y[LAM_VEC];
    lam_store(y, lam_exp16(lam_splat(x)));
    for (int i = 1; i < LAM_VEC; i++)
        ck_assert(memcmp(&y[i], &y[0], sizeof *y) == 0);
    return y[0];
}

/* Every 37th float of either sign whose exponential is a normal number: sixty million. */
START_TEST(exp_errs_by_less_than_1_25_ulps)
{
    double worst = 0.0;
    float at = 0.0f;
    for (uint32_t bits = 0; bits < 0x42b17218u; bits += 37 * LAM_VEC)
        for (uint32_t sign = 0; sign < 2; sign++) {
            float x[LAM_VEC], y[LAM_VEC];
            for (uint32_t i = 0; i < LAM_VEC; i++) {
                const uint32_t word = (bits + 37 * i) | sign << 31;
                memcpy(&x[i], &word, sizeof word);
            }
            lam_store(y, lam_exp16(lam_load(x)));
            for (int i = 0; i < LAM_VEC; i++) {
                if (x[i] < -87.3365402f || x[i] > 88.7228317f)
                    continue;
                const double e = ulps(y[i], x[i]);
                if (!(e <= worst)) {
                    worst = e;
                    at = x[i];
                }
            }
        }
    ck_assert_msg(worst < 1.25, "%.3f ulp at %.9g", worst, (double)at);
}
END_TEST

START_TEST(exp_handles_the_ends)
{
    ck_assert(exp_of(0.0f) == 1.0f);
    ck_assert(exp_of(-0.0f) == 1.0f);
    ck_assert(exp_of(-INFINITY) == 0.0f);
    ck_assert(exp_of(-FLT_MAX) == 0.0f);
    ck_assert(exp_of(-87.4f) == 0.0f); /* would be subnormal */
    ck_assert(exp_of(-87.3365402f) >= FLT_MIN);
    ck_assert(isfinite(exp_of(88.7228317f)));
    ck_assert(exp_of(88.73f) == INFINITY);
    ck_assert(exp_of(FLT_MAX) == INFINITY);
    ck_assert(exp_of(INFINITY) == INFINITY);
    ck_assert(isnan(exp_of(NAN)));
}
END_TEST

START_TEST(sums_and_maxima_see_every_lane)
{
    for (int lane = 0; lane < LAM_VEC; lane++) {
        float x[LAM_VEC] = {0};
        x[lane] = 3.0f;
        ck_assert(lam_sum16(lam_load(x)) == 3.0f);
        ck_assert(lam_max16(lam_load(x)) == 3.0f);
        for (int i = 0; i < LAM_VEC; i++)
            x[i] = -5.0f;
        x[lane] = -2.0f;
        ck_assert(lam_max16(lam_load(x)) == -2.0f);
    }
}
END_TEST

START_TEST(partial_access_touches_n_lanes_only)
{
    float x[LAM_VEC], y[LAM_VEC];
    for (int i = 0; i < LAM_VEC; i++)
        x[i] = (float)(i + 1);
    for (size_t n = 0; n <= LAM_VEC; n++) {
        lam_store(y, lam_load_n(x, n));
        for (size_t i = 0; i < LAM_VEC; i++)
            ck_assert(y[i] == (i < n ? x[i] : 0.0f));
        lam_store(y, lam_splat(-1.0f));
        lam_store_n(y, lam_load(x), n);
        for (size_t i = 0; i < LAM_VEC; i++)
            ck_assert(y[i] == (i < n ? x[i] : -1.0f));
    }
}
END_TEST

START_TEST(selects_choose_by_lane_and_take_the_second_at_nan)
{
    const float a[LAM_VEC] = {-1, 0, 1, 2, NAN, INFINITY, -INFINITY, 5}, zero[LAM_VEC] = {0};
    float y[LAM_VEC];
    lam_store(y, lam_select_le(lam_load(a), lam_load(zero), lam_splat(1.0f), lam_splat(2.0f)));
    for (int i = 0; i < LAM_VEC; i++)
        ck_assert(y[i] == (a[i] <= 0.0f ? 1.0f : 2.0f));
    lam_store(y, lam_max(lam_load(zero), lam_load(a)));
    for (int i = 0; i < LAM_VEC; i++)
        ck_assert(isnan(a[i]) ? isnan(y[i]) : y[i] == (a[i] > 0.0f ? a[i] : 0.0f));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, exp_errs_by_less_than_1_25_ulps);
    tcase_add_test(tests, exp_handles_the_ends);
    tcase_add_test(tests, sums_and_maxima_see_every_lane);
    tcase_add_test(tests, partial_access_touches_n_lanes_only);
    tcase_add_test(tests, selects_choose_by_lane_and_take_the_second_at_nan);
    return test_run("ops/cpu/vecmath", tests);
}
