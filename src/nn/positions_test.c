/* positions_test.c -- the tables of encodings, row by row. */
#include "model/stack_int.h"

#include "support/suite.h"
#include "support/toy.h"

#include <math.h>

enum { N = 4, M = 5, CLAMP = 3 };

static const struct {
    int attn_type, clamp;
    int ahead[2 * M]; /* the positions that the rows of the look-ahead table encode */
    int rows;
} cases[] = {
    {0, 0, {0}, 0},
    {0, CLAMP, {0}, 0},
    {3, 0, {1, 2, 3, 4, 5}, M},
    {3, CLAMP, {1, 2, 3, 3, 3}, M},
    {32, CLAMP, {1, 2, 3, 3, 3}, M},
    {31, 0, {-1, -2, -3, -4, -5}, M},
    {31, CLAMP, {-1, -2, -3, -4, -5}, M}, /* the authors clamp no negative distances */
    {33, 0, {4, 3, 2, 1, 0, 1, 2, 3, 4, 5}, 2 * M},
    {33, CLAMP, {3, 3, 2, 1, 0, 1, 2, 3, 3, 3}, 2 * M},
};

static void check_row(const double *row, int D, double position)
{
    for (int t = 0; t < D / 2; t++) {
        const double angle = position * pow(10000.0, -2.0 * t / D);
        ck_assert_double_eq_tol(row[t], sin(angle), 1e-15);
        ck_assert_double_eq_tol(row[D / 2 + t], cos(angle), 1e-15);
    }
}

START_TEST(every_row_encodes_its_distance)
{
    lam_config cfg =
        toy_config(cases[_i].attn_type == 0 ? "xl" : "lamemo", cases[_i].attn_type, N, M);
    cfg.clamp_len = cases[_i].clamp;
    toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = 1, .N = N, .M = M}, 1);
    const lam_positions *pos = &t.stack->pos;
    const int D = cfg.d_model;
    ck_assert_int_eq(pos->past_rows, M + N);
    ck_assert_int_eq(pos->ahead_rows, cases[_i].rows);
    for (int i = 0; i < M + N; i++) /* ref's memory is the host's */
        check_row((const double *)pos->past + i * D, D,
                  cfg.clamp_len > 0 && i > cfg.clamp_len ? cfg.clamp_len : i);
    for (int i = 0; i < cases[_i].rows; i++)
        check_row((const double *)pos->ahead + i * D, D, cases[_i].ahead[i]);
    toy_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, every_row_encodes_its_distance, 0, sizeof cases / sizeof *cases);
    return test_run("nn/positions", tests);
}
