/* cpu_vs_ref_test.c -- ops/cpu computes what ops/ref specifies, to twice the error of a plain loop, on every level of
 * instructions that this machine has.
 *
 * The cases, and what they compare, are in tests/support/opcases.h.  Each family on each level is a test of its
 * own; the seed is in the report. */
#include "ops/cpu_levels.h"
#include "support/opcases.h"
#include "support/suite.h"

static int families(void)
{
    int n = 0;
    while (lam_opcases_family(n))
        n++;
    return n;
}

/* Three threads, so that chunks are shared out unevenly; the cases repeat everything with one. */
START_TEST(cpu_agrees_with_ref)
{
    const lam_dev_options three = {.threads = 3};
    int n;
    const lam_cpu_level *const level = &lam_cpu_levels(&n)[_i / families()];
    if (!lam_cpu_level_runs(level->name)) {
        printf("skipped: this machine lacks %s\n", level->name);
        return;
    }
    ck_assert_int_eq(
        lam_opcases_run_on(level->ops, &three, lam_opcases_family(_i % families()), stdout), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    int n;
    lam_cpu_levels(&n);
    tcase_add_loop_test(tests, cpu_agrees_with_ref, 0, n * families());
    return test_run("ops/cpu against ops/ref", tests);
}
