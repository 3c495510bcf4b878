/* vocab_test.c -- embedding rows, the cross-entropy and its gradient, row lists. */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 14 };

enum { TOKENS = 7, COUNT = 4, WIDTH = 3, LD = 5 };
static const int32_t ids[TOKENS] = {10, 13, 9, 12, 14, 13, 13}; /* the table has 10 .. 13 */

typedef struct lookup {
    double table[COUNT * LD], dout[TOKENS * LD], dtable[COUNT * LD];
    lam_embed a;
} lookup;

static void make(lookup *t, lam_rng *rng)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < COUNT * LD; i++)
        t->table[i] = i % LD < WIDTH ? lam_rng_normal(rng) : 0.0;
    for (int i = 0; i < TOKENS * LD; i++)
        t->dout[i] = i % LD < WIDTH ? lam_rng_normal(rng) : 0.0;
    t->a = (lam_embed){.rows = TOKENS,
                       .first = 10,
                       .count = COUNT,
                       .width = WIDTH,
                       .ld = LD,
                       .scale = 2.5,
                       .ids = ids,
                       .table = t->table,
                       .dout = t->dout,
                       .dtable = t->dtable};
}

START_TEST(embed_looks_up_scales_and_leaves_strangers_zero)
{
    lam_rng rng = {.key = SEED};
    lookup t;
    make(&t, &rng);
    double out[TOKENS * LD];
    for (int i = 0; i < TOKENS * LD; i++)
        out[i] = NAN;
    t.a.out = out;
    lam_ref_embed_fwd(test_ref, &t.a);
    for (int r = 0; r < TOKENS; r++)
        for (int c = 0; c < LD; c++) {
            const int id = ids[r] - 10, known = id >= 0 && id < COUNT && c < WIDTH;
            ck_assert_double_eq(out[r * LD + c], known ? 2.5 * t.table[id * LD + c] : 0.0);
        }
}
END_TEST

static double lookup_loss(const void *user)
{
    const lookup *t = user;
    double out[TOKENS * LD];
    lam_embed a = t->a;
    a.out = out;
    lam_ref_embed_fwd(test_ref, &a);
    return test_dot(t->dout, out, TOKENS * LD);
}

START_TEST(embed_bwd_is_the_gradient_and_adds)
{
    lam_rng rng = {.key = SEED, .stream = 1};
    lookup t;
    make(&t, &rng);
    lam_ref_embed_bwd(test_ref, &t.a);
    for (int r = 0; r < COUNT; r++)
        test_gradient("table", t.table + r * LD, t.dtable + r * LD, WIDTH, lookup_loss, &t);
    double once[COUNT * LD];
    memcpy(once, t.dtable, sizeof once);
    lam_ref_embed_bwd(test_ref, &t.a);
    for (int i = 0; i < COUNT * LD; i++)
        ck_assert_double_eq_tol(t.dtable[i], 2.0 * once[i], 1e-14);
}
END_TEST

enum { ROWS = 4, COLS = 6, WIDE = 8 };
static const int32_t target[ROWS] = {0, 5, 3, 3};

typedef struct rows {
    double logits[ROWS * WIDE];
} rows;

/* The mean loss, by the operation without a gradient. */
static double xent_loss(const void *user)
{
    rows copy = *(const rows *)user;
    double nll[ROWS], sum = 0.0;
    lam_ref_xent(test_ref, &(lam_xent){.rows = ROWS,
                                       .cols = COLS,
                                       .ld = WIDE,
                                       .logits = copy.logits,
                                       .target = target,
                                       .nll = nll});
    for (int r = 0; r < ROWS; r++)
        sum += nll[r];
    return sum / ROWS;
}

START_TEST(the_gradient_of_the_loss_is_its_gradient_and_sums_to_zero)
{
    lam_rng rng = {.key = SEED, .stream = 2};
    rows t, grad;
    double nll[ROWS];
    test_fill(&rng, t.logits, ROWS * WIDE);
    grad = t;
    lam_ref_xent(test_ref, &(lam_xent){.rows = ROWS,
                                       .cols = COLS,
                                       .ld = WIDE,
                                       .grad_scale = 1.0 / ROWS,
                                       .logits = grad.logits,
                                       .target = target,
                                       .nll = nll});
    for (int r = 0; r < ROWS; r++) {
        double sum = 0.0;
        for (int c = 0; c < COLS; c++)
            sum += grad.logits[r * WIDE + c];
        ck_assert_double_eq_tol(sum, 0.0, 1e-15);
        test_gradient("logits", t.logits + r * WIDE, grad.logits + r * WIDE, COLS, xent_loss, &t);
        for (int c = COLS; c < WIDE; c++)
            ck_assert_double_eq(grad.logits[r * WIDE + c], t.logits[r * WIDE + c]);
    }
}
END_TEST

START_TEST(equal_logits_cost_the_log_of_their_number_at_any_size)
{
    static const double height[] = {0.0, 1e4, -1e4, 1e300};
    double logits[COLS], nll = NAN;
    for (int c = 0; c < COLS; c++)
        logits[c] = height[_i];
    lam_ref_xent(
        test_ref,
        &(lam_xent){
            .rows = 1, .cols = COLS, .ld = COLS, .logits = logits, .target = target, .nll = &nll});
    if (_i < 3) /* at 1e300 the log disappears in the rounding, but nothing overflows */
        ck_assert_double_eq_tol(nll, log(COLS), 1e-11);
    else
        ck_assert(isfinite(nll));
}
END_TEST

START_TEST(nll_goes_where_the_index_says_and_adds_when_asked)
{
    lam_rng rng = {.key = SEED, .stream = 3};
    rows t;
    test_fill(&rng, t.logits, ROWS * WIDE);
    const int32_t index[ROWS] = {4, 0, 5, 2};
    double plain[ROWS], spread[6] = {1, 1, 1, 1, 1, 1};
    lam_xent a = {
        .rows = ROWS, .cols = COLS, .ld = WIDE, .logits = t.logits, .target = target, .nll = plain};
    lam_ref_xent(test_ref, &a);
    a.index = index;
    a.nll = spread;
    a.add = 1;
    lam_ref_xent(test_ref, &a);
    for (int r = 0; r < ROWS; r++)
        ck_assert_double_eq(spread[index[r]], 1.0 + plain[r]);
    ck_assert_double_eq(spread[1], 1.0);
    ck_assert_double_eq(spread[3], 1.0);
}
END_TEST

/* <gather(x), y> = <x, scatter(y)>. */
START_TEST(scatter_is_the_backward_of_gather)
{
    enum { ALL = 6, FEW = 3, N = 2, LD_ALL = 4, LD_FEW = 3 };
    lam_rng rng = {.key = SEED, .stream = 4};
    const int32_t index[FEW] = {5, 0, 3};
    double x[ALL * LD_ALL], y[FEW * LD_FEW], got[FEW * LD_FEW], back[ALL * LD_ALL];
    test_fill(&rng, x, ALL * LD_ALL);
    test_fill(&rng, y, FEW * LD_FEW);
    for (int i = 0; i < FEW * LD_FEW; i++)
        got[i] = i % LD_FEW < N ? NAN : 0.0;
    for (int i = 0; i < ALL * LD_ALL; i++)
        back[i] = 0.0;
    lam_ref_gather(test_ref, &(lam_pick){.rows = FEW,
                                         .width = N,
                                         .ld_in = LD_ALL,
                                         .ld_out = LD_FEW,
                                         .index = index,
                                         .in = x,
                                         .out = got});
    lam_ref_scatter(test_ref, &(lam_pick){.rows = FEW,
                                          .width = N,
                                          .ld_in = LD_FEW,
                                          .ld_out = LD_ALL,
                                          .index = index,
                                          .in = y,
                                          .out = back});
    ck_assert_double_eq_tol(test_dot(got, y, FEW * LD_FEW), test_dot(x, back, ALL * LD_ALL), 1e-14);
    for (int r = 0; r < FEW; r++)
        for (int c = 0; c < N; c++)
            ck_assert_double_eq(got[r * LD_FEW + c], x[index[r] * LD_ALL + c]);
    lam_ref_scatter(test_ref, &(lam_pick){.rows = FEW,
                                          .width = N,
                                          .ld_in = LD_FEW,
                                          .ld_out = LD_ALL,
                                          .index = index,
                                          .in = y,
                                          .out = back});
    ck_assert_double_eq(back[5 * LD_ALL], 2.0 * y[0]);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_test(tests, embed_looks_up_scales_and_leaves_strangers_zero);
    tcase_add_test(tests, embed_bwd_is_the_gradient_and_adds);
    tcase_add_test(tests, the_gradient_of_the_loss_is_its_gradient_and_sums_to_zero);
    tcase_add_loop_test(tests, equal_logits_cost_the_log_of_their_number_at_any_size, 0, 4);
    tcase_add_test(tests, nll_goes_where_the_index_says_and_adds_when_asked);
    tcase_add_test(tests, scatter_is_the_backward_of_gather);
    return test_run("ops/ref/vocab", tests);
}
