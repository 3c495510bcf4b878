/* linear_test.c -- maps on rows in blocks, against loops that know nothing of products. */
#include "nn/linear.h"

#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 5, OUT = 4, LDW = 7, MOST = 4096 };

/* Where rows lie: row r of block b at b * step + r * ld. */
static const struct {
    const char *what;
    int blocks, rows;
    size_t step_x, ld_x, step_y, ld_y;
} cases[] = {
    {.what = "one block", .blocks = 1, .rows = 6, .step_x = 0, .ld_x = 5, .step_y = 0, .ld_y = 4},
    {.what = "one stretch",
     .blocks = 3,
     .rows = 2,
     .step_x = 12,
     .ld_x = 6,
     .step_y = 8,
     .ld_y = 4},
    {.what = "a row of each",
     .blocks = 4,
     .rows = 1,
     .step_x = 20,
     .ld_x = 5,
     .step_y = 9,
     .ld_y = 4},
    {.what = "apart", .blocks = 3, .rows = 2, .step_x = 31, .ld_x = 6, .step_y = 17, .ld_y = 5},
    {.what = "x alone apart",
     .blocks = 2,
     .rows = 3,
     .step_x = 40,
     .ld_x = 5,
     .step_y = 12,
     .ld_y = 4},
    {.what = "nothing", .blocks = 3, .rows = 0, .step_x = 31, .ld_x = 6, .step_y = 17, .ld_y = 5},
};
enum { CASES = sizeof cases / sizeof *cases };

static double x[MOST], y[MOST], w[OUT * LDW], bias[OUT], dw[OUT * LDW], want[MOST], got[MOST];
static lam_linear l;
static lam_rows at_x, at_y;

static void prepare(int i)
{
    lam_rng rng = test_rng(17 + (uint64_t)i);
    test_fill(&rng, x, MOST);
    test_fill(&rng, y, MOST);
    test_fill(&rng, w, OUT * LDW);
    test_fill(&rng, bias, OUT);
    test_fill(&rng, dw, OUT * LDW);
    l = (lam_linear){.dev = test_ref,
                     .blocks = cases[i].blocks,
                     .rows = cases[i].rows,
                     .in = IN,
                     .out = OUT,
                     .ldw = LDW};
    at_x = (lam_rows){.p = x, .step = cases[i].step_x, .ld = cases[i].ld_x};
    at_y = (lam_rows){.p = y, .step = cases[i].step_y, .ld = cases[i].ld_y};
}

static size_t row_of(lam_rows rows, int b, int r)
{
    return (size_t)b * rows.step + (size_t)r * rows.ld;
}

/* All of it: what lies between the rows must stay as it was. */
static void compare(const char *what, const double *have, const double *should, size_t n)
{
    for (size_t k = 0; k < n; k++)
        ck_assert_msg(fabs(have[k] - should[k]) < 1e-12, "%s, element %zu: %g, not %g", what, k,
                      have[k], should[k]);
}

START_TEST(forward_is_a_sum_over_columns)
{
    for (int add = 0; add < 2; add++) {
        prepare(_i);
        memcpy(want, y, sizeof want);
        for (int b = 0; b < l.blocks; b++)
            for (int r = 0; r < l.rows; r++)
                for (int o = 0; o < OUT; o++) {
                    double sum = bias[o];
                    for (int i = 0; i < IN; i++)
                        sum += x[row_of(at_x, b, r) + (size_t)i] * w[o * LDW + i];
                    double *to = &want[row_of(at_y, b, r) + (size_t)o];
                    sum += add ? *to : 0.0;
                    *to = sum > 0.0 ? sum : 0.0;
                }
        lam_linear_fwd(&l, at_y, at_x, (lam_weights){.p = w, .type = LAM_ACT},
                       &(lam_epilogue){.add = add, .bias = bias, .relu = 1, .type = LAM_ACT});
        compare(cases[_i].what, y, want, MOST);
    }
}
END_TEST

START_TEST(backward_to_the_rows_is_the_transpose)
{
    const double beta = _i % 2;
    prepare(_i);
    memcpy(want, x, sizeof want);
    for (int b = 0; b < l.blocks; b++)
        for (int r = 0; r < l.rows; r++)
            for (int i = 0; i < IN; i++) {
                double sum = beta * x[row_of(at_x, b, r) + (size_t)i];
                for (int o = 0; o < OUT; o++)
                    sum += y[row_of(at_y, b, r) + (size_t)o] * w[o * LDW + i];
                want[row_of(at_x, b, r) + (size_t)i] = sum;
            }
    lam_linear_bwd_x(&l, at_x, at_y, (lam_weights){.p = w, .type = LAM_ACT}, beta);
    compare(cases[_i].what, x, want, MOST);
}
END_TEST

START_TEST(backward_to_the_weights_sums_over_all_rows)
{
    prepare(_i);
    memcpy(want, dw, sizeof dw);
    for (int b = 0; b < l.blocks; b++)
        for (int r = 0; r < l.rows; r++)
            for (int o = 0; o < OUT; o++)
                for (int i = 0; i < IN; i++)
                    want[o * LDW + i] +=
                        y[row_of(at_y, b, r) + (size_t)o] * x[row_of(at_x, b, r) + (size_t)i];
    lam_linear_bwd_w(&l, dw, at_y, at_x);
    compare(cases[_i].what, dw, want, OUT * LDW);
}
END_TEST

/* h = relu(z + bias) of one block: dz = dh where h > 0, and dbias its column sums. */
START_TEST(backward_through_relu_stops_where_nothing_passed)
{
    enum { ROWS = 6 };
    double h[ROWS * IN], dbias[IN];
    prepare(0);
    for (int k = 0; k < ROWS * IN; k++)
        h[k] = x[k] > 0.0 ? 2.0 * x[k] : 0.0;
    memset(want, 0, sizeof want);
    for (int i = 0; i < IN; i++)
        dbias[i] = want[ROWS * IN + i] = i;
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < IN; i++) {
            double sum = 0.0;
            for (int o = 0; o < OUT; o++)
                sum += 2.0 * y[r * OUT + o] * w[o * LDW + i];
            want[r * IN + i] = h[r * IN + i] > 0.0 ? sum : 0.0;
            want[ROWS * IN + i] += want[r * IN + i];
        }
    lam_linear_bwd_relu(&l, (lam_rows){.p = got, .ld = IN}, at_y,
                        (lam_weights){.p = w, .type = LAM_ACT},
                        &(lam_passed){.h = h, .scale = 2.0, .dbias = dbias});
    compare("dz", got, want, ROWS * IN);
    compare("dbias", dbias, want + ROWS * IN, IN);
}
END_TEST

START_TEST(rows_of_a_buffer_begin_at_the_first)
{
    const lam_rows rows = lam_rows_from(test_ref, x, 10, 6, 3);
    ck_assert_ptr_eq(rows.p, x + 18);
    ck_assert_uint_eq(rows.step, 60);
    ck_assert_uint_eq(rows.ld, 6);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_loop_test(tests, forward_is_a_sum_over_columns, 0, CASES);
    tcase_add_loop_test(tests, backward_to_the_rows_is_the_transpose, 0, CASES);
    tcase_add_loop_test(tests, backward_to_the_weights_sums_over_all_rows, 0, CASES);
    tcase_add_test(tests, backward_through_relu_stops_where_nothing_passed);
    tcase_add_test(tests, rows_of_a_buffer_begin_at_the_first);
    return test_run("nn/linear", tests);
}
