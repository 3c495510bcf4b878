/* encoding_test.c -- Appendix B against its own double sums, and the variance against a covariance matrix. */
#include "measure/encoding.h"

#include "support/suite.h"

#include <math.h>

static double w(int d, int k)
{
    return pow(10000.0, -2.0 * k / d);
}

START_TEST(g_is_the_double_sum)
{
    static const int widths[] = {2, 4, 10, 64};
    const int d = widths[_i];
    for (double t = -20.0; t <= 20.0; t += 1.7) {
        double sum = 0.0;
        for (int k = 1; k <= d / 2; k++)
            for (int l = 1; l <= d / 2; l++)
                sum += k == l ? 0.0 : sin(w(d, k) * t) * cos(w(d, l) * t);
        ck_assert_double_eq_tol(lam_encoding_g(d, t), sum, 1e-11 * (1.0 + fabs(sum)));
        ck_assert_double_eq_tol(lam_encoding_g(d, -t), -sum, 1e-11 * (1.0 + fabs(sum)));
    }
}
END_TEST

START_TEST(the_slope_is_the_slope_and_gamma_comes_near_it)
{
    static const int widths[] = {4, 64, 410, 1024};
    const int d = widths[_i];
    const double h = 1e-5, slope = (lam_encoding_g(d, h) - lam_encoding_g(d, -h)) / (2.0 * h);
    ck_assert_double_eq_tol(lam_encoding_slope(d) / slope, 1.0, 1e-7);
    if (d >= 64) { /* gamma counts d/2 cosines, one more than there are, and all k */
        ck_assert_double_eq_tol(lam_encoding_gamma(d) / slope, 1.0, 4.0 / d);
        ck_assert_double_eq_tol(lam_encoding_gamma_large(d) / lam_encoding_gamma(d), 1.0, 12.0 / d);
    }
}
END_TEST

/* x . R has the variance R' Sigma R; Sigma has 1 on the diagonal and rho elsewhere. */
START_TEST(the_variance_with_all_pairs_is_that_of_the_covariance_matrix)
{
    enum { D = 12 };
    for (double t = -9.0; t <= 9.0; t += 0.9)
        for (double rho = -0.05; rho < 0.5; rho += 0.1) {
            double r[D], sum = 0.0;
            for (int k = 1; k <= D / 2; k++) {
                r[2 * k - 2] = sin(w(D, k) * t);
                r[2 * k - 1] = cos(w(D, k) * t);
            }
            for (int i = 0; i < D; i++)
                for (int j = 0; j < D; j++)
                    sum += r[i] * r[j] * (i == j ? 1.0 : rho);
            ck_assert_double_eq_tol(lam_encoding_variance_all(D, t, rho), sum / (D / 2.0), 1e-12);
            /* What is printed differs by an even function and the pairs of one frequency. */
            ck_assert_double_eq_tol(lam_encoding_variance(D, t, rho) - 1.0,
                                    1.0 - lam_encoding_variance(D, -t, rho), 1e-12);
        }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, g_is_the_double_sum, 0, 4);
    tcase_add_loop_test(tests, the_slope_is_the_slope_and_gamma_comes_near_it, 0, 4);
    tcase_add_test(tests, the_variance_with_all_pairs_is_that_of_the_covariance_matrix);
    return test_run("measure/encoding", tests);
}
