/* outcome_test.c -- a run's records, summed up. */
#include "report/outcome.h"

#include "core/file.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

static const char records[] =
    "{\"step\":10,\"loss\":2.5,\"tokens_per_second\":10,\"elapsed\":1}\n"
    "{\"step\":20,\"loss\":2.4,\"tokens_per_second\":1000,\"elapsed\":2}\n"
    "{\"step\":20,\"valid_loss\":2.0,\"elapsed\":3}\n"
    "{\"step\":30,\"loss\":2.3,\"tokens_per_second\":30,\"elapsed\":4}\n"
    "{\"step\":40,\"loss\":null,\"tokens_per_second\":20,\"elapsed\":5}\n"
    "{\"step\":40,\"valid_loss\":2.25,\"elapsed\":6}\n"
    "{\"step\":20,\"test_loss\":2.125,\"elapsed\":7}\n";

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
    ck_assert_int_eq(lam_outcome_read(&o, folder_with(records)), LAM_OK);
    ck_assert_int_eq(o.step, 40);
    ck_assert_int_eq(o.diverged, 0);
    ck_assert_double_eq(o.valid, 2.0);
    ck_assert_double_eq(o.test, 2.125);
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

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, the_best_model_the_typical_speed_and_the_newest_step_count);
    tcase_add_test(tests, divergence_is_seen_and_half_a_line_is_not);
    tcase_add_test(tests, no_records_are_no_error_but_other_things_are);
    return test_run("report/outcome", tests);
}
