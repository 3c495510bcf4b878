/* comparison_test.c -- a comparison is what it was after writing and reading it, and its table is right. */
#include "report/comparison.h"

#include "core/file.h"
#include "model/configure.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void refused(lam_status status, const char *text)
{
    ck_assert_int_eq(status, LAM_ERR_ARG);
    ck_assert_msg(strstr(lam_error(), text) != NULL, "%s", lam_error());
}

/* Two models, three seeds; losses in nats that are whole bits. */
static lam_comparison *example(void)
{
    lam_comparison *c;
    must(lam_comparison_create(&c));
    strcpy(c->corpus.path, "/data/toy");
    strcpy(c->corpus_name, "toy");
    c->corpus.tokens = 1000;
    c->corpus.crc = 4000000000u;
    ck_assert_int_eq(json_object_set_new(c->options, "lr", json_string("0.1")), 0);
    ck_assert_int_eq(json_object_set_new(c->options, "roll", json_true()), 0);
    for (int seed = 1; seed <= 3; seed++)
        must(lam_comparison_add_seed(c, seed));
    must(lam_comparison_add_model(c, "xl", "xl"));
    must(lam_comparison_add_model(c, "long", "lamemo:mem-len=256"));
    for (int m = 0; m < 2; m++)
        must(lam_config_preset(&c->models[m].cfg, "wt103-base", m == 0 ? "xl" : "lamemo"));
    c->models[0].parameters = 151106305;
    for (int s = 0; s < 3; s++)
        c->models[0].runs[s] = (lam_compared_run){s < 2 ? LAM_RUN_DONE : LAM_RUN_FAILED,
                                                  {.step = 60,
                                                   .valid = (s + 1) * log(2.0),
                                                   .test = (s + 2) * log(2.0),
                                                   .valid_error = 0.01 * (s + 1) * log(2.0),
                                                   .test_error = 0.02 * log(2.0),
                                                   .test_bits = s + 2,
                                                   .tokens_per_second = 100.0 * (s + 1),
                                                   .seconds = 5.0}};
    c->models[1].runs[0].end = LAM_RUN_DIVERGED;
    c->models[1].runs[1].end = LAM_RUN_DIVERGED;
    c->models[1].runs[2].end = LAM_RUN_FAILED;
    return c;
}

START_TEST(only_runs_that_are_done_are_averaged)
{
    lam_comparison *c = example();
    const lam_spread dev = lam_comparison_spread(c, 0, LAM_OF_DEV);
    ck_assert_int_eq(dev.n, 2);
    ck_assert_double_eq_tol(dev.mean, 1.5, 1e-15);
    ck_assert_double_eq_tol(dev.deviation, sqrt(0.5), 1e-15); /* n - 1 below the sum */
    ck_assert_double_eq(lam_comparison_spread(c, 0, LAM_OF_SPEED).mean, 150.0);
    ck_assert(isnan(lam_comparison_spread(c, 1, LAM_OF_TEST).mean));
    ck_assert_int_eq(lam_comparison_settled(c), 4);
    c->metric = LAM_PPL; /* the mean of perplexities, not of losses */
    ck_assert_double_eq_tol(lam_comparison_spread(c, 0, LAM_OF_DEV).mean, 3.0, 1e-14);
    ck_assert(
        isnan(lam_comparison_spread(c, 0, LAM_OF_DEV).error)); /* of two runs: the deviation */
    c->models[0].runs[1].end = LAM_RUN_FAILED;
    ck_assert_double_eq_tol(lam_comparison_spread(c, 0, LAM_OF_DEV).error, 0.02 * log(2.0), 1e-14);
    c->metric = LAM_BPC;
    ck_assert_double_eq_tol(lam_comparison_spread(c, 0, LAM_OF_DEV).error, 0.01, 1e-14);
    ck_assert_double_eq_tol(lam_comparison_spread(c, 0, LAM_OF_TEST_BITS).error, 0.02, 1e-14);
    lam_comparison_free(c);
}
END_TEST

START_TEST(the_table_says_it_all_in_one_line_a_model)
{
    lam_comparison *c = example();
    lam_text table = {0}, rows = {0};
    must(lam_comparison_models(&table, c, lam_table_markdown));
    must(lam_comparison_trainings(&rows, c, lam_table_csv));
    const char *text = table.data, *csv = rows.data;
    ck_assert_msg(strstr(text, "| xl | 151,106,305 | 150 | 0 | 157.90 | 150 | "
                               "1.5000 +- 0.7071 (2 of 3) | 2.5000 +- 0.7071 (2 of 3) |\n"),
                  "%s", text);
    ck_assert_msg(strstr(text, " |  | diverged | diverged |\n"), "%s", text);
    ck_assert_msg(strstr(csv, "\nxl,xl,2,done,60,151106305,150,0,"), "%s", csv);
    ck_assert_msg(strstr(csv, ",200,5,2,3,3,0.02,0.02\n"), "%s", csv);
    ck_assert_msg(strstr(csv, "\nlong,lamemo,3,failed,0,0,150,0,"), "%s", csv);
    lam_text_free(&table);
    for (int s = 0; s < 2; s++) /* tokens of 4 bytes: then bits per byte are a column */
        c->models[0].runs[s].outcome.test_bits /= 4;
    must(lam_comparison_models(&table, c, lam_table_markdown));
    ck_assert_msg(strstr(table.data, "| test bits/byte |\n"), "%s", table.data);
    ck_assert_msg(strstr(table.data, "| 0.6250 +- 0.1768 (2 of 3) |\n"), "%s", table.data);
    lam_text_free(&table);
    lam_text_free(&rows);
    lam_comparison_free(c);
}
END_TEST

START_TEST(what_is_saved_comes_back)
{
    lam_comparison *c = example(), *back;
    char *before, *after;
    const char *dir = test_temp_path("cmp");
    must(lam_dir_make(dir));
    must(lam_comparison_save(c, dir));
    must(lam_comparison_create(&back));
    must(lam_comparison_load(back, dir));
    for (int m = 0; m < 2; m++) {
        back->models[m].cfg = c->models[m].cfg; /* the caller's to know */
        back->models[m].parameters = c->models[m].parameters;
    }
    must(lam_comparison_json(&before, c));
    must(lam_comparison_json(&after, back));
    ck_assert_str_eq(before, after);
    ck_assert_uint_eq(back->corpus.crc, 4000000000u);
    free(before);
    free(after);
    lam_comparison_free(c);
    lam_comparison_free(back);
}
END_TEST

START_TEST(labels_are_parts_of_paths_and_have_one_meaning)
{
    static const char *const bad[] = {"", "a/b", "..", "-x", "a b", "a\n"};
    lam_comparison *c = example();
    char name[LAM_LABEL_MAX + 16];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(lam_comparison_add_model(c, bad[i], "xl"), "cannot be a label");
    refused(lam_comparison_add_model(c, "long", "xl"), "long is lamemo:mem-len=256 here, not xl");
    must(lam_comparison_add_model(c, "xl", "xl"));
    must(lam_comparison_add_seed(c, 2));
    ck_assert_int_eq(c->n_models, 2);
    ck_assert_int_eq(c->n_seeds, 3);
    lam_comparison_folder(name, c, 1, 2);
    ck_assert_str_eq(name, "long-s3");
    for (int i = 4; i <= LAM_COMPARE_MAX; i++)
        must(lam_comparison_add_seed(c, i));
    refused(lam_comparison_add_seed(c, 99), "more than 64 seeds");
    lam_comparison_free(c);
}
END_TEST

START_TEST(other_files_are_refused)
{
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"format\":2,\"data\":\"d\",\"corpus\":\"c\",\"metric\":\"bpc\",\"tokens\":1,\"crc\":1,"
        "\"options\":{},\"seeds\":[],\"models\":[]}",
        "{\"format\":1,\"data\":\"d\",\"corpus\":\"c\",\"metric\":\"bpc\",\"tokens\":1,\"crc\":1,"
        "\"options\":{},\"seeds\":[1],\"models\":[{\"label\":\"a\",\"definition\":\"xl\",\"runs\":"
        "[{\"seed\":2,\"end\":\"done\"}]}]}",
        "{\"format\":1,\"data\":\"d\",\"corpus\":\"c\",\"metric\":\"bpc\",\"tokens\":1,\"crc\":1,"
        "\"options\":{},\"seeds\":[1],\"models\":[{\"label\":\"..\",\"definition\":\"xl\"}]}",
        "{\"format\":1,\"data\":\"d\",\"corpus\":\"c\",\"metric\":\"bpc\",\"tokens\":1,\"crc\":1,"
        "\"options\":{\"max-step\":300},\"seeds\":[],\"models\":[]}",
        "{\"format\":1,\"data\":\"d\",\"corpus\":\"c\",\"metric\":\"bpc\",\"tokens\":1,\"crc\":1,"
        "\"options\":{},\"seeds\":[4294967297],\"models\":[]}",
        "{\"format\":1,\"data\":\"d\",\"corpus\":\"c\",\"metric\":\"bpc\",\"tokens\":1,\"crc\":1,"
        "\"options\":{},\"seeds\":[1.5],\"models\":[]}"};
    must(lam_dir_make(test_temp_path("bad")));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        lam_comparison *c;
        must(lam_file_save(test_temp_path("bad/compare.json"), texts[i], strlen(texts[i])));
        must(lam_comparison_create(&c));
        ck_assert_int_eq(lam_comparison_load(c, test_temp_path("bad")), LAM_ERR_FORMAT);
        ck_assert_msg(strstr(lam_error(), "compare.json") != NULL, "%s", lam_error());
        lam_comparison_free(c);
    }
}
END_TEST

/* Not of loading: jansson's reader itself goes wrong then (io/json.h). */
START_TEST(every_failed_allocation_is_reported)
{
    lam_comparison *c = example();
    const char *dir = test_temp_path("alloc");
    must(lam_dir_make(dir));
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_comparison *back = NULL;
        lam_status status = lam_comparison_create(&back);
        if (status == LAM_OK)
            status = lam_comparison_save(c, dir);
        const int failed = test_alloc_stop();
        ck_assert_msg(failed ? status != LAM_OK : status == LAM_OK, "%ld: %s", n, lam_error());
        lam_comparison_free(back);
    }
    lam_comparison_free(c);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, only_runs_that_are_done_are_averaged);
    tcase_add_test(tests, the_table_says_it_all_in_one_line_a_model);
    tcase_add_test(tests, what_is_saved_comes_back);
    tcase_add_test(tests, labels_are_parts_of_paths_and_have_one_meaning);
    tcase_add_test(tests, other_files_are_refused);
    tcase_add_test(tests, every_failed_allocation_is_reported);
    return test_run("report/comparison", tests);
}
