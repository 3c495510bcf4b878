/* basis_test.c -- the regression matrices against the specification's numbers, and what a fit keeps. */
#include "mem/basis.h"

#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lam_infinite config_of(int basis, int block, int samples, double ridge)
{
    return (lam_infinite){.ltm_basis = basis,
                          .ltm_ridge = ridge,
                          .ltm_block = block,
                          .ltm_samples = samples,
                          .ltm_tau = 0.5,
                          .ltm_padding = true,
                          .ltm_widths = {2, {0.01, 0.05}}};
}

static double *first_of(const lam_infinite *its)
{
    double *G = malloc((size_t)its->ltm_block * (size_t)its->ltm_basis * sizeof *G);
    ck_assert_ptr_nonnull(G);
    ck_assert_msg(lam_basis_first(G, its, its->ltm_block) == LAM_OK, "%s", lam_error());
    return G;
}

static double *update_of(const lam_infinite *its)
{
    const size_t rows = (size_t)(its->ltm_samples + its->ltm_block);
    double *G = malloc(rows * (size_t)its->ltm_basis * sizeof *G);
    ck_assert_ptr_nonnull(G);
    ck_assert_msg(lam_basis_update(G, its, its->ltm_block) == LAM_OK, "%s", lam_error());
    return G;
}

/* Nine digits are given. */
static void near_digits(double got, double want)
{
    ck_assert_msg(fabs(got / want - 1.0) < 1e-8, "%.12g, must be %.9g", got, want);
}

static void check_sums(const double *G, size_t n, double sum, double norm)
{
    double s = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        s += G[i];
        squares += G[i] * G[i];
    }
    near_digits(s, sum);
    if (norm > 0.0)
        near_digits(sqrt(squares), norm);
}

START_TEST(a_first_fit_has_the_specified_numbers)
{
    const struct {
        double ridge, at00, at01, at75, sum, norm;
    } rows[] = {{1.0, 0.0147332706, 0.0191781461, 0.000466906679, 1.00046619, 0.369996845},
                {0.5, 0.0155533394, 0.0123080983, 0.000431908048, 1.0006122, 0.386199996}};
    for (int i = 0; i < 2; i++) {
        const lam_infinite its = config_of(150, 150, 512, rows[i].ridge);
        double *G = first_of(&its);
        near_digits(G[0], rows[i].at00);
        near_digits(G[1], rows[i].at01);
        near_digits(G[75 * 150 + 75], rows[i].at75);
        check_sums(G, 150 * 150, rows[i].sum, rows[i].norm);
        free(G);
    }
}
END_TEST

START_TEST(a_tiny_fit_has_the_specified_numbers)
{
    lam_infinite its = config_of(4, 6, 8, 1.0);
    its.ltm_widths.n = 1;
    its.ltm_widths.v[0] = 0.1;
    double *G = first_of(&its);
    near_digits(G[0], 0.166221871);
    near_digits(G[1], 0.000613992792);
    near_digits(G[3 * 4 + 2], 0.16679248);
    check_sums(G, 6 * 4, 0.965212607, 0.0);
    free(G);
}
END_TEST

START_TEST(an_update_has_the_specified_numbers)
{
    const struct {
        double ridge;
        int samples;
        double first, middle, sum, norm;
    } rows[] = {{0.5, 512, 0.00460261786, 0.000122747917, 1.00012048, 0.274409197},
                {1.0, 150, 0.00872579555, 0.000215955801, 1.00025139, 0.271331658}};
    for (int i = 0; i < 2; i++) {
        const lam_infinite its = config_of(150, 150, rows[i].samples, rows[i].ridge);
        const size_t M = (size_t)rows[i].samples;
        double *G = update_of(&its);
        near_digits(G[0], rows[i].first);
        near_digits(G[M * 150 + 75], rows[i].middle);
        check_sums(G, (M + 150) * 150, rows[i].sum, rows[i].norm);
        free(G);
    }
}
END_TEST

/* The fitted signal at t, of data x at the places of a block. */
static double signal(const lam_infinite *its, const double *G, const double *x, double t)
{
    double sum = 0.0;
    for (int j = 0; j < its->ltm_basis; j++) {
        double b = 0.0;
        for (int i = 0; i < its->ltm_block; i++)
            b += x[i] * G[i * its->ltm_basis + j];
        sum += b * lam_bump_at(lam_basis_bump(its, j), t);
    }
    return sum;
}

/* Smooth signals are kept, the ends and what changes from row to row are not: hence the gate. */
START_TEST(a_fit_keeps_what_is_smooth)
{
    const lam_infinite its = config_of(150, 150, 512, 1.0);
    double *G = first_of(&its), one[150], wave[150], alternating[150];
    double worst[2] = {0}, squares[2] = {0};
    for (int i = 0; i < 150; i++) {
        one[i] = 1.0;
        wave[i] = sin(6.283185307179586 * (i + 0.5) / 150);
        alternating[i] = i % 2 ? 1.0 : -1.0;
    }
    for (int i = 0; i < 150; i++) {
        const double t = (i + 0.5) / 150, off = signal(&its, G, one, t) - 1.0;
        worst[0] = fmax(worst[0], fabs(off));
        squares[0] += off * off / 150;
        worst[1] = fmax(worst[1], fabs(signal(&its, G, wave, t) - wave[i]));
        const double lost = signal(&its, G, alternating, t) - alternating[i];
        squares[1] += lost * lost / 150;
    }
    ck_assert_double_eq_tol(worst[0], 0.3493, 5e-5);
    ck_assert_double_eq_tol(sqrt(squares[0]), 0.04524, 5e-6);
    ck_assert_double_eq_tol(fabs(signal(&its, G, one, 75.5 / 150) - 1.0), 4.5e-5, 5e-7);
    ck_assert_double_eq_tol(worst[1], 1.6e-3, 5e-5);
    ck_assert_double_eq_tol(sqrt(squares[1]), 0.998, 5e-4);
    free(G);
}
END_TEST

/* A constant that meets nothing but itself stays what it is over ten updates, but for what its right end loses
 * each time: that becomes a dip at tau, tau^2, ... */
START_TEST(a_constant_survives_ten_updates)
{
    const lam_infinite its = config_of(150, 150, 512, 0.5);
    const int N = its.ltm_basis, M = its.ltm_samples, L = its.ltm_block;
    double *first = first_of(&its), *G = update_of(&its), B[150], next[150];
    for (int j = 0; j < N; j++) {
        B[j] = 0.0;
        for (int i = 0; i < L; i++)
            B[j] += first[i * N + j];
    }
    for (int round = 0; round < 10; round++) {
        memset(next, 0, sizeof next);
        for (int p = 0; p < M + L; p++) {
            double x = p < M ? 0.0 : 1.0;
            for (int j = 0; p < M && j < N; j++)
                x += B[j] * lam_bump_at(lam_basis_bump(&its, j), lam_basis_sample(&its, p));
            for (int j = 0; j < N; j++)
                next[j] += x * G[p * N + j];
        }
        memcpy(B, next, sizeof B);
    }
    double mean = 0.0;
    for (int i = 5; i < 95; i++) {
        double x = 0.0;
        for (int j = 0; j < N; j++)
            x += B[j] * lam_bump_at(lam_basis_bump(&its, j), i / 100.0);
        ck_assert_msg(x > 0.8 && x < 1.1, "%g at %g", x, i / 100.0);
        mean += x / 90.0;
    }
    ck_assert_msg(fabs(mean - 1.0) < 0.02, "%g on average", mean);
    free(first);
    free(G);
}
END_TEST

/* Without zeros beyond its ends a constant keeps its ends too; odd blocks are as good as even ones. */
START_TEST(without_padding_the_ends_stay)
{
    for (int L = 39; L <= 40; L++) {
        lam_infinite its = config_of(20, L, 40, 1e-4);
        double one[40];
        for (int i = 0; i < 40; i++)
            one[i] = 1.0;
        its.ltm_widths.v[0] = 0.05;
        its.ltm_widths.v[1] = 0.1;
        double *padded = first_of(&its);
        its.ltm_padding = 0;
        double *plain = first_of(&its);
        ck_assert_double_lt(fabs(signal(&its, plain, one, 0.5 / L) - 1.0), 0.02);
        ck_assert_double_gt(fabs(signal(&its, padded, one, 0.5 / L) - 1.0), 0.2);
        free(padded);
        free(plain);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, a_first_fit_has_the_specified_numbers);
    tcase_add_test(tests, a_tiny_fit_has_the_specified_numbers);
    tcase_add_test(tests, an_update_has_the_specified_numbers);
    tcase_add_test(tests, a_fit_keeps_what_is_smooth);
    tcase_add_test(tests, a_constant_survives_ten_updates);
    tcase_add_test(tests, without_padding_the_ends_stay);
    return test_run("mem/basis", tests);
}
