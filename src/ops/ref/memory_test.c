/* memory_test.c -- Eq. 10-11: is it the paper's formula, is it the softmax resumed, and is its
 * gradient the gradient? */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 13 };
enum { B = 2, ROWS = 3, H = 2, K = 3, STATS = B * ROWS * H, ALL = STATS * K };

typedef struct slots {
    double c_old[ALL], c_new[ALL], c_out[ALL], dc_out[ALL], dc_new[ALL];
    double lse_old[STATS], lse_new[STATS], lse_out[STATS], alpha[STATS], dlse_new[STATS];
    lam_interp a;
} slots;

static void make(slots *t, lam_rng *rng, double eps)
{
    const size_t wide = ROWS * H * K, thin = ROWS * H;
    memset(t, 0, sizeof *t);
    test_fill(rng, t->c_old, ALL);
    test_fill(rng, t->c_new, ALL);
    test_fill(rng, t->dc_out, ALL);
    test_fill(rng, t->lse_old, STATS);
    test_fill(rng, t->lse_new, STATS);
    t->a = (lam_interp){.B = B,
                        .rows = ROWS,
                        .H = H,
                        .K = K,
                        .eps = eps,
                        .c_old = {t->c_old, wide},
                        .c_new = {t->c_new, wide},
                        .c_out = {t->c_out, wide},
                        .lse_old = {t->lse_old, thin},
                        .lse_new = {t->lse_new, thin},
                        .lse_out = {t->lse_out, thin},
                        .alpha = {t->alpha, thin},
                        .dc_out = {t->dc_out, wide},
                        .dc_new = {t->dc_new, wide},
                        .dlse_new = {t->dlse_new, thin}};
}

/* Appendix A: with eps = 0 the slot holds one softmax over the keys of both sides. */
START_TEST(interp_without_eps_equals_the_joint_softmax)
{
    lam_rng rng = {.key = SEED};
    slots t;
    make(&t, &rng, 0.0);
    double want[ALL], total[STATS];
    for (int s = 0; s < STATS; s++) { /* seven keys with scores, four of them in the past */
        double sum[2] = {0, 0}, c[2][K] = {{0}};
        for (int j = 0; j < 7; j++) {
            const double e = exp(3.0 * lam_rng_normal(&rng));
            sum[j >= 4] += e;
            for (int i = 0; i < K; i++)
                c[j >= 4][i] += e * lam_rng_normal(&rng);
        }
        t.lse_old[s] = log(sum[0]);
        t.lse_new[s] = log(sum[1]);
        total[s] = log(sum[0] + sum[1]);
        for (int i = 0; i < K; i++) {
            t.c_old[s * K + i] = c[0][i] / sum[0];
            t.c_new[s * K + i] = c[1][i] / sum[1];
            want[s * K + i] = (c[0][i] + c[1][i]) / (sum[0] + sum[1]);
        }
    }
    lam_ref_interp_fwd(test_ref, &t.a);
    for (int i = 0; i < ALL; i++)
        ck_assert_double_eq_tol(t.c_out[i], want[i], 1e-13);
    for (int s = 0; s < STATS; s++)
        ck_assert_double_eq_tol(t.lse_out[s], total[s], 1e-13);
}
END_TEST

START_TEST(log_s_accumulates_in_any_order)
{
    lam_rng rng = {.key = SEED, .stream = 1};
    slots t;
    make(&t, &rng, 1e-2); /* eps is no part of the denominator that is kept */
    double first[STATS];
    lam_ref_interp_fwd(test_ref, &t.a);
    memcpy(first, t.lse_out, sizeof first);
    lam_interp swapped = t.a;
    swapped.lse_old = t.a.lse_new;
    swapped.lse_new = t.a.lse_old;
    lam_ref_interp_fwd(test_ref, &swapped);
    for (int s = 0; s < STATS; s++) {
        ck_assert_double_eq(t.lse_out[s], first[s]);
        ck_assert_double_eq_tol(first[s], log(exp(t.lse_old[s]) + exp(t.lse_new[s])), 1e-13);
    }
}
END_TEST

START_TEST(lse_out_may_be_lse_new)
{
    lam_rng rng = {.key = SEED, .stream = 2};
    slots t;
    make(&t, &rng, 1e-6);
    lam_ref_interp_fwd(test_ref, &t.a);
    double c_out[ALL];
    memcpy(c_out, t.c_out, sizeof c_out);
    t.a.lse_out = t.a.lse_new;
    lam_ref_interp_fwd(test_ref, &t.a);
    ck_assert_mem_eq(t.lse_new, t.lse_out, sizeof t.lse_out);
    ck_assert_mem_eq(t.c_out, c_out, sizeof c_out);
}
END_TEST

START_TEST(slots_that_saw_nothing_stay_defined)
{
    lam_rng rng = {.key = SEED, .stream = 3};
    slots t;
    make(&t, &rng, 1e-6);
    for (int s = 0; s < STATS; s++) { /* nothing new, nothing old, nothing at all, both */
        if (s % 4 == 0 || s % 4 == 2)
            t.lse_new[s] = -INFINITY;
        if (s % 4 == 1 || s % 4 == 2)
            t.lse_old[s] = -INFINITY;
    }
    lam_ref_interp_fwd(test_ref, &t.a);
    lam_ref_interp_bwd(test_ref, &t.a);
    for (int s = 0; s < STATS; s++) {
        if (s % 4 == 0)
            ck_assert_double_eq(t.alpha[s], 1.0 / (1.0 + 1e-6));
        if (s % 4 == 1 || s % 4 == 2)
            ck_assert_double_eq(t.alpha[s], 0.0);
        if (s % 4 != 3) {
            ck_assert_double_eq(t.lse_out[s], fmax(t.lse_old[s], t.lse_new[s]));
            ck_assert_double_eq(t.dlse_new[s], 0.0);
        }
        for (int i = s * K; i < (s + 1) * K; i++) {
            ck_assert(isfinite(t.c_out[i]) && isfinite(t.dc_new[i]));
            if (t.alpha[s] == 0.0)
                ck_assert_double_eq(t.c_out[i], t.c_new[i]);
        }
    }
}
END_TEST

static double interp_loss(const void *user)
{
    const slots *t = user;
    double c_out[ALL], lse_out[STATS], alpha[STATS];
    lam_interp a = t->a;
    a.c_out.p = c_out;
    a.lse_out.p = lse_out;
    a.alpha.p = alpha;
    lam_ref_interp_fwd(test_ref, &a);
    return test_dot(t->dc_out, c_out, ALL);
}

START_TEST(interp_bwd_is_the_gradient_on_both_sides_of_the_maximum)
{
    static const double eps[] = {0.0, 1e-6, 1e-2, 0.5};
    lam_rng rng = {.key = SEED, .stream = 10 + (uint64_t)_i};
    slots t;
    make(&t, &rng, eps[_i]);
    for (int s = 0; s < STATS; s++) { /* far enough apart for the stencil to stay on its side */
        t.lse_new[s] = t.lse_old[s] + (s % 2 ? 0.3 : -0.3) * (1.0 + s);
    }
    lam_ref_interp_bwd(test_ref, &t.a);
    test_gradient("c_new", t.c_new, t.dc_new, ALL, interp_loss, &t);
    test_gradient("lse_new", t.lse_new, t.dlse_new, STATS, interp_loss, &t);
}
END_TEST

/* alpha' = -alpha (1 - alpha) where the new sum is the larger, -alpha s<- / (s-> + s<- + eps) where
 * it is not: with a large eps the two are far apart. */
START_TEST(the_slope_of_alpha_has_two_branches)
{
    lam_rng rng = {.key = SEED, .stream = 20};
    slots t;
    make(&t, &rng, 0.25);
    for (int s = 0; s < STATS; s++)
        for (int i = s * K; i < (s + 1) * K; i++) { /* so that dlse_new is the slope itself */
            t.dc_out[i] = i == s * K;
            t.c_old[i] = i == s * K;
            t.c_new[i] = 0.0;
        }
    t.lse_new[3] = t.lse_old[3]; /* the tie belongs to the first branch */
    lam_ref_interp_fwd(test_ref, &t.a);
    lam_ref_interp_bwd(test_ref, &t.a);
    for (int s = 0; s < STATS; s++) {
        const double top = fmax(t.lse_old[s], t.lse_new[s]);
        const double a = exp(t.lse_old[s] - top), b = exp(t.lse_new[s] - top), sum = a + b + 0.25;
        const double alpha = a / sum;
        ck_assert_double_eq_tol(t.alpha[s], alpha, 1e-15);
        const double slope =
            t.lse_new[s] >= t.lse_old[s] ? -alpha * (1.0 - alpha) : -alpha * b / sum;
        ck_assert_double_eq_tol(t.dlse_new[s], slope, 1e-14);
    }
}
END_TEST

START_TEST(interp_bwd_in_place_is_the_same)
{
    lam_rng rng = {.key = SEED, .stream = 30};
    slots t;
    make(&t, &rng, 1e-6);
    lam_ref_interp_bwd(test_ref, &t.a);
    double dlse[STATS];
    memcpy(dlse, t.dlse_new, sizeof dlse);
    t.a.dc_new = t.a.dc_out;
    lam_ref_interp_bwd(test_ref, &t.a);
    ck_assert_mem_eq(t.dc_out, t.dc_new, sizeof t.dc_new);
    ck_assert_mem_eq(t.dlse_new, dlse, sizeof dlse);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_test(tests, interp_without_eps_equals_the_joint_softmax);
    tcase_add_test(tests, log_s_accumulates_in_any_order);
    tcase_add_test(tests, lse_out_may_be_lse_new);
    tcase_add_test(tests, slots_that_saw_nothing_stay_defined);
    tcase_add_loop_test(tests, interp_bwd_is_the_gradient_on_both_sides_of_the_maximum, 0, 4);
    tcase_add_test(tests, the_slope_of_alpha_has_two_branches);
    tcase_add_test(tests, interp_bwd_in_place_is_the_same);
    return test_run("ops/ref/memory", tests);
}
