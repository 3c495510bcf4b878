/* analysis_test.c -- an analysis of small models: its numbers are those of the parts it is made of, its files hold them,
 * and it can be stopped or run out of memory anywhere. */
#include "report/analysis_page.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/toy_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 900, N = TOY_FOLDER_N, M = TOY_FOLDER_M };

static lam_dev *dev;
static lam_engine *engines[3]; /* lamemo, xl, none */
static lam_corpus corpus;
static unsigned char text[TEXT];
static const char *const names[] = {"lamemo", "xl", "none"};

static void open_all(void)
{
    const lam_ops *ops = NULL;
    must(lam_ops_find(&ops, "cpu"));
    must(ops->open(&dev, &(lam_dev_options){.threads = 1}));
    for (int i = 0; i < 3; i++) {
        must(toy_folder_save(test_temp_path(names[i]), names[i], 3));
        must(lam_engine_open(&engines[i], test_temp_path(names[i]), dev, NULL));
    }
    for (int i = 0; i < TEXT; i++)
        text[i] = (unsigned char)"in the beginning was the word, <b> & \xc3\xa9 "[i * 7 % 41];
    corpus.vocab = engines[0]->vocab;
    snprintf(corpus.info.name, sizeof corpus.info.name, "toy & text");
    corpus.split[LAM_TEST] =
        (lam_tokens){.ids = text, .width = 1, .vocab_size = 256, .count = TEXT, .split = "test"};
}

static void close_all(void)
{
    for (int i = 0; i < 3; i++)
        lam_engine_close(engines[i]);
    dev->ops->close(dev);
}

static lam_analysis_options options(void)
{
    return (lam_analysis_options){
        .probe = {.batch = 2, .segments = 6, .tokens = 60, .interval = 5},
        .passage = 30,
        .paper = true,
        .sweep = {.batch = 2, .tgt_len = 8, .n = 3, .lengths = {16, 8, 24}, .tokens = 64},
        .prompt_tokens = 10,
        .story_tokens = 12,
        .sampler = lam_sampler_defaults(),
        .encoding_width = 8};
}

static lam_status analyse(lam_analysis **a, const lam_analysis_options *o,
                          lam_analysis_watch *watch, void *user)
{
    LAM_TRY(lam_analysis_create(a, &corpus, LAM_TEST, o));
    for (int i = 0; i < 3; i++)
        LAM_TRY(lam_analysis_plan(*a, &engines[i]->model->cfg, names[i]));
    for (int i = 0; i < 3; i++)
        LAM_TRY(lam_analysis_add(*a, engines[i], watch, user));
    return LAM_OK;
}

START_TEST(the_sweep_reads_the_same_tokens_with_every_memory)
{
    const lam_analysis_options o = options();
    lam_analysis *a;
    must(analyse(&a, &o, NULL, NULL));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            lam_evaluator *e;
            lam_eval_result r;
            must(lam_evaluator_create(
                &e, engines[i]->model,
                &(lam_eval_options){
                    .batch = 2, .tgt_len = 8, .mem_len = 8 * (k + 1), .max_steps = 4, .skip = 3}));
            must(lam_evaluator_run(e, &r, &corpus.split[LAM_TEST], NULL, NULL));
            ck_assert_int_eq(a->models[i].points[k].mem_len, 8 * (k + 1));
            ck_assert_int_eq(a->models[i].points[k].result.tokens, 64);
            ck_assert(a->models[i].points[k].result.nll == r.nll);
            lam_evaluator_free(e);
        }
    ck_assert_int_eq(a->models[2].n_points, 0);
    ck_assert_str_eq(a->models[2].sweep_note, "it has no memory");
    lam_analysis_free(a);
}
END_TEST

START_TEST(all_models_show_the_same_passage_and_continue_it)
{
    const lam_analysis_options o = options();
    lam_analysis *a;
    must(analyse(&a, &o, NULL, NULL));
    ck_assert_int_eq(a->opt.probe.from, N); /* one segment fills the memory of 9 */
    for (int i = 0; i < 3; i++) {
        const lam_passage *p = &a->models[i].passage;
        ck_assert_int_eq(p->n, 30); /* also without memory: the same text for all */
        for (int k = 0; k < p->n; k++)
            ck_assert_int_eq(p->tokens[k], text[N + 1 + k]);
        ck_assert_ptr_nonnull(a->models[i].story.text);
    }
    ck_assert_int_eq((int)a->n_prompt, 10);
    ck_assert(memcmp(a->prompt_text, text + N + 1, 10) == 0);
    ck_assert(memcmp(a->truth.text, text + N + 11, 12) == 0);
    lam_analysis_free(a);
}
END_TEST

/* The nth number of line `line` of a CSV file. */
static double csv_number(const char *file, int line, int column)
{
    char path[4096], *bytes, *at;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", test_temp_path("out"), file);
    must(lam_file_load(&bytes, &size, path, 1 << 20));
    at = bytes;
    while (line-- > 0)
        at = strchr(at, '\n') + 1;
    while (column-- > 0)
        at = strchr(at, ',') + 1;
    const double x = strtod(at, NULL);
    free(bytes);
    return x;
}

START_TEST(files_hold_the_numbers)
{
    const lam_analysis_options o = options();
    lam_analysis *a;
    char path[4096], *page;
    size_t size;
    must(analyse(&a, &o, NULL, NULL));
    must(lam_analysis_write(a, test_temp_path("out"), "lamemo analyze <me>"));
    const lam_probe *p = &a->models[0].probe;
    ck_assert_int_eq(p->M, M);
    for (int s = 0; s < M; s++) /* slot 1.., layers 1 and 2 */
        for (int l = 0; l < 2; l++)
            ck_assert_double_eq_tol(csv_number("alpha-1.csv", 1 + s, 1 + l),
                                    (p->alpha[2 * l * M + s] + p->alpha[(2 * l + 1) * M + s]) / 2.0,
                                    1e-12);
    ck_assert_double_eq(csv_number("attention-distance.csv", 1, 0), 3.0);
    ck_assert_double_eq_tol(csv_number("attention-distance.csv", 1, 1),
                            (p->peak[2 * p->bins] + p->peak[3 * p->bins]) / 2.0, 1e-12);
    ck_assert_double_eq_tol(csv_number("extrapolation-table.csv", 2, 3),
                            lam_eval_mean(&a->models[1].points[1].result) / log(2.0), 1e-12);
    snprintf(path, sizeof path, "%s/report.html", test_temp_path("out"));
    must(lam_file_load(&page, &size, path, 16 << 20));
    ck_assert_ptr_nonnull(strstr(page, "toy &amp; text"));
    ck_assert_ptr_nonnull(strstr(page, "Memorizing coefficient: lamemo"));
    ck_assert_ptr_null(strstr(page, "<b> & ")); /* the text is shown, not interpreted */
    free(page);
    json_t *json = lam_analysis_json(a);
    ck_assert_int_eq((int)json_array_size(json_object_get(json, "models")), 3);
    json_decref(json);
    lam_analysis_free(a);
}
END_TEST

typedef struct told {
    double all;
    int calls;
} told;

static int listen(void *user, const lam_analysis_progress *p)
{
    told *t = user;
    ck_assert(p->share >= 0.0 && p->share <= 1.0 && p->what[0]);
    ck_assert_msg(p->all >= t->all && p->all <= 1.0, "%s: %g after %g", p->what, p->all, t->all);
    t->all = p->all;
    t->calls++;
    return 0;
}

START_TEST(progress_rises_to_the_end)
{
    const lam_analysis_options o = options();
    lam_analysis *a;
    told t = {0};
    must(analyse(&a, &o, listen, &t));
    ck_assert_int_gt(t.calls, 50);
    ck_assert_double_eq_tol(t.all, 1.0, 1e-9);
    lam_analysis_free(a);
}
END_TEST

/* Differences between models are taken stretch by stretch: they must hold the same tokens. */
START_TEST(stretches_of_all_models_hold_the_same_tokens)
{
    const lam_analysis_options o = options();
    lam_analysis *a;
    must(analyse(&a, &o, NULL, NULL));
    for (int k = 0; k < 3; k++) {
        const lam_parted *x = &a->models[0].points[k].nll, *y = &a->models[1].points[k].nll;
        double sum = 0.0, count = 0.0;
        for (int part = 0; part < LAM_PARTS; part++) {
            ck_assert_double_eq(x->count[part], y->count[part]);
            sum += x->sum[part];
            count += x->count[part];
        }
        ck_assert_double_eq_tol(sum, a->models[0].points[k].result.nll, 1e-9);
        ck_assert_int_eq((int)count, 64);
    }
    lam_analysis_free(a);
}
END_TEST

static int stop_later(void *user, const lam_analysis_progress *p)
{
    (void)p;
    return --*(int *)user < 0;
}

START_TEST(it_can_be_stopped_anywhere)
{
    const lam_analysis_options o = options();
    int stops = 0;
    for (int calls = 0;; calls += 11) {
        int left = calls;
        lam_analysis *a;
        const lam_status status = analyse(&a, &o, stop_later, &left);
        lam_analysis_free(a);
        if (status == LAM_OK)
            break;
        ck_assert_int_eq(status, LAM_ERR_INTERRUPTED);
        stops++;
    }
    ck_assert_int_gt(stops, 5);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const lam_analysis_options o = options();
    int failures = 0;
    for (long n = 1; test_alloc_fail(n); n += 1 + n / 20) {
        lam_analysis *a = NULL;
        lam_status status = analyse(&a, &o, NULL, NULL);
        if (status == LAM_OK)
            status = lam_analysis_write(a, test_temp_path("short"), NULL);
        const int failed = test_alloc_stop();
        ck_assert_msg(failed ? status == LAM_ERR_MEMORY : status == LAM_OK,
                      "allocation %ld: %d, %s", n, status, lam_error());
        lam_analysis_free(a);
        failures += failed;
    }
    ck_assert_int_ge(failures, 60);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    lam_analysis_options o = options();
    lam_analysis *a;
    o.encoding_width = 7;
    ck_assert_int_eq(lam_analysis_create(&a, &corpus, LAM_TEST, &o), LAM_ERR_ARG);
    ck_assert_ptr_null(a);
    o = options();
    o.sweep.lengths[1] = 0;
    ck_assert_int_eq(lam_analysis_create(&a, &corpus, LAM_TEST, &o), LAM_ERR_ARG);
    o = options();
    o.layer = 3;
    must(lam_analysis_create(&a, &corpus, LAM_TEST, &o));
    ck_assert_int_eq(lam_analysis_plan(a, &engines[0]->model->cfg, "x"), LAM_ERR_ARG);
    lam_analysis_free(a);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, open_all, close_all);
    tcase_add_test(tests, the_sweep_reads_the_same_tokens_with_every_memory);
    tcase_add_test(tests, all_models_show_the_same_passage_and_continue_it);
    tcase_add_test(tests, files_hold_the_numbers);
    tcase_add_test(tests, progress_rises_to_the_end);
    tcase_add_test(tests, stretches_of_all_models_hold_the_same_tokens);
    tcase_add_test(tests, it_can_be_stopped_anywhere);
    tcase_add_test(tests, every_allocation_may_fail);
    tcase_add_test(tests, what_makes_no_sense_is_refused);
    return test_run("report/analysis", tests);
}
