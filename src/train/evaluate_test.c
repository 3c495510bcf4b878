/* evaluate_test.c -- the published protocol, against the same text pushed through by hand. */
#include "train/evaluate.h"

#include "support/suite.h"
#include "support/toy.h"
#include "support/toyrun.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static toyrun open_run(const char *device, const char *memory)
{
    lam_config cfg = toyrun_config(memory);
    const lam_settings s = toyrun_settings();
    return toyrun_open(device, &cfg, &s);
}

static lam_eval_result evaluate(toyrun *r, const lam_eval_options *options)
{
    lam_evaluator *e;
    lam_eval_result result, again;
    must(lam_evaluator_create(&e, r->model, options));
    must(lam_evaluator_run(e, &result, r->text, NULL, NULL));
    must(lam_evaluator_run(e, &again, r->text, NULL, NULL)); /* nothing is left of the first */
    ck_assert(result.nll == again.nll);
    lam_evaluator_free(e);
    return result;
}

START_TEST(one_stream_equals_the_text_streamed_by_hand)
{
    static const char *const memories[] = {"none", "xl", "lamemo", "compressive carry thirds",
                                           "infinite sticky"};
    static const char *const devices[] = {"ref", "cpu"};
    const char *memory = memories[_i / 2];
    toyrun r = open_run(devices[_i % 2], memory);
    const int M = strcmp(memory, "none") == 0 ? 0 : 6, N = 7;
    const lam_eval_result got =
        evaluate(&r, &(lam_eval_options){.batch = 1, .tgt_len = N, .mem_len = M});

    lam_stack *stack;
    must(lam_stack_create(&stack, r.model, &(lam_stack_options){.B = 1, .N = N, .M = M}));
    double sum = 0.0, nll[7];
    int64_t tokens = 0;
    for (int64_t at = 0; at < r.text->count - 1; at += N) {
        const int n = r.text->count - 1 - at < N ? (int)(r.text->count - 1 - at) : N;
        int32_t in[7], out[7];
        lam_tokens_copy(r.text, in, at, (size_t)n);
        lam_tokens_copy(r.text, out, at + 1, (size_t)n);
        lam_stack_begin(stack, n, (lam_stack_dropout){0});
        lam_stack_forward(stack, in, n);
        lam_stack_loss(stack, out, 0.0);
        must(lam_stack_nll(stack, nll));
        lam_stack_commit(stack);
        double part = 0.0;
        for (int i = 0; i < n; i++)
            part += nll[i];
        sum += part;
        tokens += n;
    }
    lam_stack_free(stack);
    ck_assert_int_eq(tokens, 299);
    ck_assert_int_eq(got.tokens, tokens);
    ck_assert_int_eq(got.blocks, (299 + N - 1) / N);
    ck_assert_msg(got.nll == sum, "%.17g by hand, not %.17g", sum, got.nll);
    toyrun_close(&r);
}
END_TEST

START_TEST(columns_predict_all_but_their_first_token)
{
    toyrun r = open_run("ref", "lamemo");
    /* 300 tokens in 7 columns: 42 rows, 41 predicted each, 6 tokens left out */
    const lam_eval_result all =
        evaluate(&r, &(lam_eval_options){.batch = 7, .tgt_len = 5, .mem_len = 8});
    ck_assert_int_eq(all.tokens, 7 * 41);
    ck_assert_int_eq(all.blocks, 7 * 9);
    const lam_eval_result some =
        evaluate(&r, &(lam_eval_options){.batch = 7, .tgt_len = 5, .mem_len = 8, .max_steps = 3});
    ck_assert_int_eq(some.tokens, 7 * 15);
    ck_assert_int_eq(some.blocks, 7 * 3);
    toyrun_close(&r);
}
END_TEST

/* One stream: its targets are all tokens but the first. */
START_TEST(bits_per_byte_count_the_bytes_of_the_targets)
{
    toyrun r = open_run("ref", "none");
    int32_t sizes[64], ids[300];
    const int N = 7, steps = 4;
    for (int i = 0; i < 64; i++)
        sizes[i] = i % 5;
    lam_tokens text = *r.text;
    const lam_eval_options o = {.batch = 1, .tgt_len = N, .ext_len = _i * 3, .max_steps = steps};
    ck_assert(isnan(lam_eval_bits_per_byte(&(lam_eval_result){.nll = 1, .tokens = 1})));
    lam_tokens_weigh(&text, sizes, 0);
    lam_tokens_copy(&text, ids, 0, 300);
    double all = 0, some = 0;
    for (int i = 0; i < 300; i++) {
        all += sizes[ids[i]];
        some += i >= 1 && i <= steps * N ? sizes[ids[i]] : 0;
    }
    ck_assert(lam_tokens_bytes(&text) == all);
    for (int scaled = 0; scaled < 2; scaled++) {
        lam_evaluator *e;
        lam_eval_result got;
        if (scaled)
            lam_tokens_weigh(&text, sizes, (int64_t)(2 * all)); /* white space, <unk> */
        must(lam_evaluator_create(&e, r.model, &o));
        must(lam_evaluator_run(e, &got, &text, NULL, NULL));
        lam_evaluator_free(e);
        ck_assert(got.bytes == (1 + scaled) * some);
        ck_assert_double_eq_tol(lam_eval_bits_per_byte(&got), got.nll / log(2.0) / got.bytes,
                                1e-15);
        ck_assert_double_eq_tol(lam_eval_bits_error(&got) * got.bytes,
                                lam_metric_error(LAM_BPC, &got) * (double)got.tokens, 1e-9);
    }
    toyrun_close(&r);
}
END_TEST

/* Without a memory a segment is an island: its last n rows are those of a longer one. */
START_TEST(extra_rows_are_context_and_not_counted)
{
    enum { N = 7, E = 10 };
    toyrun r = open_run(_i ? "cpu" : "ref", "none");
    const lam_eval_result got =
        evaluate(&r, &(lam_eval_options){.batch = 1, .tgt_len = N, .ext_len = E});
    lam_stack *stack;
    must(lam_stack_create(&stack, r.model, &(lam_stack_options){.B = 1, .N = N + E}));
    double sum = 0.0, nll[N + E];
    for (int64_t at = 0; at < r.text->count - 1; at += N) {
        const int n = r.text->count - 1 - at < N ? (int)(r.text->count - 1 - at) : N;
        const int e = at < E ? (int)at : E;
        int32_t in[N + E], out[N + E];
        lam_tokens_copy(r.text, in, at - e, (size_t)(e + n));
        lam_tokens_copy(r.text, out, at - e + 1, (size_t)(e + n));
        lam_stack_begin(stack, e + n, (lam_stack_dropout){0});
        lam_stack_forward(stack, in, e + n);
        lam_stack_loss(stack, out, 0.0);
        must(lam_stack_nll(stack, nll));
        lam_stack_commit(stack);
        for (int i = e; i < e + n; i++)
            sum += nll[i];
    }
    lam_stack_free(stack);
    ck_assert_int_eq(got.tokens, 299);
    ck_assert_double_eq_tol(got.nll, sum, _i ? 1e-3 : 1e-9);
    toyrun_close(&r);
}
END_TEST

/* If the memory holds everything, a row that is computed again is what it was: nothing changes.  A memory that kept
 * the extra rows as well would show them twice. */
START_TEST(extra_rows_leave_the_memory_when_they_come_again)
{
    toyrun r = open_run("ref", "xl");
    const lam_eval_result plain =
        evaluate(&r, &(lam_eval_options){.batch = 2, .tgt_len = 7, .mem_len = 300});
    for (int E = 1; E <= 20; E += 3) {
        const lam_eval_result again = evaluate(
            &r, &(lam_eval_options){.batch = 2, .tgt_len = 7, .mem_len = 300, .ext_len = E});
        ck_assert_int_eq(again.tokens, plain.tokens);
        ck_assert_msg(fabs(again.nll - plain.nll) < 1e-9, "E = %d: %.15g, not %.15g", E, again.nll,
                      plain.nll);
    }
    toyrun_close(&r);
}
END_TEST

/* The toy has 300 tokens.  Its memory's own lengths, too, may be longer. */
START_TEST(lengths_beyond_the_text_take_no_memory_and_change_nothing)
{
    static const char *const memories[] = {"none", "xl", "lamemo", "compressive carry thirds",
                                           "infinite sticky"};
    enum { LONG = 3000 };
    toyrun r = open_run("ref", memories[_i]);
    const int M = _i == 0 ? 0 : LONG, E = _i < 2 ? LONG : 0;
    if (_i >= 3)
        toy_set_number(&r.model->cfg, _i == 3 ? "cmem_len" : "ltm_block", LONG);
    const lam_eval_options asked[] = {
        {.batch = 2, .tgt_len = 7, .mem_len = M},
        {.batch = 2, .tgt_len = 7, .mem_len = M, .ext_len = E},
        {.batch = 2, .tgt_len = LONG, .mem_len = M},
        {.batch = 2, .tgt_len = 7, .mem_len = M, .ext_len = E, .skip = 2, .max_steps = 3},
        {.batch = 2, .tgt_len = 7, .mem_len = M, .max_steps = INT64_MAX / 2},
    };
    const int64_t most[] = {149, 149, 149, 5 * 7, 149};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        lam_eval_options fit = asked[i];
        lam_eval_fit(&fit, r.text);
        ck_assert_int_eq(fit.tgt_len, asked[i].tgt_len == LONG ? LAM_FIT_LEAST : 7);
        ck_assert_int_eq(fit.mem_len, M ? LAM_FIT_LEAST : 0);
        ck_assert_int_eq(fit.ext_len, asked[i].ext_len ? LAM_FIT_LEAST : 0);
        ck_assert_int_eq(fit.most, most[i]);
        const lam_eval_result a = evaluate(&r, &asked[i]), b = evaluate(&r, &fit);
        ck_assert_int_eq(a.tokens, b.tokens);
        ck_assert_msg(a.nll == b.nll, "%zu: %.17g, not %.17g", i, b.nll, a.nll);
    }
    /* Memory is short, a cutting of the text into segments stays: rows leave the newest ones and are compressed. */
    lam_eval_options asked_short = {.batch = 2, .tgt_len = 7, .mem_len = _i == 0 ? 0 : 5}, fit;
    fit = asked_short;
    lam_eval_fit(&fit, r.text);
    const lam_eval_result a = evaluate(&r, &asked_short), b = evaluate(&r, &fit);
    ck_assert_msg(a.nll == b.nll, "%.17g, not %.17g", b.nll, a.nll);
    toyrun_close(&r);
}
END_TEST

START_TEST(extra_rows_are_refused_where_they_mean_nothing)
{
    static const char *const memories[] = {"lamemo", "compressive", "infinite"};
    for (int i = 0; i < 3; i++) {
        toyrun r = open_run("ref", memories[i]);
        lam_evaluator *e;
        ck_assert_int_eq(
            lam_evaluator_create(
                &e, r.model,
                &(lam_eval_options){.batch = 1, .tgt_len = 4, .mem_len = 4, .ext_len = 2}),
            LAM_ERR_ARG);
        ck_assert_msg(strstr(lam_error(), "ext_len 2 has no meaning for memory") != NULL, "%s",
                      lam_error());
        toyrun_close(&r);
    }
}
END_TEST

/* Each has a past of its own: steps with evaluations between them are the steps without, and what an evaluation
 * finds does not depend on what was trained just before. */
START_TEST(training_and_evaluation_do_not_see_each_other)
{
    static const char *const memories[] = {"none", "xl", "lamemo", "compressive carry thirds",
                                           "infinite sticky"};
    const char *memory = memories[_i / 2], *device = _i % 2 ? "cpu" : "ref";
    toyrun alone = open_run(device, memory), watched = open_run(device, memory);
    const int M = strcmp(memory, "none") == 0 ? 0 : 4;
    const lam_eval_options options = {.batch = 2, .tgt_len = 4, .mem_len = M};
    lam_evaluator *e;
    lam_eval_result in_between, fresh;
    must(lam_evaluator_create(&e, watched.model, &options));
    for (int step = 0; step < 7; step++) {
        toyrun_steps(&alone, 1, NULL);
        toyrun_steps(&watched, 1, NULL);
        must(lam_evaluator_run(e, &in_between, watched.text, NULL, NULL));
        fresh = evaluate(&alone, &options);
        ck_assert_msg(in_between.nll == fresh.nll, "%s: %.17g and %.17g", memory, in_between.nll,
                      fresh.nll);
    }
    ck_assert_msg(toyrun_equal(&alone, &watched), "%s", memory);
    lam_evaluator_free(e);
    toyrun_close(&alone);
    toyrun_close(&watched);
}
END_TEST

START_TEST(the_error_is_that_of_the_mean_of_blocks)
{
    /* Equal blocks: the standard error of their means. */
    const double means[4] = {1.0, 2.0, 4.0, 5.0};
    lam_eval_result r = {0};
    for (int i = 0; i < 4; i++) {
        const double S = 10.0 * means[i];
        r.nll += S;
        r.tokens += 10;
        r.blocks++;
        r.nll_nll += S * S;
        r.nll_n += S * 10.0;
        r.n_n += 100.0;
    }
    ck_assert_double_eq_tol(lam_eval_mean(&r), 3.0, 1e-15);
    /* variance (4 + 1 + 1 + 4) / 3, over 4 blocks */
    ck_assert_double_eq_tol(lam_eval_error(&r), sqrt(10.0 / 3.0 / 4.0), 1e-14);
    r.blocks = 1;
    ck_assert(isnan(lam_eval_error(&r)));
}
END_TEST

static int stop_at_once(void *user, const lam_eval_result *so_far, int64_t total)
{
    int64_t *seen = user;
    seen[0] = so_far->tokens;
    seen[1] = total;
    return 1;
}

START_TEST(a_pass_can_be_watched_and_stopped)
{
    toyrun r = open_run("ref", "xl");
    lam_evaluator *e;
    lam_eval_result result;
    int64_t seen[2] = {0};
    must(lam_evaluator_create(&e, r.model,
                              &(lam_eval_options){.batch = 2, .tgt_len = 5, .mem_len = 4}));
    ck_assert_int_eq(lam_evaluator_run(e, &result, r.text, stop_at_once, seen),
                     LAM_ERR_INTERRUPTED);
    ck_assert_int_eq(seen[0], 10);
    ck_assert_int_eq(seen[1], 2 * 149);
    lam_evaluator_free(e);
    toyrun_close(&r);
}
END_TEST

START_TEST(a_text_that_does_not_fit_is_refused)
{
    toyrun r = open_run("ref", "xl");
    lam_evaluator *e;
    lam_eval_result result;
    must(lam_evaluator_create(&e, r.model,
                              &(lam_eval_options){.batch = 200, .tgt_len = 5, .mem_len = 4}));
    ck_assert_int_eq(lam_evaluator_run(e, &result, r.text, NULL, NULL), LAM_ERR_ARG);
    r.text->vocab_size = 99;
    ck_assert_int_eq(lam_evaluator_run(e, &result, r.text, NULL, NULL), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "the text has a vocabulary of 99, the model one of 13");
    lam_evaluator_free(e);
    toyrun_close(&r);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, one_stream_equals_the_text_streamed_by_hand, 0, 10);
    tcase_add_loop_test(tests, bits_per_byte_count_the_bytes_of_the_targets, 0, 2);
    tcase_add_test(tests, columns_predict_all_but_their_first_token);
    tcase_add_loop_test(tests, extra_rows_are_context_and_not_counted, 0, 2);
    tcase_add_test(tests, extra_rows_leave_the_memory_when_they_come_again);
    tcase_add_loop_test(tests, lengths_beyond_the_text_take_no_memory_and_change_nothing, 0, 5);
    tcase_add_test(tests, extra_rows_are_refused_where_they_mean_nothing);
    tcase_add_loop_test(tests, training_and_evaluation_do_not_see_each_other, 0, 10);
    tcase_add_test(tests, the_error_is_that_of_the_mean_of_blocks);
    tcase_add_test(tests, a_pass_can_be_watched_and_stopped);
    tcase_add_test(tests, a_text_that_does_not_fit_is_refused);
    return test_run("train/evaluate", tests);
}
