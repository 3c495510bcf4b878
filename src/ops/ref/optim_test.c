/* optim_test.c -- the update rules against scalar recursions written out again, step by step. */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 15, LENGTH = 10, STEPS = 25 };

/* Elements 0-3 and 6-8 are two tensors; 4, 5 and 9 belong to nobody. */
static int part_of(int i)
{
    return i < 4 ? 0 : i >= 6 && i < 9 ? 1 : -1;
}

typedef struct state {
    double p[LENGTH], m[LENGTH], v[LENGTH], g[LENGTH], norm;
} state;

static void run_step(lam_update_kind kind, state *s, lam_part parts[2], double clip, double *weight)
{
    const lam_gnorm n = {.parts = parts, .n_parts = 2, .grad = s->g, .norm = &s->norm};
    lam_ref_gnorm(test_ref, &n);
    const lam_update u = {.kind = kind,
                          .parts = parts,
                          .n_parts = 2,
                          .beta1 = 0.9,
                          .beta2 = 0.99,
                          .eps = 1e-8,
                          .clip = clip,
                          .norm = &s->norm,
                          .grad = s->g,
                          .master = s->p,
                          .m = kind == LAM_ADAGRAD ? NULL : s->m,
                          .v = kind == LAM_SGD ? NULL : s->v,
                          .weight = weight};
    lam_ref_update(test_ref, &u);
}

START_TEST(every_rule_follows_its_recursion)
{
    static const double clips[] = {0.0, 0.5, 100.0}; /* none, always, never */
    const lam_update_kind kind = (lam_update_kind)(_i % 3);
    const double clip = clips[_i / 3 % 3], lr[2] = {0.01, 0.003}, decay[2] = {0.0, 0.1};
    lam_rng rng = {.key = SEED, .stream = (uint64_t)_i};
    state s = {0};
    double p[LENGTH], m[LENGTH] = {0}, v[LENGTH] = {0}, weight[LENGTH] = {0};
    int age[2] = {0, 3}; /* tensors may have been updated a different number of times */
    test_fill(&rng, s.p, LENGTH);
    memcpy(p, s.p, sizeof p);

    for (int step = 0; step < STEPS; step++) {
        lam_part parts[2] = {{.offset = 0, .count = 4}, {.offset = 6, .count = 3}};
        double squares = 0.0;
        test_fill(&rng, s.g, LENGTH);
        for (int t = 0; t < 2; t++) {
            age[t]++;
            parts[t].lr = lr[t];
            parts[t].decay = decay[t];
            parts[t].fix1 = 1.0 - pow(0.9, age[t]);
            parts[t].fix2 = 1.0 - pow(0.99, age[t]);
        }
        for (int i = 0; i < LENGTH; i++)
            squares += part_of(i) >= 0 ? s.g[i] * s.g[i] : 0.0;
        run_step(kind, &s, parts, clip, weight);
        ck_assert_double_eq_tol(s.norm, sqrt(squares), 1e-14);

        for (int i = 0; i < LENGTH; i++) {
            const int t = part_of(i);
            if (t >= 0) {
                const double too_long = sqrt(squares) + 1e-6;
                const double g = clip > 0.0 && clip < too_long ? s.g[i] * clip / too_long : s.g[i];
                p[i] = p[i] * (1.0 - lr[t] * decay[t]);
                if (kind == LAM_ADAM) {
                    m[i] += 0.1 * (g - m[i]);
                    v[i] += 0.01 * (g * g - v[i]);
                    p[i] -= lr[t] * (m[i] / (1.0 - pow(0.9, age[t]))) /
                            (sqrt(v[i] / (1.0 - pow(0.99, age[t]))) + 1e-8);
                } else if (kind == LAM_SGD) {
                    m[i] = 0.9 * m[i] + g;
                    p[i] -= lr[t] * m[i];
                } else {
                    v[i] += g * g;
                    p[i] -= lr[t] * g / (sqrt(v[i]) + 1e-8);
                }
                ck_assert_double_eq(weight[i], s.p[i]);
            }
            ck_assert_double_eq_tol(s.p[i], p[i], 1e-13);
            ck_assert_double_eq_tol(s.m[i], m[i], 1e-13);
            ck_assert_double_eq_tol(s.v[i], v[i], 1e-13);
        }
    }
}
END_TEST

/* With equal gradients Adam's first step is lr times the sign, whatever their size. */
START_TEST(the_first_step_of_adam_has_the_length_of_the_learning_rate)
{
    state s = {.g = {1e-3, -20.0, 5.0, -1.0}};
    lam_part parts[2] = {{.offset = 0, .count = 4, .lr = 0.5, .fix1 = 0.1, .fix2 = 0.01}, {0}};
    run_step(LAM_ADAM, &s, parts, 0.0, NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(s.p[i], s.g[i] > 0 ? -0.5 : 0.5, 1e-5);
}
END_TEST

START_TEST(a_norm_that_is_not_finite_changes_nothing)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    lam_rng rng = {.key = SEED, .stream = 50};
    state s, before;
    double weight[LENGTH], weight_before[LENGTH];
    lam_part parts[2] = {{.offset = 0, .count = 4, .lr = 0.1, .decay = 0.1, .fix1 = 1, .fix2 = 1},
                         {.offset = 6, .count = 3, .lr = 0.1, .decay = 0.1, .fix1 = 1, .fix2 = 1}};
    for (int kind = 0; kind < 3; kind++) {
        test_fill(&rng, s.p, LENGTH);
        test_fill(&rng, s.m, LENGTH);
        test_fill(&rng, s.v, LENGTH);
        test_fill(&rng, s.g, LENGTH);
        test_fill(&rng, weight, LENGTH);
        s.g[2] = bad[_i]; /* the norm of such a gradient is not finite either */
        before = s;
        memcpy(weight_before, weight, sizeof weight);
        run_step((lam_update_kind)kind, &s, parts, 0.25, weight);
        ck_assert(!isfinite(s.norm));
        ck_assert_mem_eq(s.p, before.p, sizeof s.p);
        ck_assert_mem_eq(s.m, before.m, sizeof s.m);
        ck_assert_mem_eq(s.v, before.v, sizeof s.v);
        ck_assert_mem_eq(weight, weight_before, sizeof weight);
    }
}
END_TEST

START_TEST(the_norm_counts_the_parts_and_nothing_else)
{
    const double g[] = {3.0, 4.0, 1e9, 12.0, NAN};
    double norm = NAN;
    const lam_part parts[] = {
        {.offset = 0, .count = 2}, {.offset = 2, .count = 0}, {.offset = 3, .count = 1}};
    lam_ref_gnorm(test_ref, &(lam_gnorm){.parts = parts, .n_parts = 3, .grad = g, .norm = &norm});
    ck_assert_double_eq(norm, 13.0);
    lam_ref_gnorm(test_ref, &(lam_gnorm){.parts = parts, .n_parts = 0, .grad = g, .norm = &norm});
    ck_assert_double_eq(norm, 0.0);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_loop_test(tests, every_rule_follows_its_recursion, 0, 9);
    tcase_add_test(tests, the_first_step_of_adam_has_the_length_of_the_learning_rate);
    tcase_add_loop_test(tests, a_norm_that_is_not_finite_changes_nothing, 0, 3);
    tcase_add_test(tests, the_norm_counts_the_parts_and_nothing_else);
    return test_run("ops/ref/optim", tests);
}
