/* describe_test.c -- models that differ in their memory, and runs in their length, are not told alike. */
#include "cli/describe.h"

#include "mem/fields.h"
#include "model/configure.h"
#include "support/suite.h"

#include <limits.h>
#include <string.h>

static lam_config made(const char *memory)
{
    lam_config cfg;
    must(lam_config_preset(&cfg, "tiny", memory));
    return cfg;
}

static const char *told(const lam_config *cfg)
{
    static char text[LAM_DESCRIPTION_MAX];
    return lam_describe_memory(text, cfg);
}

START_TEST(a_memory_is_its_name_and_what_is_special)
{
    lam_config cfg = made("lamemo");
    ck_assert_str_eq(told(&cfg), "lamemo");
    must(lam_fields_set(&cfg, "alpha", "zero"));
    ck_assert_str_eq(told(&cfg), "lamemo (alpha zero)");
    cfg.attn_type = LAM_ATTN_LAMEMO_XL;
    ck_assert_str_eq(told(&cfg), "lamemo (attn_type 31, alpha zero)");
    must(lam_fields_set(&cfg, "refresh_from", "2"));
    ck_assert_str_eq(told(&cfg), "lamemo (attn_type 31, alpha zero, refresh from layer 2)");
    must(lam_fields_set(&cfg, "alpha", "learned"));
    must(lam_fields_set(&cfg, "window", "current"));
    cfg.attn_type = LAM_ATTN_LAMEMO;
    ck_assert_str_eq(told(&cfg), "lamemo (window current, refresh from layer 2)");
    must(lam_fields_set(&cfg, "window", "previous"));
    must(lam_fields_set(&cfg, "refresh_every", "3"));
    ck_assert_str_eq(told(&cfg), "lamemo (refresh from layer 2, refresh every 3 segments)");
    cfg = made("xl");
    ck_assert_str_eq(told(&cfg), "xl");
    cfg.ext_len = 4;
    ck_assert_str_eq(told(&cfg), "xl (ext_len 4)");
    cfg = made("compressive");
    ck_assert_str_eq(told(&cfg), "compressive (64 rows at a rate of 4, conv)");
    cfg = made("infinite");
    ck_assert_str_eq(told(&cfg), "infinite (64 basis functions, blocks of 64, sticky left)");
}
END_TEST

START_TEST(the_longest_description_fits)
{
    lam_config cfg = made("infinite");
    cfg.ext_len = INT_MAX;
    must(lam_fields_set(&cfg, "ltm_basis", "2147483647"));
    must(lam_fields_set(&cfg, "ltm_block", "2147483647"));
    cfg.attn_type = LAM_ATTN_LEARNED;
    must(lam_fields_set(&cfg, "ltm_sticky", "uniform"));
    const size_t n = strlen(told(&cfg));
    ck_assert_uint_lt(n, LAM_DESCRIPTION_MAX - 1);
    ck_assert_int_eq(told(&cfg)[n - 1], ')');
}
END_TEST

START_TEST(a_run_is_as_long_as_its_steps_or_its_schedule)
{
    char text[LAM_DESCRIPTION_MAX];
    lam_settings s;
    lam_settings_defaults(&s);
    s.max_step = 4000;
    ck_assert_str_eq(lam_describe_length(text, &s), "4000 steps");
    s.scheduler_time = 90.0; /* the steps may end it first */
    ck_assert_str_eq(lam_describe_length(text, &s), "4000 steps");
    s.max_step = (int64_t)LAM_MANY;
    ck_assert_str_eq(lam_describe_length(text, &s), "90 seconds");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, a_memory_is_its_name_and_what_is_special);
    tcase_add_test(tests, the_longest_description_fits);
    tcase_add_test(tests, a_run_is_as_long_as_its_steps_or_its_schedule);
    return test_run("cli/describe", tests);
}
