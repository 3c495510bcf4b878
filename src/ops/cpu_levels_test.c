/* cpu_levels_test.c -- which code of ops/cpu runs: the highest level, or the one that LAMEMO_ISA names. */
#include "ops/cpu_levels.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

START_TEST(the_highest_level_runs_unless_another_is_named)
{
    int n;
    const lam_cpu_level *const levels = lam_cpu_levels(&n);
    const lam_ops *chosen, *highest = NULL;
    unsetenv("LAMEMO_ISA");
    for (int i = 0; i < n; i++)
        if (lam_cpu_level_runs(levels[i].name))
            highest = levels[i].ops;
    ck_assert_int_eq(lam_cpu_choose(&chosen), LAM_OK);
    ck_assert_ptr_eq(chosen, highest);
    setenv("LAMEMO_ISA", "", 1); /* as if it were not set */
    ck_assert_int_eq(lam_ops_find(&chosen, "cpu"), LAM_OK);
    ck_assert_ptr_eq(chosen, highest);
    for (int i = 0; i < n; i++) {
        setenv("LAMEMO_ISA", levels[i].name, 1);
        const lam_status status = lam_ops_find(&chosen, "cpu");
        if (lam_cpu_level_runs(levels[i].name)) {
            ck_assert_int_eq(status, LAM_OK);
            ck_assert_ptr_eq(chosen, levels[i].ops);
            ck_assert_str_eq(chosen->name, "cpu");
            ck_assert_ptr_nonnull(strstr(chosen->summary, levels[i].name));
        } else {
            ck_assert_int_eq(status, LAM_ERR_ARG);
            ck_assert_ptr_nonnull(strstr(lam_error(), "this machine lacks"));
        }
    }
}
END_TEST

START_TEST(a_level_that_is_not_there_is_refused_by_name)
{
    const lam_ops *chosen;
    setenv("LAMEMO_ISA", "x86-64-v9", 1);
    ck_assert_int_eq(lam_ops_find(&chosen, "cpu"), LAM_ERR_ARG);
    ck_assert_ptr_null(chosen);
    ck_assert_ptr_nonnull(strstr(lam_error(), "LAMEMO_ISA=x86-64-v9: this build has "));
    ck_assert_int_eq(lam_ops_find(&chosen, "ref"), LAM_OK); /* is not asked */
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, the_highest_level_runs_unless_another_is_named);
    tcase_add_test(tests, a_level_that_is_not_there_is_refused_by_name);
    return test_run("ops/cpu_levels", tests);
}
