/* naive_test.c -- the naive loops, by which errors are measured, pass all operation cases themselves. */
#include "support/naive.h"
#include "support/opcases.h"
#include "support/suite.h"

START_TEST(the_naive_loops_agree_with_ref)
{
    ck_assert_int_eq(lam_opcases_run(&lam_ops_naive, NULL, stdout), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, the_naive_loops_agree_with_ref);
    return test_run("naive", tests);
}
