/* parts_test.c -- errors of means: against the textbook, and against how much means really vary. */
#include "measure/parts.h"

#include "support/alloc.h"
#include "support/suite.h"

#include <math.h>

START_TEST(stretches_are_neighbours_and_all_are_used)
{
    static const int shapes[][2] = {{1, 100}, {4, 25}, {3, 7}, {64, 5}, {4, 1}, {9, 40}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int B = shapes[s][0], steps = shapes[s][1];
        int used[LAM_PARTS] = {0}, last = 0, kinds = 0;
        for (int b = 0; b < B; b++)
            for (int i = 0; i < steps; i++) {
                const int part = lam_part_of(i, steps, b, B);
                ck_assert_int_ge(part, last); /* column after column */
                ck_assert_int_lt(part, LAM_PARTS);
                kinds += used[part]++ == 0;
                last = part;
            }
        const int most = B < 8 ? B * steps : B; /* whole columns, if there are enough */
        ck_assert_int_eq(kinds, most < LAM_PARTS ? most : LAM_PARTS);
    }
}
END_TEST

/* Of a plain mean of equal stretches the jackknife's error is the standard error of the stretches' means. */
START_TEST(a_mean_has_its_standard_error)
{
    lam_rng rng = test_rng(5);
    lam_parted p;
    double x[LAM_PARTS], mean = 0.0, squares = 0.0;
    ck_assert_int_eq(lam_parted_make(&p, 2), LAM_OK);
    for (int k = 0; k < LAM_PARTS; k++) {
        x[k] = lam_rng_normal(&rng);
        mean += x[k] / LAM_PARTS;
        lam_parted_add(&p, k, 1, 3.0 * x[k], 2.0);
        lam_parted_add(&p, k, 1, x[k], 2.0);
        lam_parted_add(&p, k, 0, 0.0, 1.0);
    }
    for (int k = 0; k < LAM_PARTS; k++)
        squares += (x[k] - mean) * (x[k] - mean);
    const lam_estimate e = lam_parted_estimate(&p, 1);
    ck_assert_int_eq(e.parts, LAM_PARTS);
    ck_assert_double_eq_tol(e.value, mean, 1e-14);
    ck_assert_double_eq_tol(e.error, sqrt(squares / (LAM_PARTS - 1) / LAM_PARTS), 1e-14);
    lam_parted_free(&p);
}
END_TEST

typedef struct pair {
    lam_parted x, y;
} pair;

static double ratio(const void *data, int without)
{
    const pair *p = data;
    return lam_parted_mean(&p->x, 0, without) / lam_parted_mean(&p->y, 0, without);
}

/* What two share cancels: the error of a ratio is that of what they do not share, and it is how much the ratio
 * varies from text to text. */
START_TEST(a_ratio_has_the_error_it_varies_by)
{
    enum { TEXTS = 400 };
    lam_rng rng = test_rng(6);
    double values[TEXTS], mean = 0.0, squares = 0.0, promised = 0.0, alone = 0.0;
    for (int t = 0; t < TEXTS; t++) {
        pair p;
        ck_assert_int_eq(lam_parted_make(&p.x, 1), LAM_OK);
        ck_assert_int_eq(lam_parted_make(&p.y, 1), LAM_OK);
        for (int k = 0; k < LAM_PARTS; k++) {
            const double hard = 3.0 + lam_rng_normal(&rng);
            lam_parted_add(&p.x, k, 0, 1.1 * hard + 0.1 * lam_rng_normal(&rng), 1.0);
            lam_parted_add(&p.y, k, 0, hard, 1.0);
        }
        const lam_estimate e = lam_estimate_of(ratio, &p, &p.x), x = lam_parted_estimate(&p.x, 0);
        values[t] = e.value;
        mean += e.value / TEXTS;
        promised += e.error / TEXTS;
        alone += x.error / x.value / TEXTS;
        lam_parted_free(&p.x);
        lam_parted_free(&p.y);
    }
    for (int t = 0; t < TEXTS; t++)
        squares += (values[t] - mean) * (values[t] - mean) / (TEXTS - 1);
    ck_assert_double_eq_tol(mean, 1.1, 0.003);
    ck_assert_double_eq_tol(promised / sqrt(squares), 1.0, 0.15);
    ck_assert_double_gt(alone, 5.0 * promised);
}
END_TEST

START_TEST(what_is_too_close_is_not_decided)
{
    const lam_estimate sure = {1.0, 0.4, LAM_PARTS}, close = {1.0, 0.5, LAM_PARTS};
    const lam_estimate few = {1.0, 0.1, 2}, none = {1.0, NAN, 1};
    ck_assert_int_eq(lam_estimate_side(&sure, 0.0), 1);
    ck_assert_int_eq(lam_estimate_side(&sure, 2.0), -1);
    ck_assert_int_eq(lam_estimate_side(&close, 0.0), 0);
    ck_assert_int_eq(lam_estimate_side(&few, 0.0), 0); /* two stretches say little */
    ck_assert_int_eq(lam_estimate_side(&none, 0.0), 0);
}
END_TEST

START_TEST(empty_stretches_do_not_count)
{
    lam_parted p;
    ck_assert_int_eq(lam_parted_make(&p, 1), LAM_OK);
    ck_assert(isnan(lam_parted_estimate(&p, 0).value));
    lam_parted_add(&p, 3, 0, 2.0, 1.0);
    ck_assert(isnan(lam_parted_estimate(&p, 0).error));
    lam_parted_add(&p, 9, 0, 4.0, 1.0);
    const lam_estimate e = lam_parted_estimate(&p, 0);
    ck_assert_int_eq(e.parts, 2);
    ck_assert_double_eq_tol(e.value, 3.0, 1e-15);
    ck_assert_double_eq_tol(e.error, 1.0, 1e-15);
    lam_parted_free(&p);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_parted p;
        const lam_status status = lam_parted_make(&p, 7);
        const int failed = test_alloc_stop();
        ck_assert_int_eq(status, failed ? LAM_ERR_MEMORY : LAM_OK);
        lam_parted_free(&p);
    }
}
END_TEST

START_TEST(a_number_is_as_exact_as_its_error)
{
    static const struct {
        lam_estimate e;
        const char *shown;
    } cases[] = {
        {{0.00412, 0.00487, 9}, "0.0041 \xc2\xb1 0.0049"},
        {{1.111823, 0.000334, 9}, "1.1118 \xc2\xb1 0.0003"},
        {{-5.3, 12.7, 9},
         "\xe2\x88\x92"
         "5 \xc2\xb1 13"},
        {{-0.0000004, 0.003, 9}, "0.0000 \xc2\xb1 0.0030"}, /* no minus before nothing */
        {{123456.7, 250, 9}, "123457 \xc2\xb1 250"},
        {{0.5, 0, 9}, "0.5000"},
        {{0.5, NAN, 1}, "0.5000"},
        {{NAN, NAN, 0}, "nan"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        ck_assert_str_eq(lam_estimate_shown(&cases[k].e).text, cases[k].shown);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, stretches_are_neighbours_and_all_are_used);
    tcase_add_test(tests, a_mean_has_its_standard_error);
    tcase_add_test(tests, a_ratio_has_the_error_it_varies_by);
    tcase_add_test(tests, what_is_too_close_is_not_decided);
    tcase_add_test(tests, empty_stretches_do_not_count);
    tcase_add_test(tests, a_number_is_as_exact_as_its_error);
    tcase_add_test(tests, every_allocation_may_fail);
    return test_run("measure/parts", tests);
}
