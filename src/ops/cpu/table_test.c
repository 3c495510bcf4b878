/* table_test.c -- the cpu device: what opening refuses, memory, totals of many steps.  That its operations are
 * those of ref is cpu_vs_ref_test.c's affair. */
#include "ops/cpu/cpu.h"
#include "support/suite.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

extern const lam_ops lam_ops_cpu;

START_TEST(opening_takes_all_cpus_and_refuses_negative_threads)
{
    lam_dev *dev;
    ck_assert_int_eq(lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = -1}), LAM_ERR_ARG);
    ck_assert_ptr_null(dev);
    ck_assert_int_eq(lam_ops_cpu.open(&dev, &(lam_dev_options){0}), LAM_OK);
    ck_assert_int_eq(lam_ops_cpu.sync(dev), LAM_OK);
    lam_ops_cpu.close(dev);
    lam_ops_cpu.close(NULL);
}
END_TEST

/* As on a machine with 5,000 CPUs; OpenMP's settings are none of this test's. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    if (size * 8 < 5000) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 0; i < 5000; i++)
        CPU_SET_S(i, size, set);
    return 0;
}

START_TEST(opening_takes_at_most_1024_of_many_cpus)
{
    lam_dev *dev;
    ck_assert_int_eq(lam_ops_cpu.open(&dev, &(lam_dev_options){0}), LAM_OK);
    ck_assert_int_eq(lam_cpu(dev)->threads, 1024);
    lam_ops_cpu.close(dev);
}
END_TEST

/* Of millions, not one assertion each: Check notes every one in a file. */
static void check_zero(const unsigned char *bytes, size_t n, const char *when)
{
    size_t at = 0;
    while (at < n && bytes[at] == 0)
        at++;
    ck_assert_msg(at == n, "byte %zu of %zu %s is not zero", at, n, when);
}

START_TEST(memory_is_aligned_and_zero_also_when_large)
{
    lam_dev *dev;
    ck_assert_int_eq(lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = 2}), LAM_OK);
    const size_t sizes[] = {0, 1, 64, 4097, (size_t)2 << 20, ((size_t)5 << 20) + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *p;
        ck_assert_int_eq(lam_ops_cpu.alloc(dev, &p, sizes[i]), LAM_OK);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        check_zero(p, sizes[i], "after alloc()");
        memset(p, 0xff, sizes[i]);
        lam_ops_cpu.zero(dev, p, sizes[i]);
        check_zero(p, sizes[i], "after zero()");
        lam_ops_cpu.release(dev, p);
    }
    void *p;
    ck_assert_int_eq(lam_ops_cpu.alloc(dev, &p, SIZE_MAX - 64), LAM_ERR_MEMORY);
    ck_assert_ptr_null(p);
    lam_ops_cpu.close(dev);
}
END_TEST

/* A float alone would stay at 2^24. */
START_TEST(a_total_of_many_steps_loses_nothing)
{
    lam_dev *dev;
    float totals[4] = {0}, large = 0x1p24f, one = 1.0f;
    ck_assert_int_eq(lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = 1}), LAM_OK);
    lam_ops_cpu.tally(dev, &(lam_tally){.n = 1, .x = &large, .totals = totals});
    for (int i = 0; i < 999; i++)
        lam_ops_cpu.tally(dev, &(lam_tally){.n = 1, .x = &one, .totals = totals});
    ck_assert_double_eq((double)totals[0] + (double)totals[1], 0x1p24 + 999);
    lam_ops_cpu.close(dev);
}
END_TEST

START_TEST(the_sum_of_one_row_needs_no_scratch)
{
    enum { WIDE = 100003 };
    static float row[WIDE], sum[WIDE];
    lam_dev *dev;
    ck_assert_int_eq(lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = 2}), LAM_OK);
    for (int i = 0; i < WIDE; i++) {
        row[i] = (float)i;
        sum[i] = 0.5f;
    }
    lam_ops_cpu.colsum(dev, &(lam_colsum){1, WIDE, WIDE, row, sum}); /* nothing was reserved */
    int wrong = 0;
    for (int i = 0; i < WIDE; i++)
        wrong += sum[i] != (float)i + 0.5f;
    ck_assert_int_eq(wrong, 0);
    lam_ops_cpu.close(dev);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, opening_takes_all_cpus_and_refuses_negative_threads);
    tcase_add_test(tests, opening_takes_at_most_1024_of_many_cpus);
    tcase_add_test(tests, memory_is_aligned_and_zero_also_when_large);
    tcase_add_test(tests, a_total_of_many_steps_loses_nothing);
    tcase_add_test(tests, the_sum_of_one_row_needs_no_scratch);
    return test_run("ops/cpu/table", tests);
}
