/* settings_test.c -- what a preset is trained with, when a run is over, and which seeds there are. */
#include "train/settings.h"

#include "nn/config.h"
#include "support/suite.h"

START_TEST(every_preset_has_a_batch_and_a_length)
{
    for (int i = 0; lam_preset_name(i); i++) {
        lam_settings s;
        lam_settings_defaults(&s);
        lam_settings_preset(&s, lam_preset_name(i));
        ck_assert_msg(s.batch_size > 0 && s.max_step > 0, "%s", lam_preset_name(i));
    }
}
END_TEST

START_TEST(a_run_is_complete_by_its_steps_or_by_the_clock_of_its_schedule)
{
    lam_settings s;
    lam_settings_defaults(&s);
    s.max_step = 10;
    ck_assert(!lam_settings_complete(&s, 9, 1e9)); /* no clock holds */
    ck_assert(lam_settings_complete(&s, 10, 0.0));
    ck_assert(lam_settings_complete(&s, 11, 0.0)); /* --max-step was lowered */
    s.max_time = 5.0;                              /* of a call: there may be another */
    ck_assert(!lam_settings_complete(&s, 9, 1e9));
    s.scheduler_time = 60.0;
    ck_assert(!lam_settings_complete(&s, 9, 59.9));
    ck_assert(lam_settings_complete(&s, 9, 60.0));
    ck_assert(lam_settings_complete(&s, 10, 0.0)); /* whichever comes first */
}
END_TEST

START_TEST(a_seed_is_any_integer_and_counts_to_its_last_digit)
{
    static const int64_t seeds[] = {INT64_MIN, -1, 0, (1LL << 60) + 1, INT64_MAX};
    lam_settings a, b;
    lam_settings_defaults(&a);
    lam_settings_preset(&a, "tiny");
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        a.seed = seeds[i];
        json_t *json = lam_settings_print(&a);
        b = a;
        b.seed = 5;
        must(lam_settings_parse(&b, json, "test"));
        ck_assert(b.seed == seeds[i]);
        json_decref(json);
        must(lam_settings_same_state(&a, &b));
        b.seed ^= 1;
        ck_assert(lam_settings_same_state(&a, &b) == LAM_ERR_ARG);
    }
    ck_assert_str_eq(lam_error(),
                     "seed 9223372036854775807: the run was begun with 9223372036854775806");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_preset_has_a_batch_and_a_length);
    tcase_add_test(tests, a_run_is_complete_by_its_steps_or_by_the_clock_of_its_schedule);
    tcase_add_test(tests, a_seed_is_any_integer_and_counts_to_its_last_digit);
    return test_run("train/settings", tests);
}
