/* settings_test.c -- what a preset is trained with, and when a run is over. */
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

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_preset_has_a_batch_and_a_length);
    tcase_add_test(tests, a_run_is_complete_by_its_steps_or_by_the_clock_of_its_schedule);
    return test_run("train/settings", tests);
}
