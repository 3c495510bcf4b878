/* positions_test.c -- the tables of encodings row by row, the keys made of them, and where gradients go. */
#include "model/stack_int.h"

#include "support/gradient.h"
#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <string.h>

enum { N = 4, M = 5, CLAMP = 3 };

static const struct {
    int attn_type, clamp;
    int rows, ahead[2 * M]; /* the positions that the rows of the look-ahead table encode */
} cases[] = {
    {.attn_type = 0},
    {.attn_type = 0, .clamp = CLAMP},
    {.attn_type = 3, .rows = M, .ahead = {1, 2, 3, 4, 5}},
    {.attn_type = 3, .clamp = CLAMP, .rows = M, .ahead = {1, 2, 3, 3, 3}},
    {.attn_type = 32, .clamp = CLAMP, .rows = M, .ahead = {1, 2, 3, 3, 3}},
    {.attn_type = 31, .rows = M, .ahead = {-1, -2, -3, -4, -5}},
    /* the authors clamp no negative distances */
    {.attn_type = 31, .clamp = CLAMP, .rows = M, .ahead = {-1, -2, -3, -4, -5}},
    {.attn_type = 33, .rows = 2 * M, .ahead = {4, 3, 2, 1, 0, 1, 2, 3, 4, 5}},
    {.attn_type = 33, .clamp = CLAMP, .rows = 2 * M, .ahead = {3, 3, 2, 1, 0, 1, 2, 3, 3, 3}},
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

static toy open_training(const char *memory, int attn_type)
{
    const lam_config cfg = toy_config(memory, attn_type, N, M);
    return toy_open("ref", &cfg, &(lam_stack_options){.B = 1, .N = N, .M = M, .train = 1}, 1);
}

/* r = R W^T by a loop. */
static void check_projected(const double *r, const double *table, const double *w, int rows, int D,
                            int HK)
{
    for (int i = 0; i < rows; i++)
        for (int o = 0; o < HK; o++)
            ck_assert_double_eq_tol(r[i * HK + o], test_dot(table + i * D, w + o * D, (size_t)D),
                                    1e-13);
}

/* <g, r> is linear in W: its gradient is g^T R. */
static void check_carried(const double *dw, const double *g, const double *table, int rows, int D,
                          int HK)
{
    for (int o = 0; o < HK; o++)
        for (int d = 0; d < D; d++) {
            double sum = 0.0;
            for (int i = 0; i < rows; i++)
                sum += g[i * HK + o] * table[i * D + d];
            ck_assert_double_eq_tol(dw[o * D + d], sum, 1e-12);
        }
}

START_TEST(keys_are_projected_rows_and_gradients_go_back_to_the_projection)
{
    static const struct {
        const char *memory;
        int attn_type;
    } rows[] = {
        {.memory = "xl", .attn_type = 0},
        {.memory = "lamemo", .attn_type = 3},
        {.memory = "lamemo", .attn_type = 31},
        {.memory = "lamemo", .attn_type = 33},
    };
    toy t = open_training(rows[_i].memory, rows[_i].attn_type);
    lam_positions *pos = &t.stack->pos;
    lam_params *p = &t.model->params;
    const int D = pos->dims.D, HK = pos->dims.HK;
    lam_rng rng = test_rng(9);
    lam_pos_project(pos, (lam_drop){0});
    for (int l = 0; l < pos->cfg->n_layer; l++) {
        const int id = pos->ids->r_net[l];
        const double *w = lam_vector(p, id), *dw = lam_grad(p, id);
        check_projected(pos->r_past[l], pos->past, w, pos->past_rows, D, HK);
        test_fill(&rng, pos->dr, (size_t)(pos->past_rows * HK));
        lam_pos_past_done(pos, l);
        check_carried(dw, pos->dr, pos->past, pos->past_rows, D, HK);
        if (pos->ahead_rows == 0)
            continue;
        memset(lam_grad(p, id), 0, p->list[id].stored * sizeof(double));
        check_projected(pos->r_ahead[l], pos->ahead, w, pos->ahead_rows, D, HK);
        test_fill(&rng, pos->dr, (size_t)(pos->ahead_rows * HK));
        lam_pos_ahead_done(pos, l);
        check_carried(dw, pos->dr, pos->ahead, pos->ahead_rows, D, HK);
    }
    toy_close(&t);
}
END_TEST

/* Dropout falls on the table, and backward meets the rows that were left. */
START_TEST(dropped_rows_are_those_that_gradients_meet)
{
    toy t = open_training("xl", 0);
    lam_positions *pos = &t.stack->pos;
    const int D = pos->dims.D, HK = pos->dims.HK, id = pos->ids->r_net[1];
    lam_rng rng = test_rng(10);
    int zeros = 0;
    lam_pos_project(pos, (lam_drop){.p = 0.5, .seed = 3, .step = 1});
    const double *used = pos->past_used, *table = pos->past;
    for (int k = 0; k < pos->past_rows * D; k++) {
        zeros += used[k] == 0.0 && table[k] != 0.0;
        ck_assert(used[k] == 0.0 || fabs(used[k] - 2.0 * table[k]) < 1e-15);
    }
    ck_assert_int_gt(zeros, 0);
    check_projected(pos->r_past[1], used, lam_vector(&t.model->params, id), pos->past_rows, D, HK);
    test_fill(&rng, pos->dr, (size_t)(pos->past_rows * HK));
    lam_pos_past_done(pos, 1);
    check_carried(lam_grad(&t.model->params, id), pos->dr, used, pos->past_rows, D, HK);
    toy_close(&t);
}
END_TEST

START_TEST(a_learned_table_has_a_stretch_for_every_layer)
{
    toy t = open_training("xl", 1);
    lam_positions *pos = &t.stack->pos;
    lam_params *p = &t.model->params;
    const int HK = pos->dims.HK, rows = N + M, id = pos->ids->r_emb;
    const double *table = lam_vector(p, id), *dtable = lam_grad(p, id), *dr = pos->dr;
    lam_rng rng = test_rng(11);
    ck_assert_int_eq(pos->past_rows, rows);
    for (int l = 0; l < 2; l++) {
        lam_attn a = {0};
        lam_pos_past(pos, l, &a);
        ck_assert_ptr_eq(a.r, table + l * rows * HK);
        ck_assert_int_eq(a.r_zero, rows - 1); /* distance 0 comes last */
        ck_assert_int_eq(a.r_sign, 1);
        ck_assert_ptr_eq(a.rbias, (double *)lam_vector(p, pos->ids->r_bias) + l * rows * 2);
        lam_pos_past_grad(pos, l, &a);
        ck_assert_ptr_eq(a.du, (double *)lam_grad(p, pos->ids->u) + l * HK);
        ck_assert_ptr_eq(a.dr, dr);
    }
    test_fill(&rng, pos->dr, (size_t)(rows * HK));
    lam_pos_past_done(pos, 1);
    for (int k = 0; k < rows * HK; k++) {
        ck_assert_double_eq(dtable[k], 0.0);
        ck_assert_double_eq(dtable[rows * HK + k], dr[k]);
    }
    toy_close(&t);
}
END_TEST

/* attn_type 2: counted down from the model's length, added to every stream alike. */
START_TEST(absolute_positions_are_added)
{
    enum { B = 2, FIRST = 1, NOW = 2 };
    const lam_config cfg = toy_config("none", 2, N, 0);
    toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = B, .N = N, .M = 0}, 1);
    const lam_positions *pos = &t.stack->pos;
    const int D = pos->dims.D;
    double in[B * NOW * 8], out[B * NOW * 8];
    lam_rng rng = test_rng(12);
    ck_assert(lam_pos_is_absolute(pos));
    ck_assert_int_eq(pos->ids->u, -1);
    for (int i = 0; i < N; i++)
        check_row((const double *)pos->past + i * D, D, N - 1 - i);
    test_fill(&rng, in, (size_t)(B * NOW * D));
    lam_pos_add(pos, out, in, B, FIRST, NOW);
    for (int b = 0; b < B; b++)
        for (int k = 0; k < NOW * D; k++)
            ck_assert_double_eq_tol(
                out[b * NOW * D + k],
                in[b * NOW * D + k] + ((const double *)pos->past)[FIRST * D + k], 1e-15);
    toy_close(&t);
}
END_TEST

/* Which biases a type has, and which of them look-ahead attention gets. */
START_TEST(biases_of_each_type)
{
    static const struct {
        int attn_type, v_ahead, u_ahead; /* has its own */
    } rows[] = {
        {.attn_type = 3, .v_ahead = 1},
        {.attn_type = 31},
        {.attn_type = 32, .v_ahead = 1, .u_ahead = 1},
        {.attn_type = 33, .v_ahead = 1},
    };
    toy t = open_training("lamemo", rows[_i].attn_type);
    const lam_positions *pos = &t.stack->pos;
    lam_params *p = &t.model->params;
    lam_attn a = {0};
    lam_pos_ahead(pos, 0, &a);
    ck_assert_int_eq(pos->ids->v_ahead >= 0, rows[_i].v_ahead);
    ck_assert_int_eq(pos->ids->u_ahead >= 0, rows[_i].u_ahead);
    ck_assert_ptr_eq(a.v, lam_vector(p, rows[_i].v_ahead ? pos->ids->v_ahead : pos->ids->v));
    ck_assert_ptr_eq(a.u, lam_vector(p, rows[_i].u_ahead ? pos->ids->u_ahead : pos->ids->u));
    ck_assert_int_eq(p->list[pos->ids->v].role, LAM_ROLE_VECTOR);
    ck_assert_int_eq(a.r_zero, rows[_i].attn_type == 33 ? M - 1 : -1);
    lam_pos_ahead_grad(pos, 0, &a);
    ck_assert_ptr_eq(a.dv, lam_grad(p, rows[_i].v_ahead ? pos->ids->v_ahead : pos->ids->v));
    toy_close(&t);
}
END_TEST

static double summed;

static void count_columns(lam_dev *dev, const lam_colsum *a)
{
    (void)dev;
    ck_assert_int_gt(a->width, 0);
    ck_assert_int_eq(a->width, a->ld);
    summed += a->width;
}

/* Its gradient is one row of numbers to the device, whose width is an int. */
START_TEST(a_learned_table_may_have_more_than_2_31_numbers)
{
    toy t = open_training("xl", 1);
    lam_positions pos = t.stack->pos;
    lam_dev dev = *pos.dev;
    lam_ops ops = *dev.ops;
    ops.colsum = count_columns;
    dev.ops = &ops;
    pos.dev = &dev;
    pos.dims.HK = 3 << 18;
    pos.past_rows = 10000;
    lam_pos_past_done(&pos, 0);
    ck_assert_double_eq(summed, 1e4 * (3 << 18));
    toy_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, every_row_encodes_its_distance, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tests, keys_are_projected_rows_and_gradients_go_back_to_the_projection, 0,
                        4);
    tcase_add_test(tests, dropped_rows_are_those_that_gradients_meet);
    tcase_add_test(tests, a_learned_table_has_a_stretch_for_every_layer);
    tcase_add_test(tests, a_learned_table_may_have_more_than_2_31_numbers);
    tcase_add_test(tests, absolute_positions_are_added);
    tcase_add_loop_test(tests, biases_of_each_type, 0, 4);
    return test_run("nn/positions", tests);
}
