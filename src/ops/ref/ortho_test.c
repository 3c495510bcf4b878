/* ortho_test.c -- Muon's momentum, polynomial and even rows, against the formulas written another way. */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 5, LENGTH = 20, SIZE = 6, COUNT = 2 };

static const size_t places[COUNT] = {3, 12};

START_TEST(momentum_is_a_sum_of_gradients_and_x_has_length_one)
{
    enum { STEPS = 4 };
    lam_rng rng = {.key = SEED};
    const double beta = 0.8, clip = _i * 0.5;
    double grad[STEPS][LENGTH], m[LENGTH] = {0}, x[COUNT * SIZE], norm[STEPS];
    for (int t = 0; t < STEPS; t++) {
        test_fill(&rng, grad[t], LENGTH);
        norm[t] = 0.7 + 0.1 * t;
        lam_ref_ortho_begin(test_ref, &(lam_ortho_begin){.offset = places,
                                                         .count = COUNT,
                                                         .size = SIZE,
                                                         .beta = beta,
                                                         .clip = clip,
                                                         .norm = &norm[t],
                                                         .grad = grad[t],
                                                         .m = m,
                                                         .x = x});
    }
    for (int k = 0; k < COUNT; k++) {
        double u[SIZE], squares = 0.0;
        for (size_t i = 0; i < SIZE; i++) {
            double sum = 0.0; /* sum of beta^(age) g, and the same with one more beta, plus g */
            for (int t = 0; t < STEPS; t++)
                sum += pow(beta, STEPS - 1 - t) * grad[t][places[k] + i] *
                       (clip > 0.0 && clip < norm[t] + 1e-6 ? clip / (norm[t] + 1e-6) : 1.0);
            ck_assert_double_eq_tol(m[places[k] + i], sum, 1e-14);
            const double last = grad[STEPS - 1][places[k] + i];
            u[i] = beta * sum + last * (clip > 0.0 && clip < norm[STEPS - 1] + 1e-6
                                            ? clip / (norm[STEPS - 1] + 1e-6)
                                            : 1.0);
            squares += u[i] * u[i];
        }
        for (size_t i = 0; i < SIZE; i++)
            ck_assert_double_eq_tol(x[(size_t)k * SIZE + i], u[i] / sqrt(squares), 1e-14);
    }
    for (size_t i = 0; i < LENGTH; i++) /* what lies between is left alone */
        if (i < places[0] || (i >= places[0] + SIZE && i < places[1]) || i >= places[1] + SIZE)
            ck_assert_double_eq(m[i], 0.0);
}
END_TEST

START_TEST(a_norm_that_is_not_finite_moves_nothing)
{
    static const double bad[] = {INFINITY, NAN};
    const double grad[SIZE] = {1.0, NAN, INFINITY, 2.0, 3.0, 4.0};
    const size_t place = 0;
    double m[SIZE] = {5.0, 6.0, 7.0, 8.0, 9.0, 10.0}, before[SIZE], x[SIZE];
    memcpy(before, m, sizeof m);
    lam_ref_ortho_begin(test_ref, &(lam_ortho_begin){.offset = &place,
                                                     .count = 1,
                                                     .size = SIZE,
                                                     .beta = 0.9,
                                                     .norm = &bad[_i],
                                                     .grad = grad,
                                                     .m = m,
                                                     .x = x});
    ck_assert_mem_eq(m, before, sizeof m);
    for (int i = 0; i < SIZE; i++)
        ck_assert_double_eq(x[i], 0.0);
}
END_TEST

START_TEST(the_polynomial_adds_to_the_diagonal_alone)
{
    const double A[8] = {1, 2, 3, 4, 5, 6, 7, 8}, P[8] = {10, 20, 30, 40, 50, 60, 70, 80};
    double q[8];
    lam_ref_ortho_mix(test_ref, &(lam_ortho_mix){2, 2, 100.0, 1.0, 2.0, A, P, q});
    for (int i = 0; i < 8; i++)
        ck_assert_double_eq(q[i], A[i] + 2.0 * P[i] + (i % 4 == 0 || i % 4 == 3 ? 100.0 : 0.0));
}
END_TEST

START_TEST(rows_keep_their_direction_and_get_one_length)
{
    lam_rng rng = {.key = SEED};
    double before[LENGTH], x[LENGTH];
    test_fill(&rng, before, LENGTH);
    before[places[1]] = before[places[1] + 1] = before[places[1] + 2] = 0.0;
    memcpy(x, before, sizeof x);
    lam_ref_ortho_even(test_ref, &(lam_ortho_even){places, COUNT, 2, SIZE / 2, 0.75, x});
    for (size_t i = 0; i < LENGTH; i++) /* what lies between, and a row without a direction */
        if (i < places[0] || (i >= places[0] + SIZE && i < places[1] + 3) || i >= places[1] + SIZE)
            ck_assert_double_eq(x[i], before[i]);
    for (int row = 0; row < 3; row++) {
        const size_t at = row < 2 ? places[0] + 3 * (size_t)row : places[1] + 3;
        ck_assert_double_eq_tol(hypot(hypot(x[at], x[at + 1]), x[at + 2]), 0.75, 1e-14);
        for (size_t i = 1; i < 3; i++)
            ck_assert_double_eq_tol(x[at] * before[at + i], x[at + i] * before[at], 1e-14);
        ck_assert_double_gt(x[at] * before[at], 0.0);
    }
}
END_TEST

START_TEST(a_row_grows_a_million_times_at_most)
{
    double x[] = {3e-9, 4e-9, 3e-6, 4e-6};
    const size_t place = 0;
    lam_ref_ortho_even(test_ref, &(lam_ortho_even){&place, 1, 2, 2, 1.0, x});
    ck_assert_double_eq_tol(x[0], 3e-3, 1e-17);
    ck_assert_double_eq_tol(x[1], 4e-3, 1e-17);
    ck_assert_double_eq_tol(x[2], 0.6, 1e-14); /* by 200,000 */
    ck_assert_double_eq_tol(x[3], 0.8, 1e-14);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_loop_test(tests, momentum_is_a_sum_of_gradients_and_x_has_length_one, 0, 3);
    tcase_add_loop_test(tests, a_norm_that_is_not_finite_moves_nothing, 0, 2);
    tcase_add_test(tests, the_polynomial_adds_to_the_diagonal_alone);
    tcase_add_test(tests, rows_keep_their_direction_and_get_one_length);
    tcase_add_test(tests, a_row_grows_a_million_times_at_most);
    return test_run("ops/ref/ortho", tests);
}
