/* history_test.c -- every number that was logged is found again, whatever stands around it. */
#include "measure/history.h"

#include "core/file.h"
#include "draw/text.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static const char records[] = "{\"step\":10,\"loss\":2.5,\"elapsed\":1}\n"
                              "{\"step\":20,\"loss\":null,\"note\":\"x\",\"elapsed\":2}\n"
                              "\n"
                              "{\"step\":20,\"valid_loss\":2.25,\"elapsed\":3}\n"
                              "{\"step\":30,\"loss\":2.25,\"elapsed\":4}\n";

static lam_history parsed(const char *text)
{
    lam_history h = {0};
    ck_assert_msg(lam_history_parse(&h, "run", text, strlen(text)) == LAM_OK, "%s", lam_error());
    return h;
}

START_TEST(every_named_number_is_a_point)
{
    lam_history h = parsed(records);
    const lam_curve *loss = lam_history_find(&h, "loss"),
                    *valid = lam_history_find(&h, "valid_loss");
    ck_assert_int_eq(h.records, 4);
    ck_assert_int_eq(h.bad, 0);
    ck_assert_int_eq(loss->n, 3);
    ck_assert(isnan(loss->value[1]) && loss->elapsed[2] == 4 && loss->step[1] == 20);
    ck_assert_double_eq(lam_curve_last(loss), 2.25);
    ck_assert_int_eq(lam_curve_least(loss), 2);
    ck_assert_double_eq(lam_curve_median(loss), 2.375);
    ck_assert_int_eq(valid->n, 1);
    ck_assert_ptr_null(lam_history_find(&h, "note"));
    ck_assert(isnan(lam_curve_last(NULL)) && lam_curve_least(NULL) < 0 &&
              isnan(lam_curve_median(NULL)));
    lam_history_free(&h);
}
END_TEST

START_TEST(half_a_line_is_left_out_and_bad_ones_are_counted)
{
    lam_history h =
        parsed("{\"step\":1,\"loss\":1}\n[2]\nnonsense\n{\"loss\":3}\n{\"step\":2,\"loss\":2}\n"
               "{\"step\":3,\"lo");
    ck_assert_int_eq(h.records, 2);
    ck_assert_int_eq(h.bad, 3);
    ck_assert_str_eq(h.why, "run, line 2: not a JSON object with a step");
    ck_assert_double_eq(lam_curve_last(lam_history_find(&h, "loss")), 2);
    lam_history_free(&h);
    h = parsed("");
    ck_assert_int_eq(h.records + h.bad + h.n, 0);
}
END_TEST

START_TEST(a_step_that_no_counter_reaches_is_no_record)
{
    lam_history h = parsed("{\"step\":1e300,\"loss\":1}\n{\"step\":-1e300,\"loss\":1}\n"
                           "{\"step\":9007199254740993,\"loss\":1}\n{\"step\":3,\"loss\":1e308}\n");
    ck_assert_int_eq(h.bad, 2); /* 2^53 + 1 is 2^53 as a double */
    ck_assert_str_eq(h.why, "run, line 1: a step beyond 2^53");
    ck_assert_int_eq(lam_history_find(&h, "loss")->n, 1);
    lam_history_free(&h);
}
END_TEST

START_TEST(a_step_that_comes_again_replaces_what_followed)
{
    lam_history h =
        parsed("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":3}\n"
               "{\"step\":2,\"loss\":7}\n");
    const lam_curve *loss = lam_history_find(&h, "loss");
    ck_assert_int_eq(loss->n, 2);
    ck_assert(loss->step[1] == 2 && loss->value[1] == 7);
    lam_history_free(&h);
}
END_TEST

START_TEST(more_names_than_fit_are_no_overflow)
{
    lam_history h = {0};
    for (int i = 0; i < 2 * LAM_CURVES_MAX; i++) {
        char line[128];
        snprintf(line, sizeof line, "{\"step\":%d,\"curve%d\":1,\"%0*d\":2}\n", i, i, 60, i);
        ck_assert_int_eq(lam_history_parse(&h, "x", line, strlen(line)), LAM_OK);
    }
    ck_assert_int_eq(h.n, LAM_CURVES_MAX);
    lam_history_free(&h);
}
END_TEST

static void add_text(FILE *f, const char *text, long times)
{
    for (long i = 0; i < times; i++)
        ck_assert_int_ge(fputs(text, f), 0);
}

START_TEST(long_lines_are_left_out_and_what_is_around_them_is_not)
{
    const char *path = test_temp_path("long.jsonl");
    FILE *f = fopen(path, "wb");
    lam_history h;
    fputs("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":1,\"x\":\"", f);
    add_text(f, "abcdefghijklmnop", 80000); /* 1.28 MB */
    fputs("\"}\n{\"step\":3,\"loss\":3}\n\n{\"step\":4,\"x\":[", f);
    add_text(f, "[[[[[[[[[[[[[[[[[[[[", 300000); /* 6 MB */
    fputs("\n{\"step\":5,\"loss\":5,\"x\":\"", f);
    add_text(f, "abcdefghijklmnop", 60000); /* 0.96 MB: long, but a line */
    fputs("\"}\n{\"step\":6,\"loss\":6}\n", f);
    add_text(f, "unfinished ", 300000);
    ck_assert_int_eq(fclose(f), 0);
    must(lam_history_read(&h, path));
    ck_assert_int_eq(h.records, 4);
    ck_assert_int_eq(h.bad, 3); /* the last cannot become a record any more */
    ck_assert_msg(strstr(h.why, "long.jsonl, line 2: longer than 1048576 bytes"), "%s", h.why);
    ck_assert_double_eq(lam_curve_last(lam_history_find(&h, "loss")), 6);
    lam_history_free(&h);
}
END_TEST

/* Whole or in pieces, by a pipe's leave: the same history. */
START_TEST(a_file_is_read_as_its_text_is)
{
    const char *path = test_temp_path("pieces.jsonl");
    lam_text text = {0};
    lam_history a = {0}, b;
    for (int i = 1; i <= 40000; i++) /* 3.5 MB: lines lie across the pieces */
        lam_text_format(&text,
                        i % 1000 ? "{\"step\":%d,\"loss\":%d.5,\"elapsed\":%d,\"pad\":\"%*s\"}\n"
                                 : "%d%d%d%*s\n",
                        i, i % 17, i, 40, "");
    must(lam_history_parse(&a, path, text.data, text.size));
    must(lam_file_save(path, text.data, text.size));
    must(lam_history_read(&b, path));
    ck_assert_int_eq(a.records, 39960);
    ck_assert(a.records == b.records && a.bad == b.bad && a.lines == b.lines && a.n == b.n);
    ck_assert_str_eq(a.why, b.why);
    for (int i = 0; i < a.n; i++) {
        ck_assert_int_eq(a.curves[i].n, b.curves[i].n);
        ck_assert_mem_eq(a.curves[i].value, b.curves[i].value,
                         (size_t)a.curves[i].n * sizeof(double));
    }
    lam_history_free(&a);
    lam_history_free(&b);
    lam_text_free(&text);
}
END_TEST

START_TEST(more_numbers_than_a_report_reads_are_refused)
{
    lam_history h = {0};
    lam_status status = LAM_OK;
    for (int i = 1; status == LAM_OK && i < 1 << 20; i++) {
        lam_text line = {0};
        lam_text_format(&line, "{\"step\":%d", i);
        for (int k = 0; k < 60; k++)
            lam_text_format(&line, ",\"c%d\":1", k);
        lam_text_add(&line, "}\n");
        status = lam_history_parse(&h, "run", line.data, line.size);
        lam_text_free(&line);
    }
    ck_assert_int_eq(status, LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "run, line 65537: more numbers than a report reads"), "%s",
                  lam_error());
    lam_history_free(&h);
}
END_TEST

START_TEST(packed_files_are_read_and_missing_ones_named)
{
    const char *path = test_temp_path("metrics.jsonl.gz");
    gzFile file = gzopen(path, "wb");
    gzwrite(file, records, sizeof records - 1);
    gzclose(file);
    lam_history h;
    ck_assert_msg(lam_history_read(&h, path) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(h.records, 4);
    lam_history_free(&h);
    ck_assert_int_eq(lam_file_save(path, "", 0), LAM_OK);
    ck_assert_msg(lam_history_read(&h, path) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(h.records, 0);
    ck_assert_int_eq(lam_history_read(&h, test_temp_path("nothing")), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "nothing"));
}
END_TEST

/* jansson calls some failed allocations a syntax error (io/json.h): then a line is bad, never a crash. */
START_TEST(without_memory_nothing_breaks)
{
    static const char notes[] = "{\"step\":40,\"prompt\":\"a\",\"sample\":\"b\"}\n"
                                "{\"step\":40,\"changed\":{\"lr\":[1,2]}}\n";
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_history h = {0};
        lam_status status = lam_history_parse(&h, "run", records, sizeof records - 1);
        if (status == LAM_OK)
            status = lam_history_parse(&h, "run", notes, sizeof notes - 1);
        const int failed = test_alloc_stop();
        ck_assert(failed ? status == LAM_ERR_MEMORY || h.bad > 0 : status == LAM_OK && h.bad == 0);
        failures += failed;
        lam_history_free(&h);
    }
    ck_assert_int_ge(failures, 5);
}
END_TEST

START_TEST(a_file_of_something_else_is_given_up)
{
    static const size_t size = 1 << 18;
    char *const text = malloc(size);
    for (size_t i = 0; i < size; i++)
        text[i] = i % 2 ? '\n' : 'y';
    lam_history h = {0};
    ck_assert_int_eq(lam_history_parse(&h, "yes", text, size), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "yes: more than 100000 lines are no records");
    lam_history_free(&h);
    free(text);
}
END_TEST

START_TEST(a_pipe_in_a_run_folder_is_not_waited_for)
{
    lam_history h;
    must(lam_dir_make(test_temp_path("run")));
    ck_assert_int_eq(mkfifo(test_temp_path("run/metrics.jsonl"), 0600), 0);
    ck_assert_int_eq(lam_history_of_run(&h, test_temp_path("run")), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "run/metrics.jsonl: not a regular file"));
}
END_TEST

static const char whole_run[] =
    "{\"step\":10,\"loss\":2.5,\"tokens_per_second\":10,\"elapsed\":1}\n"
    "{\"step\":20,\"loss\":2.4,\"tokens_per_second\":1000,\"elapsed\":2}\n"
    "{\"step\":20,\"valid_loss\":2.0,\"valid_stderr\":0.125,\"elapsed\":3}\n"
    "{\"step\":30,\"loss\":2.3,\"tokens_per_second\":30,\"elapsed\":4}\n"
    "{\"step\":40,\"loss\":null,\"tokens_per_second\":20,\"elapsed\":5}\n"
    "{\"step\":40,\"valid_loss\":2.25,\"valid_stderr\":0.25,\"elapsed\":6}\n"
    "{\"step\":20,\"test_loss\":2.125,\"test_stderr\":0.5,\"elapsed\":7}\n";

static const char *folder_with(const char *text)
{
    const char *dir = test_temp_path("run");
    ck_assert_int_eq(lam_dir_make(dir), LAM_OK);
    ck_assert_int_eq(lam_file_save(test_temp_path("run/metrics.jsonl"), text, strlen(text)),
                     LAM_OK);
    return dir;
}

START_TEST(the_best_model_the_typical_speed_and_the_newest_step_count)
{
    lam_outcome o;
    ck_assert_int_eq(lam_outcome_read(&o, folder_with(whole_run)), LAM_OK);
    ck_assert_int_eq(o.step, 40);
    ck_assert_int_eq(o.diverged, 0);
    ck_assert_double_eq(o.valid, 2.0);
    ck_assert_double_eq(o.test, 2.125);
    ck_assert_double_eq(o.valid_error, 0.125);
    ck_assert_double_eq(o.test_error, 0.5);
    ck_assert_double_eq(o.tokens_per_second, 25); /* the median of 10, 20, 30, 1000 */
    ck_assert_double_eq(o.seconds, 7);
}
END_TEST

START_TEST(divergence_is_seen_and_half_a_line_is_not)
{
    lam_outcome o;
    ck_assert_int_eq(lam_outcome_read(&o, folder_with("{\"step\":3,\"diverged\":1}\n{\"step\":4,")),
                     LAM_OK);
    ck_assert_int_eq(o.step, 3);
    ck_assert_int_eq(o.diverged, 1);
    ck_assert(isnan(o.valid) && isnan(o.test) && isnan(o.tokens_per_second));
}
END_TEST

START_TEST(no_records_are_no_error_but_other_things_are)
{
    lam_outcome o;
    ck_assert_int_eq(lam_outcome_read(&o, test_temp_path("nowhere")), LAM_OK);
    ck_assert(o.step == 0 && isnan(o.valid));
    ck_assert_int_eq(lam_outcome_read(&o, folder_with("{\"step\":3}\n[3]\n")), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "line 2: not a JSON object") != NULL, "%s", lam_error());
    ck_assert_int_eq(lam_outcome_read(&o, folder_with("step 3\n")), LAM_ERR_FORMAT);
}
END_TEST

START_TEST(samples_and_changed_settings_are_kept)
{
    lam_history h =
        parsed("{\"step\":10,\"loss\":2.5}\n"
               "{\"step\":10,\"prompt\":\"The\",\"sample\":\" king\"}\n"
               "{\"step\":20,\"sample\":\" lost\"}\n"
               "{\"step\":15,\"changed\":{\"lr\":[0.001,0.0005],\"scheduler\":[\"cosine\","
               "\"linear\"],\"odd\":7}}\n"
               "{\"step\":20,\"prompt\":\"The\",\"sample\":\" queen\"}\n"
               "{\"step\":30,\"sample\":12,\"changed\":\"no\"}\n");
    ck_assert_int_eq(h.bad, 0);
    ck_assert_int_eq(h.records, 6);
    ck_assert_int_eq(h.n_samples, 2); /* step 20 came again */
    ck_assert_str_eq(h.samples[0].prompt, "The");
    ck_assert_str_eq(h.samples[1].text, " queen");
    ck_assert_int_eq(h.n_changes, 2);
    ck_assert_str_eq(h.changes[0].name, "lr");
    ck_assert_str_eq(h.changes[0].before, "0.001");
    ck_assert_str_eq(h.changes[0].after, "0.0005");
    ck_assert_str_eq(h.changes[1].after, "linear");
    ck_assert_double_eq(h.changes[1].step, 15);
    lam_history_free(&h);
    for (int i = 0; i < LAM_NOTES_MAX + 5; i++) {
        char line[64];
        snprintf(line, sizeof line, "{\"step\":%d,\"sample\":\"%d\"}\n", i, i);
        must(lam_history_parse(&h, "run", line, strlen(line)));
    }
    ck_assert_int_eq(h.n_samples, LAM_NOTES_MAX); /* the newest */
    ck_assert_str_eq(h.samples[0].text, "5");
    lam_history_free(&h);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, every_named_number_is_a_point);
    tcase_add_test(tests, half_a_line_is_left_out_and_bad_ones_are_counted);
    tcase_add_test(tests, a_step_that_no_counter_reaches_is_no_record);
    tcase_add_test(tests, a_step_that_comes_again_replaces_what_followed);
    tcase_add_test(tests, more_names_than_fit_are_no_overflow);
    tcase_add_test(tests, long_lines_are_left_out_and_what_is_around_them_is_not);
    tcase_add_test(tests, a_file_is_read_as_its_text_is);
    tcase_add_test(tests, more_numbers_than_a_report_reads_are_refused);
    tcase_add_test(tests, packed_files_are_read_and_missing_ones_named);
    tcase_add_test(tests, a_file_of_something_else_is_given_up);
    tcase_add_test(tests, a_pipe_in_a_run_folder_is_not_waited_for);
    tcase_add_test(tests, samples_and_changed_settings_are_kept);
    tcase_add_test(tests, without_memory_nothing_breaks);
    tcase_add_test(tests, the_best_model_the_typical_speed_and_the_newest_step_count);
    tcase_add_test(tests, divergence_is_seen_and_half_a_line_is_not);
    tcase_add_test(tests, no_records_are_no_error_but_other_things_are);
    return test_run("measure/history", tests);
}
