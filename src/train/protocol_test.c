/* protocol_test.c -- what a run evaluates, which model it keeps, and what it writes down. */
#include "train/run.h"

#include "core/file.h"
#include "core/log.h"
#include "support/suite.h"
#include "support/toyrun.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void be_quiet(void)
{
    lam_log_set_level(LAM_LOG_ERROR);
}

/* A run of a few steps with one text to validate and test on. */
typedef struct trial {
    toyrun run;
    unsigned char *ids;
    lam_tokens valid;
    lam_run_result result;
} trial;

static lam_settings trial_settings(void)
{
    lam_settings s = toyrun_settings();
    s.max_step = 1;
    s.lr = 0.0;
    s.eval_batch_size = 2;
    s.scheduler = LAM_SCHEDULE_CONSTANT;
    return s;
}

static trial trial_open(const lam_config *cfg, const lam_settings *s)
{
    trial t = {.run = toyrun_open("cpu", cfg, s)};
    t.valid = toyrun_text(&t.ids, 100, cfg->n_token, 5);
    return t;
}

static void trial_go(trial *t, const char *dir, int with_test)
{
    lam_runlog *log;
    must(lam_dir_make(dir));
    must(lam_runlog_open(&log, dir));
    must(lam_runlog_begin(log, NULL));
    must(lam_run(
        &t->result, t->run.trainer, log,
        &(lam_run_options){
            .dir = dir, .valid = &t->valid, .test = with_test ? &t->valid : NULL, .vocab = "{}"},
        NULL));
    lam_runlog_close(log);
}

static void trial_close(trial *t)
{
    toyrun_close(&t->run);
    free(t->ids);
}

static double loss_of(const trial *t, int tgt_len, int mem_len, int ext_len)
{
    lam_evaluator *e;
    lam_eval_result r;
    must(lam_evaluator_create(
        &e, t->run.model,
        &(lam_eval_options){
            .batch = 2, .tgt_len = tgt_len, .mem_len = mem_len, .ext_len = ext_len}));
    must(lam_evaluator_run(e, &r, &t->valid, NULL, NULL));
    lam_evaluator_free(e);
    return lam_eval_mean(&r);
}

/* Shorter segments get a longer memory; where there is none, rows that are read again. */
START_TEST(evaluation_keeps_the_span_of_attention)
{
    static const struct {
        const char *memory;
        int eval_tgt_len, mem_len, ext_len;
    } cases[] = {{"xl", 0, 4, 0},     {"xl", 3, 5, 0},         {"xl", 6, 2, 0},
                 {"none", 0, 0, 0},   {"none", 1, 0, 3},       {"none", 6, 0, 0},
                 {"lamemo", 2, 6, 0}, {"compressive", 2, 6, 0}};
    const lam_config cfg = toyrun_config(cases[_i].memory); /* N = M = 4, or M = 0 */
    lam_settings s = trial_settings();
    s.eval_tgt_len = cases[_i].eval_tgt_len;
    trial t = trial_open(&cfg, &s);
    trial_go(&t, test_temp_path("span"), 0);
    const int N = s.eval_tgt_len > 0 ? s.eval_tgt_len : 4;
    ck_assert_double_eq_tol(t.result.best_loss,
                            loss_of(&t, N, cases[_i].mem_len, cases[_i].ext_len), 1e-12);
    trial_close(&t);
}
END_TEST

START_TEST(only_a_better_model_replaces_the_best)
{
    const lam_config cfg = toyrun_config("xl");
    lam_settings s = trial_settings();
    s.max_step = 3;
    s.eval_interval = 1;
    trial t = trial_open(&cfg, &s); /* learns nothing: all evaluations are equal */
    trial_go(&t, test_temp_path("equal"), 0);
    ck_assert_int_eq(t.result.best_step, 1);
    trial_close(&t);
}
END_TEST

START_TEST(the_best_model_is_tested_not_the_last)
{
    const lam_config cfg = toyrun_config("xl");
    lam_settings s = trial_settings();
    s.max_step = 6;
    s.eval_interval = 1;
    s.lr = 2.0; /* hardly any step is one forward */
    trial t = trial_open(&cfg, &s);
    trial_go(&t, test_temp_path("worse"), 1);
    ck_assert_int_lt(t.result.best_step, 6);
    ck_assert_double_eq_tol(lam_eval_mean(&t.result.test), t.result.best_loss, 1e-12);
    trial_close(&t);
}
END_TEST

/* The n-th "loss" of a metrics file. */
static double logged_loss(const char *metrics, int n)
{
    char *text;
    size_t size;
    must(lam_file_load(&text, &size, metrics, 1 << 20));
    const char *at = text;
    for (int i = 0; i <= n; i++) {
        at = strstr(at, "\"loss\":");
        ck_assert_ptr_nonnull(at);
        at += 7;
    }
    const double loss = strtod(at, NULL);
    free(text);
    return loss;
}

START_TEST(the_logged_loss_is_the_mean_since_the_line_before)
{
    const lam_config cfg = toyrun_config("lamemo");
    lam_settings s = trial_settings();
    double losses[6];
    s.max_step = 6;
    s.log_interval = 3;
    s.lr = 1e-2;
    trial t = trial_open(&cfg, &s);
    toyrun again = toyrun_open("cpu", &cfg, &s);
    toyrun_steps(&again, 6, losses);
    trial_go(&t, test_temp_path("mean"), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(logged_loss(test_temp_path("mean/metrics.jsonl"), i),
                                (losses[3 * i] + losses[3 * i + 1] + losses[3 * i + 2]) / 3, 1e-6);
    toyrun_close(&again);
    trial_close(&t);
}
END_TEST

START_TEST(the_time_of_earlier_calls_is_counted)
{
    const lam_config cfg = toyrun_config("none");
    const lam_settings s = trial_settings();
    trial t = trial_open(&cfg, &s);
    t.run.trainer->state.elapsed = 1e6;
    trial_go(&t, test_temp_path("time"), 0);
    ck_assert_double_ge(t.run.trainer->state.elapsed, 1e6);
    trial_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, be_quiet, NULL);
    tcase_add_loop_test(tests, evaluation_keeps_the_span_of_attention, 0, 8);
    tcase_add_test(tests, only_a_better_model_replaces_the_best);
    tcase_add_test(tests, the_best_model_is_tested_not_the_last);
    tcase_add_test(tests, the_logged_loss_is_the_mean_since_the_line_before);
    tcase_add_test(tests, the_time_of_earlier_calls_is_counted);
    return test_run("train/protocol", tests);
}
