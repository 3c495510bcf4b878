/* rowwise_test.c -- LayerNorm's invariances, dropout's mean, and the gradient of the residual in all
 * its forms. */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 12 };
enum { BLOCKS = 2, ROWS = 3, WIDTH = 7, LD = 9, STEP = ROWS * LD + 4 };
enum { VIEW = BLOCKS * STEP, FLAT = BLOCKS * ROWS * LD, ALL = BLOCKS * ROWS };

/* A whole residual + LayerNorm with room for both directions. */
typedef struct residual {
    double x[VIEW], y[VIEW], add[FLAT], bias[WIDTH], sum[FLAT], mean[ALL], rstd[ALL];
    double gain[WIDTH], shift[WIDTH];
    double dy[VIEW], dsum[VIEW]; /* the loss is <dy, y> + <dsum, s> */
    double dx[VIEW], dadd[FLAT], dgain[WIDTH], dshift[WIDTH], dbias[WIDTH];
    lam_norm a;
} residual;

/* Zeroes the columns beyond WIDTH and what lies between the blocks. */
static void clear_gaps(double *x, size_t n, size_t step)
{
    for (size_t i = 0; i < n; i++)
        if (i % step >= ROWS * LD || i % step % LD >= WIDTH)
            x[i] = 0.0;
}

static void make(residual *t, lam_rng *rng, int add, int gain)
{
    memset(t, 0, sizeof *t);
    double *const view[] = {t->x, t->dy, t->dsum};
    for (int i = 0; i < 3; i++) {
        test_fill(rng, view[i], VIEW);
        clear_gaps(view[i], VIEW, STEP);
    }
    test_fill(rng, t->add, FLAT);
    clear_gaps(t->add, FLAT, ROWS * LD);
    test_fill(rng, t->bias, WIDTH);
    test_fill(rng, t->gain, WIDTH);
    test_fill(rng, t->shift, WIDTH);
    t->a = (lam_norm){.blocks = BLOCKS,
                      .rows = ROWS,
                      .width = WIDTH,
                      .ld = LD,
                      .eps = 1e-5,
                      .x = {t->x, STEP},
                      .y = {t->y, STEP},
                      .sum = t->sum,
                      .mean = t->mean,
                      .rstd = t->rstd,
                      .dy = {t->dy, STEP},
                      .dx = {t->dx, STEP},
                      .dgain = t->dgain,
                      .dshift = t->dshift};
    if (add) {
        t->a.add = t->add;
        t->a.bias = t->bias;
        t->a.dadd = t->dadd;
        t->a.dbias = t->dbias;
    }
    if (gain) {
        t->a.gain = t->gain;
        t->a.shift = t->shift;
    }
}

/* <dy, y> + <dsum, s>, where s is x, the sum, or y itself. */
static double residual_loss(const void *user)
{
    const residual *t = user;
    double y[VIEW] = {0}, sum[FLAT] = {0}, mean[ALL], rstd[ALL], loss;
    lam_norm a = t->a;
    a.y.p = y;
    a.sum = sum;
    a.mean = mean;
    a.rstd = rstd;
    lam_ref_norm_fwd(test_ref, &a);
    loss = test_dot(t->dy, y, VIEW);
    if (!a.dsum.p)
        return loss;
    if (!a.gain)
        return loss + test_dot(t->dsum, y, VIEW);
    if (!a.add)
        return loss + test_dot(t->dsum, t->x, VIEW);
    for (size_t b = 0; b < BLOCKS; b++)
        loss += test_dot(t->dsum + b * STEP, sum + b * ROWS * LD, ROWS * LD);
    return loss;
}

/* Compares the gradients of `rows` rows of WIDTH columns; the rest must be zero. */
static void check_rows(const char *name, double *x, const double *dx, size_t step,
                       const residual *t)
{
    for (size_t b = 0; b < BLOCKS; b++)
        for (size_t r = 0; r < ROWS; r++) {
            const size_t at = b * step + r * LD;
            test_gradient(name, x + at, dx + at, WIDTH, residual_loss, t);
            for (size_t c = WIDTH; c < LD; c++)
                ck_assert_double_eq(dx[at + c], 0.0);
        }
}

START_TEST(norm_bwd_is_the_gradient_with_every_part)
{
    const int add = _i & 1, gain = _i & 2, drop = _i & 4, dsum = _i & 8;
    lam_rng rng = {.key = SEED, .stream = (uint64_t)_i};
    residual t;
    make(&t, &rng, add, gain);
    if (drop)
        t.a.drop = (lam_drop){.p = 0.3, .seed = SEED, .step = 2, .site = 7};
    if (dsum)
        t.a.dsum = (lam_view){t.dsum, STEP};
    lam_ref_norm_fwd(test_ref, &t.a);
    lam_ref_norm_bwd(test_ref, &t.a);
    check_rows("x", t.x, t.dx, STEP, &t);
    if (add) {
        check_rows("add", t.add, t.dadd, ROWS * LD, &t);
        test_gradient("bias", t.bias, t.dbias, WIDTH, residual_loss, &t);
    }
    if (gain) {
        test_gradient("gain", t.gain, t.dgain, WIDTH, residual_loss, &t);
        test_gradient("shift", t.shift, t.dshift, WIDTH, residual_loss, &t);
    }
}
END_TEST

START_TEST(norm_bwd_in_place_and_with_parts_left_out_is_the_same)
{
    lam_rng rng = {.key = SEED, .stream = 100 + (uint64_t)_i};
    residual t, u;
    make(&t, &rng, 1, 1);
    t.a.dsum = (lam_view){t.dsum, STEP};
    lam_ref_norm_fwd(test_ref, &t.a);
    u = t;
    lam_norm in_place = t.a;
    in_place.dx.p = _i == 0 ? u.dy : u.dsum;
    in_place.dy.p = u.dy;
    in_place.dsum.p = u.dsum;
    in_place.dadd = in_place.dbias = NULL;
    in_place.dgain = u.dgain;
    in_place.dshift = u.dshift;
    lam_ref_norm_bwd(test_ref, &t.a);
    lam_ref_norm_bwd(test_ref, &in_place);
    const double *dx = in_place.dx.p;
    for (size_t i = 0; i < VIEW; i++)
        ck_assert_double_eq(dx[i], t.dx[i]);
    for (size_t i = 0; i < WIDTH; i++) {
        ck_assert_double_eq(u.dgain[i], t.dgain[i]);
        ck_assert_double_eq(u.dshift[i], t.dshift[i]);
    }
}
END_TEST

START_TEST(layernorm_does_not_feel_scale_and_offset)
{
    lam_rng rng = {.key = SEED, .stream = 200};
    residual t, u;
    make(&t, &rng, 0, 1);
    t.a.eps = 0.0;
    u = t;
    for (size_t i = 0; i < VIEW; i++)
        u.x[i] = 3.5 * t.x[i] - 2.0;
    clear_gaps(u.x, VIEW, STEP);
    lam_norm other = t.a;
    other.x.p = u.x;
    other.y.p = u.y;
    lam_ref_norm_fwd(test_ref, &t.a);
    lam_ref_norm_fwd(test_ref, &other);
    for (size_t i = 0; i < VIEW; i++)
        ck_assert_double_eq_tol(u.y[i], t.y[i], 1e-12);
}
END_TEST

START_TEST(normalised_rows_have_mean_zero_and_variance_one)
{
    lam_rng rng = {.key = SEED, .stream = 201};
    residual t;
    make(&t, &rng, 1, 1);
    t.a.eps = 0.0;
    for (int c = 0; c < WIDTH; c++) {
        t.gain[c] = 1.0;
        t.shift[c] = 0.0;
    }
    lam_ref_norm_fwd(test_ref, &t.a);
    for (size_t row = 0; row < ALL; row++) {
        const double *y = t.y + row / ROWS * STEP + row % ROWS * LD;
        double sum = 0.0, squares = 0.0;
        for (size_t c = 0; c < WIDTH; c++) {
            sum += y[c];
            squares += y[c] * y[c];
        }
        ck_assert_double_eq_tol(sum, 0.0, 1e-12);
        ck_assert_double_eq_tol(squares, WIDTH, 1e-12);
        for (size_t c = WIDTH; c < LD; c++)
            ck_assert_double_eq(y[c], 0.0);
    }
}
END_TEST

/* relu's gradient alone; with dropout and bias it is part of gemm_test.c. */
START_TEST(relu_bwd_passes_what_was_kept)
{
    const double h[] = {1.5, 0.0, 2.0, 0.0, 0.0, 3.0};
    double dh[] = {1, 2, 3, 4, 5, 6}, dbias[] = {10, 20, 30};
    const double want[] = {2, 0, 6, 0, 0, 12}, sums[] = {12, 20, 48};
    lam_ref_relu_bwd(
        test_ref,
        &(lam_relu_bwd){.rows = 2, .width = 3, .scale = 2.0, .h = h, .dh = dh, .dbias = dbias});
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(dh[i], want[i]);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(dbias[i], sums[i]);
}
END_TEST

START_TEST(dropout_keeps_the_mean)
{
    enum { N = 200 * 1000 };
    static double x[N];
    static const double p[] = {0.1, 0.25, 0.5, 0.9};
    for (int i = 0; i < N; i++)
        x[i] = 1.0;
    lam_ref_dropout(test_ref, &(lam_dropout){.blocks = 1,
                                             .rows = 200,
                                             .width = 1000,
                                             .ld = 1000,
                                             .drop = {.p = p[_i], .seed = SEED, .step = 9},
                                             .in = {x, N},
                                             .out = {x, N}});
    const double kept = lam_drop_scale(p[_i]);
    double sum = 0.0;
    int strange = 0;
    for (int i = 0; i < N; i++) {
        strange += x[i] != 0.0 && x[i] != kept;
        sum += x[i];
    }
    ck_assert_int_eq(strange, 0);
    ck_assert_double_eq_tol(sum / N, 1.0, 5.0 * sqrt(p[_i] / (1.0 - p[_i]) / N));
}
END_TEST

START_TEST(dropout_is_its_own_backward)
{
    lam_rng rng = {.key = SEED, .stream = 300};
    double x[VIEW], y[VIEW], dx[VIEW], dy[VIEW];
    test_fill(&rng, x, VIEW);
    test_fill(&rng, dy, VIEW);
    clear_gaps(x, VIEW, STEP);
    clear_gaps(dy, VIEW, STEP);
    memset(y, 0, sizeof y);
    memset(dx, 0, sizeof dx);
    lam_dropout a = {.blocks = BLOCKS,
                     .rows = ROWS,
                     .width = WIDTH,
                     .ld = LD,
                     .drop = {.p = 0.4, .seed = SEED},
                     .in = {x, STEP},
                     .out = {y, STEP}};
    lam_ref_dropout(test_ref, &a);
    a.in.p = dy;
    a.out.p = dx;
    lam_ref_dropout(test_ref, &a);
    ck_assert_double_eq_tol(test_dot(dy, y, VIEW), test_dot(dx, x, VIEW), 1e-12);
}
END_TEST

START_TEST(copy_moves_blocks_and_makes_zeros)
{
    const int32_t in[] = {1, 2, 3, 4, 5, 6};
    int32_t out[] = {9, 9, 9, 9, 9, 9, 9};
    lam_copy a = {.blocks = 2,
                  .count = 2,
                  .type = LAM_INT,
                  .in = {(void *)(uintptr_t)in, 3},
                  .out = {out, 4}};
    lam_ref_copy(test_ref, &a);
    const int32_t want[] = {1, 2, 9, 9, 4, 5, 9};
    ck_assert_mem_eq(out, want, sizeof want);
    a.in.p = NULL;
    lam_ref_copy(test_ref, &a);
    const int32_t cleared[] = {0, 0, 9, 9, 0, 0, 9};
    ck_assert_mem_eq(out, cleared, sizeof cleared);
}
END_TEST

START_TEST(colsum_adds_to_what_is_there)
{
    const double in[] = {1, 2, 100, 3, 4, 100};
    double out[] = {10, 20};
    lam_ref_colsum(test_ref, &(lam_colsum){.rows = 2, .width = 2, .ld = 3, .in = in, .out = out});
    ck_assert_double_eq(out[0], 14);
    ck_assert_double_eq(out[1], 26);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_loop_test(tests, norm_bwd_is_the_gradient_with_every_part, 0, 16);
    tcase_add_loop_test(tests, norm_bwd_in_place_and_with_parts_left_out_is_the_same, 0, 2);
    tcase_add_test(tests, layernorm_does_not_feel_scale_and_offset);
    tcase_add_test(tests, normalised_rows_have_mean_zero_and_variance_one);
    tcase_add_test(tests, relu_bwd_passes_what_was_kept);
    tcase_add_loop_test(tests, dropout_keeps_the_mean, 0, 4);
    tcase_add_test(tests, dropout_is_its_own_backward);
    tcase_add_test(tests, copy_moves_blocks_and_makes_zeros);
    tcase_add_test(tests, colsum_adds_to_what_is_there);
    return test_run("ops/ref/rowwise", tests);
}
