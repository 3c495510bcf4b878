/* runview_test.c -- runs side by side: names, tables and figures say what was logged. */
#include "report/runview.h"

#include "core/file.h"
#include "core/log.h"
#include "report/run_figures.h"
#include "report/run_page.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int warnings;

static void count_warnings(lam_log_level level, const char *line, void *user)
{
    (void)line;
    (void)user;
    warnings += level == LAM_LOG_WARN;
}

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s", test_temp_path(name));
    *strrchr(path, '/') = '\0';
    ck_assert_int_eq(lam_dir_make(path), LAM_OK);
    ck_assert_int_eq(lam_file_save(test_temp_path(name), text, strlen(text)), LAM_OK);
}

static void make_runs(void)
{
    lam_log_set_sink(count_warnings, NULL);
    test_temp_make();
    put("a/metrics.jsonl",
        "{\"step\":1,\"loss\":2,\"bpc\":2.885,\"lr\":0.1,\"aux\":5,\"elapsed\":600}\n"
        "{\"step\":2,\"loss\":1,\"bpc\":1.443,\"lr\":0.2,\"elapsed\":1200}\n"
        "{\"step\":2,\"valid_loss\":1.5,\"valid_bpc\":2.1,\"valid_stderr\":0.5,\"elapsed\":1300}\n"
        "{\"step\":2,\"test_loss\":1.25,\"elapsed\":1400}\n");
    put("a/last/config.json", "{\"memory\":\"lamemo\",\"n_layer\":4,\"cutoffs\":[]}");
    put("a/last/training_state.json", "{\"settings\":{\"lr\":0.1,\"seed\":1},\"device\":\"cpu\","
                                      "\"corpus\":{\"path\":\"data/x\"}}");
    put("b/metrics.jsonl", "{\"step\":1,\"loss\":3,\"bpc\":4.3,\"elapsed\":600}\n{\"step\":2,\"lo");
    put("b/best/config.json", "{\"memory\":\"xl\",\"n_layer\":4,\"cutoffs\":[7]}");
    put("words/metrics.jsonl", "{\"step\":1,\"loss\":3,\"ppl\":20}\n");
    put("empty/metrics.jsonl", "");
    put("c/a/metrics.jsonl", "{\"step\":1,\"diverged\":1}\n");
    put("kept.metrics.jsonl", "{\"step\":1,\"loss\":3}\n{\"step\":1,\"ended\":1}\n");
}

static lam_runs opened(int n, const char *const *names)
{
    char *paths[8];
    lam_runs runs;
    for (int i = 0; i < n; i++)
        paths[i] = (char *)test_temp_path(names[i]);
    ck_assert_msg(lam_runs_open(&runs, n, paths) == LAM_OK, "%s", lam_error());
    return runs;
}

START_TEST(names_are_short_and_different)
{
    lam_runs runs = opened(4, (const char *const[]){"a/", "b", "kept.metrics.jsonl", "c/a"});
    ck_assert_str_eq(runs.list[0].name, runs.list[0].path);
    ck_assert_str_eq(runs.list[1].name, "b");
    ck_assert_str_eq(runs.list[2].name, "kept");
    ck_assert_str_eq(runs.list[3].name, runs.list[3].path);
    ck_assert(lam_run_ended(&runs.list[0]) && !lam_run_ended(&runs.list[1]) &&
              lam_run_ended(&runs.list[2]) && lam_run_ended(&runs.list[3]));
    lam_runs_free(&runs);
}
END_TEST

START_TEST(what_is_no_run_is_left_out_or_the_reason)
{
    lam_runs runs = opened(3, (const char *const[]){"nowhere", "b", "a/last"});
    ck_assert_int_eq(runs.n, 1);
    ck_assert_int_eq(warnings, 2);
    lam_runs_free(&runs);
    char *one[] = {(char *)test_temp_path("nowhere")};
    ck_assert_int_eq(lam_runs_open(&runs, 1, one), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "nowhere: there is no such run"));
    char *two[] = {one[0], one[0]};
    ck_assert_int_eq(lam_runs_open(&runs, 2, two), LAM_ERR_IO);
    ck_assert_int_eq(runs.n, 0);
}
END_TEST

START_TEST(a_folder_of_runs_stands_for_them)
{
    lam_runs runs = opened(1, (const char *const[]){"."});
    ck_assert_int_eq(runs.n, 5);
    ck_assert_str_eq(runs.list[0].name, "a");
    ck_assert_str_eq(runs.list[3].name, "kept"); /* a log beside the folders */
    ck_assert_str_eq(runs.list[4].name, "words");
    lam_runs_free(&runs);
}
END_TEST

START_TEST(the_unit_is_one_that_all_have)
{
    const struct {
        int n;
        const char *names[3];
        lam_unit unit;
    } cases[] = {{2, {"a", "b"}, LAM_UNIT_BPC},
                 {1, {"words"}, LAM_UNIT_PPL},
                 {2, {"a", "words"}, LAM_UNIT_NATS},
                 {2, {"words", "empty"}, LAM_UNIT_PPL}};
    for (int i = 0; i < 4; i++) {
        lam_runs runs = opened(cases[i].n, cases[i].names);
        ck_assert_int_eq(lam_runs_unit(&runs), cases[i].unit);
        lam_runs_free(&runs);
    }
    ck_assert_double_eq_tol(lam_unit_of(LAM_UNIT_BPC, log(2)), 1, 1e-15);
    ck_assert_double_eq_tol(lam_unit_of(LAM_UNIT_PPL, log(20)), 20, 1e-12);
}
END_TEST

START_TEST(tables_tell_ends_and_differences)
{
    lam_runs runs = opened(3, (const char *const[]){"a", "b", "empty"});
    lam_text text = {0};
    lam_table table;
    ck_assert_int_eq(lam_runs_summary(&table, &runs), LAM_OK);
    lam_table_csv(&text, &table);
    ck_assert_str_eq(
        text.data,
        "run,memory,steps,seconds,train,valid,at step,test,state\n" /* no speed: none was logged */
        "a,lamemo,2,1400,1.4426950408889634,2.1640425613334453,2,1.8033688011112043,done\n"
        "b,xl,1,600,4.3280851226668906,,,,\nempty,,,,,,,,\n");
    lam_text_free(&text);
    lam_runs_table_free(&table);
    ck_assert_int_eq(lam_runs_differences(&table, &runs), LAM_OK);
    lam_table_csv(&text, &table);
    ck_assert_str_eq(text.data,
                     "setting,a,b,empty\nmemory,lamemo,xl,\nn_layer,4,4,\ncutoffs,[],[7],\n"
                     "lr,0.1,,\nseed,1,,\ndevice,cpu,,\ncorpus,data/x,,\n");
    lam_text_free(&text);
    lam_runs_table_free(&table);
    lam_runs_free(&runs);
}
END_TEST

START_TEST(bits_per_byte_stand_where_they_are_not_the_loss)
{
    put("bits/a/metrics.jsonl", "{\"step\":10,\"valid_loss\":3,\"valid_bits_per_byte\":1.5}\n"
                                "{\"step\":20,\"valid_loss\":2,\"valid_bits_per_byte\":1.25}\n"
                                "{\"step\":30,\"valid_loss\":2.5,\"valid_bits_per_byte\":1.375}\n");
    put("bits/b/metrics.jsonl", "{\"step\":10,\"valid_loss\":3,\"valid_bits_per_byte\":1.5}\n"
                                "{\"step\":10,\"test_loss\":1,\"test_bits_per_byte\":0.75}\n");
    lam_runs runs = opened(2, (const char *const[]){"bits/a", "bits/b"});
    lam_text text = {0};
    lam_table table;
    ck_assert_int_eq(lam_runs_summary(&table, &runs), LAM_OK);
    lam_table_csv(&text, &table);
    ck_assert_msg(strstr(text.data, "bits/byte") && strstr(text.data, ",1.25,") &&
                      strstr(text.data, ",0.75,"),
                  "%s", text.data);
    lam_text_free(&text);
    lam_runs_table_free(&table);
    lam_runs_free(&runs);
}
END_TEST

START_TEST(a_loss_on_the_way_lies_between_two_evaluations)
{
    put("way/a/metrics.jsonl", "{\"step\":10,\"valid_loss\":3,\"elapsed\":100}\n"
                               "{\"step\":20,\"loss\":9,\"elapsed\":150}\n"
                               "{\"step\":30,\"valid_loss\":2,\"elapsed\":200}\n"
                               "{\"step\":50,\"valid_loss\":2.5}\n");
    put("way/b/metrics.jsonl", "{\"step\":20,\"valid_loss\":7,\"elapsed\":120}\n");
    lam_runs runs = opened(3, (const char *const[]){"way/a", "way/b", "empty"});
    lam_text text = {0};
    lam_table table;
    ck_assert_int_eq(lam_runs_at(&table, &runs, LAM_OVER_STEPS, (int[]){9, 10, 20, 40, 51}, 5),
                     LAM_OK);
    lam_table_csv(&text, &table);
    ck_assert_str_eq(text.data, "step,a,b,empty\n9,,,\n10,3,,\n20,2.5,7,\n40,2.25,,\n51,,,\n");
    lam_text_free(&text);
    lam_runs_table_free(&table);
    ck_assert_int_eq(lam_runs_at(&table, &runs, LAM_OVER_TIME, (int[]){120, 200, 210}, 3), LAM_OK);
    lam_table_csv(&text, &table);
    ck_assert_str_eq(text.data, "seconds,a,b,empty\n120,2.8,7,\n200,2,,\n210,,,\n");
    lam_text_free(&text);
    lam_runs_table_free(&table);
    lam_runs_free(&runs);
}
END_TEST

static lam_status list_figure(void *user, const lam_figure *f)
{
    lam_text *const out = user;
    lam_text_format(out, "%s (%s, %s):", f->id, f->x.label, f->y.label);
    for (int k = 0; k < f->n_series; k++)
        lam_text_format(out, " %s %d %.3f", f->series[k].name, f->series[k].n,
                        f->series[k].y[f->series[k].n - 1]);
    lam_text_add(out, "\n");
    return LAM_OK;
}

START_TEST(figures_have_what_was_logged)
{
    lam_text text = {0};
    lam_runs runs = opened(2, (const char *const[]){"a", "b"});
    ck_assert_int_eq(lam_run_figures(&runs, &(lam_run_figures_options){0}, list_figure, &text),
                     LAM_OK);
    ck_assert_str_eq(text.data, "train (step, bits per character): a 2 1.443 b 1 4.328\n"
                                "valid (step, bits per character): a 1 2.164\n"
                                "lr (step, learning rate): a 2 0.200\n"
                                "other-aux (step, aux): a 1 5.000\n");
    lam_text_free(&text);
    lam_runs_free(&runs);
    runs = opened(1, (const char *const[]){"a"});
    const lam_run_figures_options smooth = {.over = LAM_OVER_TIME, .smooth = 0.5};
    ck_assert_int_eq(lam_run_figures(&runs, &smooth, list_figure, &text), LAM_OK);
    /* (0.5 * 2 + 1) / 1.5 nats, as bits */
    ck_assert_ptr_nonnull(
        strstr(text.data, "train (minutes, bits per character): train 2 1.924 valid 1 2.164\n"));
    lam_text_free(&text);
    lam_runs_free(&runs);
}
END_TEST

START_TEST(without_memory_there_is_no_page_and_no_crash)
{
    char *paths[] = {(char *)test_temp_path("a"), (char *)test_temp_path("b")};
    const char *out = test_temp_path("page.html");
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_runs runs;
        lam_status status = lam_runs_open(&runs, 2, paths);
        const bool whole = status == LAM_OK && runs.n == 2 && runs.list[0].history.bad == 0;
        if (status == LAM_OK)
            status = lam_run_page_save(&runs, &(lam_run_page){.out = out});
        const int failed = test_alloc_stop();
        ck_assert(failed || (status == LAM_OK && whole));
        failures += status == LAM_ERR_MEMORY;
        lam_runs_free(&runs);
    }
    ck_assert_int_ge(failures, 10);
    ck_assert(lam_path_exists(out));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, make_runs, test_temp_remove);
    tcase_add_test(tests, names_are_short_and_different);
    tcase_add_test(tests, what_is_no_run_is_left_out_or_the_reason);
    tcase_add_test(tests, a_folder_of_runs_stands_for_them);
    tcase_add_test(tests, the_unit_is_one_that_all_have);
    tcase_add_test(tests, tables_tell_ends_and_differences);
    tcase_add_test(tests, bits_per_byte_stand_where_they_are_not_the_loss);
    tcase_add_test(tests, a_loss_on_the_way_lies_between_two_evaluations);
    tcase_add_test(tests, figures_have_what_was_logged);
    tcase_add_test(tests, without_memory_there_is_no_page_and_no_crash);
    return test_run("report/runview", tests);
}
