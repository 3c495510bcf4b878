/* sampler_test.c -- who can be drawn, how often, and that a seed repeats itself. */
#include "infer/sampler.h"

#include "support/suite.h"

#include <math.h>
#include <string.h>

enum { V = 6, DRAWS = 20000 };

static const double scores[V] = {2.0, 1.0, 0.5, 0.0, -1.0, -3.0};

/* Draws many times and counts; also checks the log-probabilities. */
static void count(const lam_sampler_options *o, int counts[V])
{
    lam_sampler *s = NULL;
    double sum = 0.0;
    memset(counts, 0, V * sizeof *counts);
    for (int i = 0; i < V; i++)
        sum += exp(scores[i]);
    ck_assert(lam_sampler_create(&s, o, V, 0) == LAM_OK);
    for (int i = 0; i < DRAWS; i++) {
        int32_t token;
        double logprob;
        ck_assert(lam_sampler_draw(s, scores, &token, &logprob) == LAM_OK);
        ck_assert_double_eq_tol(logprob, scores[token] - log(sum), 1e-12);
        counts[token]++;
    }
    lam_sampler_free(s);
}

static lam_sampler_options plain(void)
{
    lam_sampler_options o = lam_sampler_defaults();
    o.top_p = 1.0;
    return o;
}

START_TEST(draws_follow_the_distribution)
{
    int counts[V];
    double sum = 0.0;
    lam_sampler_options o = plain();
    for (int i = 0; i < 2; i++) {
        o.temperature = i == 0 ? 1.0 : 0.5;
        sum = 0.0;
        count(&o, counts);
        for (int k = 0; k < V; k++)
            sum += exp(scores[k] / o.temperature);
        for (int k = 0; k < V; k++) {
            const double p = exp(scores[k] / o.temperature) / sum;
            ck_assert_double_eq_tol(counts[k] / (double)DRAWS, p, 5.0 * sqrt(p / DRAWS) + 1e-4);
        }
    }
}
END_TEST

START_TEST(filters_leave_out_the_rest)
{
    int counts[V];
    lam_sampler_options o = plain();
    o.top_k = 2;
    count(&o, counts);
    ck_assert(counts[0] > 0 && counts[1] > 0 && counts[2] + counts[3] + counts[4] + counts[5] == 0);
    o = plain();
    o.top_p = 0.7; /* p: .556 .205 .124 .075 .028 .004: the second crosses 0.7 */
    count(&o, counts);
    ck_assert(counts[0] > 0 && counts[1] > 0 && counts[2] + counts[3] + counts[4] + counts[5] == 0);
    o.top_p = 1e-9; /* one always stays */
    count(&o, counts);
    ck_assert_int_eq(counts[0], DRAWS);
    o = plain();
    o.min_p = 0.2; /* exp(-1.5) = .22 stays, exp(-2) = .14 goes */
    count(&o, counts);
    ck_assert(counts[2] > 0 && counts[3] + counts[4] + counts[5] == 0);
    o = plain();
    o.temperature = 0.0;
    count(&o, counts);
    ck_assert_int_eq(counts[0], DRAWS);
}
END_TEST

START_TEST(a_token_may_be_barred)
{
    int counts[V];
    lam_sampler_options o = plain();
    o.never = 0; /* the most likely one */
    count(&o, counts);
    ck_assert_int_eq(counts[0], 0);
    for (int i = 1; i < V; i++)
        ck_assert_int_gt(counts[i], 0);
    o.temperature = 0;
    count(&o, counts);
    ck_assert_int_eq(counts[1], DRAWS);
}
END_TEST

START_TEST(a_penalty_makes_repetition_rarer)
{
    int without[V], with[V];
    lam_sampler_options o = plain();
    count(&o, without);
    o.repeat_penalty = 1.5;
    o.repeat_last = 1;
    count(&o, with);
    ck_assert_int_lt(with[0], without[0]);
}
END_TEST

START_TEST(a_penalty_on_all_tokens_leaves_all_of_them)
{
    int n[V];
    lam_sampler_options o = plain();
    o.repeat_penalty = 1.5e308;
    lam_sampler *s = NULL;
    ck_assert(lam_sampler_create(&s, &o, V, 0) == LAM_OK);
    for (int i = 0; i < V; i++)
        lam_sampler_note(s, i);
    memset(n, 0, sizeof n);
    for (int i = 0; i < 100 * V; i++) {
        int32_t token;
        ck_assert(lam_sampler_draw(s, scores, &token, NULL) == LAM_OK);
        n[token]++;
    }
    for (int i = 0; i < V; i++)
        ck_assert_int_gt(n[i], 0);
    lam_sampler_free(s);

    /* Equal ones stay equal, where each penalty is more than a double can be. */
    static const double equal[V];
    memset(n, 0, sizeof n);
    for (uint64_t stream = 0; stream < 100; stream++) {
        int32_t token;
        ck_assert(lam_sampler_create(&s, &o, V, stream) == LAM_OK);
        for (int i = 0; i < V; i++)
            lam_sampler_note(s, i);
        ck_assert(lam_sampler_draw(s, equal, &token, NULL) == LAM_OK);
        n[token]++;
        lam_sampler_free(s);
    }
    for (int i = 0; i < V; i++)
        ck_assert_int_gt(n[i], 5);
}
END_TEST

START_TEST(a_token_is_penalised_once_however_often_it_came)
{
    lam_sampler_options o = plain();
    o.repeat_penalty = 1.3;
    int other = 0;
    for (o.seed = 0; o.seed < 200; o.seed++) {
        int32_t token[3];
        for (int often = 0; often < 3; often++) {
            lam_sampler *s = NULL;
            ck_assert(lam_sampler_create(&s, &o, V, 0) == LAM_OK);
            for (int i = 0; i < 2 * often; i++)
                lam_sampler_note(s, 0);
            ck_assert(lam_sampler_draw(s, scores, &token[often], NULL) == LAM_OK);
            lam_sampler_free(s);
        }
        ck_assert_int_eq(token[1], token[2]);
        other += token[0] != token[1];
    }
    ck_assert_int_gt(other, 0);
}
END_TEST

/* In the square of it, this would take hours. */
START_TEST(the_penalty_takes_time_in_proportion_to_its_window)
{
    enum { MANY = 1 << 20 };
    static double equal[MANY];
    lam_sampler_options o = plain();
    o.temperature = 0.0;
    o.repeat_penalty = 1.5;
    o.repeat_last = MANY;
    lam_sampler *s = NULL;
    ck_assert(lam_sampler_create(&s, &o, MANY, 0) == LAM_OK);
    for (int32_t i = 0; i < MANY; i++)
        lam_sampler_note(s, i == MANY / 2 ? 0 : i); /* all but one */
    int32_t token;
    ck_assert(lam_sampler_draw(s, equal, &token, NULL) == LAM_OK);
    ck_assert_int_eq(token, MANY / 2);
    lam_sampler_free(s);
}
END_TEST

START_TEST(a_seed_repeats_and_streams_differ)
{
    int32_t tokens[3][50];
    lam_sampler_options o = plain();
    for (int i = 0; i < 3; i++) {
        lam_sampler *s = NULL;
        ck_assert(lam_sampler_create(&s, &o, V, i == 2) == LAM_OK);
        for (int k = 0; k < 50; k++)
            ck_assert(lam_sampler_draw(s, scores, &tokens[i][k], NULL) == LAM_OK);
        lam_sampler_free(s);
    }
    ck_assert_mem_eq(tokens[0], tokens[1], sizeof tokens[0]);
    ck_assert_mem_ne(tokens[0], tokens[2], sizeof tokens[0]);
}
END_TEST

START_TEST(nonsense_is_refused)
{
    lam_sampler *s = NULL;
    lam_sampler_options bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = plain();
    bad[0].temperature = -1.0;
    bad[1].top_k = -1;
    bad[2].top_p = 0.0;
    bad[3].min_p = 2.0;
    bad[4].repeat_penalty = 0.0;
    bad[5].temperature = NAN;
    for (int i = 0; i < 6; i++) {
        ck_assert(lam_sampler_create(&s, &bad[i], V, 0) == LAM_ERR_ARG);
        ck_assert_ptr_null(s);
    }
    const lam_sampler_options o = plain();
    const double nothing[V] = {NAN, NAN, NAN, NAN, NAN, NAN};
    int32_t token;
    ck_assert(lam_sampler_create(&s, &o, V, 0) == LAM_OK);
    ck_assert(lam_sampler_draw(s, nothing, &token, NULL) == LAM_ERR_NUMERIC);
    lam_sampler_free(s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, draws_follow_the_distribution);
    tcase_add_test(tests, filters_leave_out_the_rest);
    tcase_add_test(tests, a_token_may_be_barred);
    tcase_add_test(tests, a_penalty_makes_repetition_rarer);
    tcase_add_test(tests, a_penalty_on_all_tokens_leaves_all_of_them);
    tcase_add_test(tests, a_token_is_penalised_once_however_often_it_came);
    tcase_add_test(tests, the_penalty_takes_time_in_proportion_to_its_window);
    tcase_add_test(tests, a_seed_repeats_and_streams_differ);
    tcase_add_test(tests, nonsense_is_refused);
    return test_run("infer/sampler", tests);
}
