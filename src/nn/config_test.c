/* config_test.c -- the few numbers that follow from a configuration. */
#include "nn/config.h"

#include "support/suite.h"

#include <limits.h>
#include <string.h>

START_TEST(clusters_cover_the_vocabulary)
{
    const lam_config cfg = {
        .n_token = 100, .d_embed = 64, .div_val = 4, .n_cutoffs = 2, .cutoffs = {10, 30}};
    static const lam_cluster want[] = {
        {.first = 0, .count = 10, .width = 64},
        {.first = 10, .count = 20, .width = 16},
        {.first = 30, .count = 70, .width = 4},
    };
    for (int i = 0; i <= cfg.n_cutoffs; i++) {
        const lam_cluster got = lam_config_cluster(&cfg, i);
        ck_assert_int_eq(got.first, want[i].first);
        ck_assert_int_eq(got.count, want[i].count);
        ck_assert_int_eq(got.width, want[i].width);
    }
    const lam_config plain = {.n_token = 100, .d_embed = 64, .div_val = 1};
    ck_assert_int_eq(lam_config_cluster(&plain, 0).count, 100);
}
END_TEST

START_TEST(a_row_sees_memory_repeated_rows_and_its_segment)
{
    const lam_config cfg = {.tgt_len = 5, .ext_len = 30, .mem_len = 200};
    ck_assert_int_eq(lam_config_span(&cfg), 235);
}
END_TEST

START_TEST(lengths_fit_what_fills_them)
{
    ck_assert_int_eq(lam_length_fit(16, 3), 16); /* short ones stay */
    ck_assert_int_eq(lam_length_fit(LAM_MAX_LEN, 3), LAM_FIT_LEAST);
    ck_assert_int_eq(lam_length_fit(LAM_MAX_LEN, 5000), 5000);
    ck_assert_int_eq(lam_length_fit(4000, 5000), 4000);
    ck_assert_int_eq(lam_length_fit(LAM_MAX_LEN, INT64_MAX), LAM_MAX_LEN);
}
END_TEST

START_TEST(the_types_that_look_ahead)
{
    for (int type = 0; type < 40; type++)
        ck_assert_int_eq(lam_attn_looks_ahead(type), type == 3 || (type >= 31 && type <= 33));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, clusters_cover_the_vocabulary);
    tcase_add_test(tests, a_row_sees_memory_repeated_rows_and_its_segment);
    tcase_add_test(tests, lengths_fit_what_fills_them);
    tcase_add_test(tests, the_types_that_look_ahead);
    return test_run("nn/config", tests);
}
