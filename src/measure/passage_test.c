/* passage_test.c -- a passage token by token: the losses are the evaluator's, the attention weights are the probe's and add
 * up to 1, and the passage begins and ends where it was asked for. */
#include "measure/passage.h"

#include "measure/probe.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/toyrun.h"

#include <math.h>
#include <string.h>

enum { N = 5, M = 7, FROM = 12, COUNT = 13, LAYER = 1 }; /* FROM is within a segment */

static toyrun open_run(const char *memory)
{
    lam_config cfg = toyrun_config(memory);
    const lam_settings s = toyrun_settings();
    toyrun r = toyrun_open("ref", &cfg, &s);
    toyrun_steps(&r, 40, NULL); /* so that attention is not uniform */
    return r;
}

static lam_passage_options options(const toyrun *r)
{
    return (lam_passage_options){.tgt_len = N,
                                 .mem_len = strcmp(r->model->cfg.memory, "none") == 0 ? 0 : M,
                                 .layer = LAYER,
                                 .from = FROM,
                                 .n = COUNT};
}

static lam_status keep_losses(void *user, const lam_eval_segment *seg)
{
    memcpy((double *)user + seg->row, seg->nll, (size_t)seg->n * sizeof(double));
    return LAM_OK;
}

START_TEST(tokens_and_losses_are_those_of_an_evaluation)
{
    toyrun r = open_run("lamemo");
    const lam_passage_options o = options(&r);
    lam_passage p;
    lam_evaluator *e;
    lam_eval_result result;
    double nll[40];
    int32_t ids[40];
    must(lam_passage_read(&p, r.model, r.text, &o, NULL, NULL));
    must(lam_evaluator_create(&e, r.model,
                              &(lam_eval_options){.batch = 1,
                                                  .tgt_len = N,
                                                  .mem_len = M,
                                                  .max_steps = 6,
                                                  .visit = keep_losses,
                                                  .visitor = nll}));
    must(lam_evaluator_run(e, &result, r.text, NULL, NULL));
    lam_tokens_copy(r.text, ids, 0, 40);
    ck_assert_int_eq(p.n, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(p.tokens[i], ids[FROM + 1 + i]);
        ck_assert_double_eq_tol(p.nll[i], nll[FROM + i], 1e-12);
    }
    lam_evaluator_free(e);
    lam_passage_free(&p);
    toyrun_close(&r);
}
END_TEST

/* There are no more than 16 keys to attend to, so all of them are kept. */
static void check_weights(const char *memory)
{
    toyrun r = open_run(memory);
    lam_passage_options o = options(&r);
    o.from = 3 * N;
    o.n = 4 * N;
    const lam_probe_options like = {.batch = 1,
                                    .tgt_len = N,
                                    .mem_len = o.mem_len,
                                    .segments = 4,
                                    .tokens = 4 * N,
                                    .interval = 1,
                                    .from = o.from};
    lam_passage p;
    lam_probe probe;
    double nearest = 0.0, expected = 0.0;
    must(lam_passage_read(&p, r.model, r.text, &o, NULL, NULL));
    must(lam_probe_run(&probe, r.model, r.text, &like, NULL, NULL));
    for (int i = 0; i < p.n; i++) {
        double sum = 0.0, before = 1.0;
        bool seen[N + M + 1] = {false};
        for (int k = 0; k < LAM_ATTENDED && p.back[i * LAM_ATTENDED + k] > 0; k++) {
            const int back = p.back[i * LAM_ATTENDED + k];
            const double weight = (double)p.weight[i * LAM_ATTENDED + k];
            ck_assert_int_le(back, o.mem_len + i % N + 1);
            ck_assert(!seen[back] && weight > 0.0 && weight <= before);
            seen[back] = true;
            before = weight;
            sum += weight;
            nearest += back == 1 ? weight / p.n : 0.0;
        }
        ck_assert_msg(fabs(sum - 1.0) < 1e-5, "%s, token %d: %g", memory, i, sum);
    }
    for (int h = 0; h < probe.H; h++)
        expected += probe.peak[(LAYER * probe.H + h) * probe.bins] / probe.H;
    ck_assert_double_eq_tol(nearest, expected, 1e-6);
    lam_probe_free(&probe);
    lam_passage_free(&p);
    toyrun_close(&r);
}

START_TEST(the_weights_of_a_token_add_up_and_are_the_probes)
{
    static const char *const memories[] = {"none", "xl", "lamemo"};
    check_weights(memories[_i]);
}
END_TEST

START_TEST(compressed_rows_are_left_out)
{
    toyrun r = open_run("compressive");
    const lam_passage_options o = options(&r);
    lam_passage p;
    must(lam_passage_read(&p, r.model, r.text, &o, NULL, NULL));
    for (int i = 0; i < p.n * LAM_ATTENDED; i++)
        ck_assert_int_le(p.back[i], M + N);
    lam_passage_free(&p);
    toyrun_close(&r);
}
END_TEST

START_TEST(a_short_text_is_read_from_an_empty_memory_to_its_end)
{
    toyrun r = open_run("lamemo");
    lam_passage_options o = options(&r);
    lam_tokens text = *r.text;
    lam_passage p;
    o.from = 0;
    text.count = 8; /* one segment and a part of the next; the first token is not predicted */
    must(lam_passage_read(&p, r.model, &text, &o, NULL, NULL));
    ck_assert_int_eq(p.n, 7);
    ck_assert_int_eq(p.back[0], 1);
    ck_assert_float_eq(p.weight[0], 1.0f); /* there is nothing else */
    ck_assert_int_eq(p.back[1], 0);
    lam_passage_free(&p);
    text.count = 1;
    ck_assert_int_ne(lam_passage_read(&p, r.model, &text, &o, NULL, NULL), LAM_OK);
    ck_assert_ptr_null(p.tokens);
    toyrun_close(&r);
}
END_TEST

START_TEST(without_memory_nothing_leaks)
{
    toyrun r = open_run("lamemo");
    const lam_passage_options o = options(&r);
    lam_passage p;
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_passage_read(&p, r.model, r.text, &o, NULL, NULL);
        const int failed = test_alloc_stop();
        ck_assert_int_eq(status, failed ? LAM_ERR_MEMORY : LAM_OK);
        lam_passage_free(&p);
    }
    toyrun_close(&r);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, tokens_and_losses_are_those_of_an_evaluation);
    tcase_add_loop_test(tests, the_weights_of_a_token_add_up_and_are_the_probes, 0, 3);
    tcase_add_test(tests, compressed_rows_are_left_out);
    tcase_add_test(tests, a_short_text_is_read_from_an_empty_memory_to_its_end);
    tcase_add_test(tests, without_memory_nothing_leaks);
    return test_run("measure/passage", tests);
}
