/* cpus_test.c -- counting CPUs, also where the kernel has room for more than a cpu_set_t has.
 *
 * sched_getaffinity() is this program's own: that of a kernel with `possible` CPUs, of which every `step`th
 * may be used. */
#include "core/cpus.h"
#include "support/suite.h"

#include <errno.h>
#include <sched.h>

static int possible = 2, step = 1, error;

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    if (error != 0 || size * 8 < (size_t)possible) { /* as Linux answers a set that is too small */
        errno = error != 0 ? error : EINVAL;
        return -1;
    }
    for (int i = 0; i < possible; i += step)
        CPU_SET_S((size_t)i, size, set);
    return 0;
}

START_TEST(all_usable_cpus_are_counted)
{
    const int kernels[] = {1, 2, 1000, 1024, 1025, 4096, 8192, 100000};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (step = 1; step <= 3; step++) {
            possible = kernels[i];
            ck_assert_int_eq(lam_cpus(), (possible + step - 1) / step);
        }
}
END_TEST

START_TEST(without_an_answer_there_is_one)
{
    error = EPERM;
    ck_assert_int_eq(lam_cpus(), 1);
    error = EINVAL; /* however large the set is */
    ck_assert_int_eq(lam_cpus(), 1);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, all_usable_cpus_are_counted);
    tcase_add_test(tests, without_an_answer_there_is_one);
    return test_run("core/cpus", tests);
}
