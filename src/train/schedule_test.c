/* schedule_test.c -- learning rates at the points one can work out by hand. */
#include "train/schedule.h"

#include "support/suite.h"

#include <math.h>

START_TEST(cosine_starts_high_and_ends_low)
{
    const lam_schedule s = {LAM_SCHEDULE_COSINE, 1.0, 0.1, 0, 100, 0};
    ck_assert_double_eq_tol(lam_schedule_lr(&s, 0), 1.0, 1e-15);
    ck_assert_double_eq_tol(lam_schedule_lr(&s, 50), 0.55, 1e-15);
    ck_assert_double_eq_tol(lam_schedule_lr(&s, 100), 0.1, 1e-15);
    ck_assert_double_eq_tol(lam_schedule_lr(&s, 1000), 0.1, 1e-15);
    for (long t = 1; t <= 100; t++)
        ck_assert_double_lt(lam_schedule_lr(&s, t), lam_schedule_lr(&s, t - 1));
}
END_TEST

START_TEST(linear_is_a_line)
{
    const lam_schedule s = {LAM_SCHEDULE_LINEAR, 2.0, 1.0, 0, 10, 0};
    for (long t = 0; t <= 10; t++)
        ck_assert_double_eq_tol(lam_schedule_lr(&s, t), 2.0 - (double)t / 10.0, 1e-15);
}
END_TEST

START_TEST(wsd_stays_and_then_falls_in_a_line)
{
    const lam_schedule s = {LAM_SCHEDULE_WSD, 2.0, 1.0, 0, 100, 0.2};
    for (long t = 0; t <= 80; t++)
        ck_assert_double_eq_tol(lam_schedule_lr(&s, t), 2.0, 1e-14);
    for (long t = 80; t <= 100; t++)
        ck_assert_double_eq_tol(lam_schedule_lr(&s, t), 2.0 - (double)(t - 80) / 20.0, 1e-14);
    ck_assert_double_eq(lam_schedule_lr(&s, 1000), 1.0);
    const lam_schedule constant = {LAM_SCHEDULE_WSD, 2.0, 1.0, 0, 100, 0.0};
    ck_assert_double_eq(lam_schedule_lr(&constant, 100), 2.0);
}
END_TEST

START_TEST(a_clock_may_say_how_far_a_schedule_is)
{
    const lam_schedule s = {LAM_SCHEDULE_LINEAR, 2.0, 0.0, 10, 100, 0.0};
    ck_assert_double_eq_tol(lam_schedule_lr_at(&s, 0, 0.5), 0.2, 1e-15); /* warm-up counts steps */
    ck_assert_double_eq_tol(lam_schedule_lr_at(&s, 10, 0.5), 1.0, 1e-15);
    ck_assert_double_eq_tol(lam_schedule_lr_at(&s, 10, 1.5), 0.0, 1e-15);
    const lam_schedule cosine = {LAM_SCHEDULE_COSINE, 2.0, 0.0, 0, 0, 0.0};
    ck_assert_double_eq_tol(lam_schedule_lr_at(&cosine, 5, 0.5), 1.0, 1e-15);
    ck_assert_double_eq_tol(lam_schedule_lr_at(&cosine, 5, 2.0), 0.0, 1e-15);
}
END_TEST

START_TEST(warm_up_rises_from_the_first_step)
{
    for (int kind = 0; kind < 6; kind++) {
        const lam_schedule s = {(lam_schedule_kind)kind, 1.0, 0.0, 10, 100, 0.2};
        const double peak = kind == LAM_SCHEDULE_INV_SQRT ? 1.0 / sqrt(10.0) : 1.0;
        for (long t = 0; t < 10; t++)
            ck_assert_double_eq_tol(lam_schedule_lr(&s, t), peak * ((double)t + 1.0) / 10.0, 1e-12);
    }
}
END_TEST

START_TEST(inverse_square_root_falls_after_the_warm_up)
{
    const lam_schedule s = {LAM_SCHEDULE_INV_SQRT, 3.0, 0.0, 4, 0, 0};
    ck_assert_double_eq_tol(lam_schedule_lr(&s, 3), 1.5, 1e-15);
    ck_assert_double_eq_tol(lam_schedule_lr(&s, 15), 0.75, 1e-15);
}
END_TEST

/* As PyTorch's ReduceLROnPlateau: better by a ten-thousandth, or it was in vain. */
START_TEST(the_rate_falls_after_evaluations_in_vain)
{
    static const struct {
        double loss;
        int falls;
        double factor;
    } steps[] = {{10.0, 0, 1.0}, {9.9995, 0, 1.0}, {9.9995, 1, 0.5}, {9.0, 0, 0.5},
                 {9.5, 0, 0.5},  {8.99, 0, 0.5},   {9.0, 0, 0.5},    {9.0, 1, 0.3},
                 {9.0, 0, 0.3},  {9.0, 0, 0.3},    {8.0, 0, 0.3}};
    const lam_schedule s = {.kind = LAM_SCHEDULE_DEV_PERF, .lr = 2.0, .lr_min = 0.6};
    lam_plateau p = {.factor = 1.0, .best = INFINITY};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        ck_assert_int_eq(lam_plateau_note(&p, &s, 0.5, 1, steps[i].loss), steps[i].falls);
        ck_assert_double_eq_tol(p.factor, steps[i].factor, 1e-15);
    }
    ck_assert_double_eq(p.best, 8.0);
}
END_TEST

/* Checkpoints and options know a schedule by its name. */
START_TEST(names_stand_in_the_order_of_the_kinds)
{
    ck_assert_str_eq(lam_schedule_names[LAM_SCHEDULE_COSINE], "cosine");
    ck_assert_str_eq(lam_schedule_names[LAM_SCHEDULE_LINEAR], "linear");
    ck_assert_str_eq(lam_schedule_names[LAM_SCHEDULE_INV_SQRT], "inv_sqrt");
    ck_assert_str_eq(lam_schedule_names[LAM_SCHEDULE_CONSTANT], "constant");
    ck_assert_str_eq(lam_schedule_names[LAM_SCHEDULE_DEV_PERF], "dev_perf");
    ck_assert_str_eq(lam_schedule_names[LAM_SCHEDULE_WSD], "wsd");
    ck_assert_ptr_null(lam_schedule_names[LAM_SCHEDULE_WSD + 1]);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, cosine_starts_high_and_ends_low);
    tcase_add_test(tests, linear_is_a_line);
    tcase_add_test(tests, wsd_stays_and_then_falls_in_a_line);
    tcase_add_test(tests, a_clock_may_say_how_far_a_schedule_is);
    tcase_add_test(tests, warm_up_rises_from_the_first_step);
    tcase_add_test(tests, inverse_square_root_falls_after_the_warm_up);
    tcase_add_test(tests, the_rate_falls_after_evaluations_in_vain);
    tcase_add_test(tests, names_stand_in_the_order_of_the_kinds);
    return test_run("train/schedule", tests);
}
