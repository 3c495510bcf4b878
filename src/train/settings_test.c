/* settings_test.c -- when a run is over. */
#include "train/settings.h"

#include "support/suite.h"

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
    tcase_add_test(tests, a_run_is_complete_by_its_steps_or_by_the_clock_of_its_schedule);
    return test_run("train/settings", tests);
}
