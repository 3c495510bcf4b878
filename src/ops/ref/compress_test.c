/* compress_test.c -- pooling by hand, and the gradient of the squared distance. */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <stdio.h>

enum { SEED = 17, ROWS = 3, WIDTH = 4, LD = 5 };

START_TEST(pooling_goes_column_by_column_and_clears_padding)
{
    const double in[] = {1, -2, 7, 3, -5, 9, -4, -6, 9}; /* three rows of ld 3, width 2 */
    double mean[3] = {7, 7, 7}, top[3] = {7, 7, 7};
    lam_pool a = {.kind = LAM_MEAN, .rows = 1, .group = 3, .width = 2, .ld = 3, .in = in};
    a.out = mean;
    lam_ref_pool(test_ref, &a);
    a.kind = LAM_MAXIMUM;
    a.out = top;
    lam_ref_pool(test_ref, &a);
    ck_assert_double_eq(mean[0], 0.0);
    ck_assert_double_eq_tol(mean[1], -13.0 / 3.0, 1e-15);
    ck_assert_double_eq(top[0], 3.0);
    ck_assert_double_eq(top[1], -2.0);
    ck_assert_double_eq(mean[2], 0.0);
    ck_assert_double_eq(top[2], 0.0);
}
END_TEST

typedef struct pair {
    double a[ROWS * LD], b[ROWS * LD], d[ROWS * LD], sum[ROWS];
    lam_distance op;
} pair;

static double loss(const void *user)
{
    const pair *t = user;
    double d[ROWS * LD], sum[ROWS];
    lam_distance op = t->op;
    op.d = d;
    op.sum = sum;
    lam_ref_distance(test_ref, &op);
    return op.scale * (sum[0] + sum[1] + sum[2]);
}

START_TEST(distance_has_the_gradient_of_its_scaled_sum)
{
    lam_rng rng = {.key = SEED};
    pair t = {0};
    test_fill(&rng, t.a, ROWS * LD);
    test_fill(&rng, t.b, ROWS * LD);
    t.op = (lam_distance){.rows = ROWS,
                          .width = WIDTH,
                          .ld = LD,
                          .weight = 0.7,
                          .scale = 2.5,
                          .a = t.a,
                          .b = t.b,
                          .sum = t.sum,
                          .d = t.d};
    lam_ref_distance(test_ref, &t.op);
    test_gradient("a", t.a, t.d, ROWS * LD, loss, &t); /* padding has none */
    double d[ROWS * LD];
    for (int i = 0; i < ROWS * LD; i++)
        d[i] = t.d[i];
    t.op.d = t.b;
    lam_ref_distance(test_ref, &t.op);
    ck_assert_mem_eq(t.b, d, sizeof d);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_test(tests, pooling_goes_column_by_column_and_clears_padding);
    tcase_add_test(tests, distance_has_the_gradient_of_its_scaled_sum);
    return test_run("ops/ref/compress", tests);
}
