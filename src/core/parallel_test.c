/* parallel_test.c -- every part runs once; the first failure is told. */
#include "core/parallel.h"

#include "support/alloc.h"
#include "support/suite.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_int calls[20];

static lam_status note(void *user, int i)
{
    const int *failing = user;
    atomic_fetch_add(&calls[i], 1);
    return i >= *failing ? lam_fail(LAM_ERR_FORMAT, "part %d", i) : LAM_OK;
}

START_TEST(every_part_runs_once)
{
    int failing = 100;
    for (int i = 0; i < 20; i++)
        atomic_store(&calls[i], 0); /* where tests share a process */
    must(lam_parallel(_i, note, &failing));
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(calls[i], i < _i);
}
END_TEST

START_TEST(the_first_failure_is_told)
{
    for (int failing = 0; failing < 8; failing++) {
        char want[16];
        ck_assert_int_eq(lam_parallel(8, note, &failing), LAM_ERR_FORMAT);
        snprintf(want, sizeof want, "part %d", failing);
        ck_assert_str_eq(lam_error(), want);
    }
    test_alloc_fail(1);
    int failing = 100;
    const lam_status status = lam_parallel(3, note, &failing);
    test_alloc_stop();
    ck_assert_int_eq(status, LAM_ERR_MEMORY);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, every_part_runs_once, 0, 20);
    tcase_add_test(tests, the_first_failure_is_told);
    return test_run("core/parallel", tests);
}
