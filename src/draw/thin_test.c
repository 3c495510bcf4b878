/* thin_test.c -- thinned points keep ends, extremes, order and gaps. */
#include "draw/thin.h"

#include "support/suite.h"

#include <math.h>

enum { N = 5000 };

static double x[N], y[N];

static void fill(lam_rng *rng)
{
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = lam_rng_normal(rng);
    }
}

START_TEST(ends_extremes_and_order_stay)
{
    lam_rng rng = test_rng(11);
    fill(&rng);
    y[1234] = 50;
    y[4321] = -50;
    for (int n = 1; n <= N; n = n * 3 + 1) {
        const lam_series s = {.n = n, .x = x, .y = y};
        int kept = 0, last = -1, i;
        double low = INFINITY, high = -INFINITY, least = INFINITY, most = -INFINITY;
        for (int k = 0; k < n; k++) {
            least = fmin(least, y[k]);
            most = fmax(most, y[k]);
        }
        for (lam_thin t = lam_thin_begin(&s, 200); (i = lam_thin_next(&t)) >= 0; kept++) {
            ck_assert(kept > 0 || i == 0);
            ck_assert_int_gt(i, last);
            last = i;
            low = fmin(low, y[i]);
            high = fmax(high, y[i]);
        }
        ck_assert_int_eq(last, n - 1);
        ck_assert_double_eq(low, least);
        ck_assert_double_eq(high, most);
        ck_assert_int_le(kept, 204);
        ck_assert(n > 200 || kept == n);
    }
}
END_TEST

START_TEST(a_gap_stays_a_gap)
{
    lam_rng rng = test_rng(12);
    fill(&rng);
    for (int i = 0; i < N; i += 997)
        y[i] = NAN;
    const lam_series s = {.n = N, .x = x, .y = y};
    int gaps = 0, i;
    for (lam_thin t = lam_thin_begin(&s, 100); (i = lam_thin_next(&t)) >= 0;)
        gaps += isnan(y[i]);
    ck_assert_int_eq(gaps, 6);
}
END_TEST

START_TEST(noise_is_rough_and_a_wave_is_not)
{
    lam_rng rng = test_rng(13);
    fill(&rng);
    ck_assert(lam_series_rough(&(lam_series){.n = N, .x = x, .y = y}));
    ck_assert(!lam_series_rough(&(lam_series){.n = 300, .x = x, .y = y}));
    for (int i = 0; i < N; i++)
        y[i] = sin(0.1 * i);
    ck_assert(!lam_series_rough(&(lam_series){.n = N, .x = x, .y = y}));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, ends_extremes_and_order_stay);
    tcase_add_test(tests, a_gap_stays_a_gap);
    tcase_add_test(tests, noise_is_rough_and_a_wave_is_not);
    return test_run("draw/thin", tests);
}
