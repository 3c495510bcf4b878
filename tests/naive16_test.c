/* naive16_test.c -- the naive loops in bf16, the best that a GPU can do, pass all operation cases. */
#include "support/naive16.h"
#include "support/opcases.h"
#include "support/suite.h"

START_TEST(the_naive_loops_agree_with_ref_in_bf16)
{
    ck_assert_int_eq(lam_opcases_run(&lam_ops_naive16, NULL, stdout), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, the_naive_loops_agree_with_ref_in_bf16);
    return test_run("naive16", tests);
}
