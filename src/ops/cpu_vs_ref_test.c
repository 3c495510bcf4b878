/* cpu_vs_ref_test.c -- ops/cpu computes what ops/ref specifies, to twice the error of a plain loop.
 *
 * The cases, and what they compare, are in tests/support/opcases.h.  Each family is a test of its
 * own; the seed is in the report. */
#include "support/opcases.h"
#include "support/suite.h"

extern const lam_ops lam_ops_cpu;

/* Three threads, so that chunks are shared out unevenly; the cases repeat everything with one. */
START_TEST(cpu_agrees_with_ref)
{
    const lam_dev_options three = {.threads = 3};
    ck_assert_int_eq(lam_opcases_run_on(&lam_ops_cpu, &three, lam_opcases_family(_i), stdout), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    int families = 0;
    while (lam_opcases_family(families))
        families++;
    tcase_add_loop_test(tests, cpu_agrees_with_ref, 0, families);
    return test_run("ops/cpu against ops/ref", tests);
}
