/* budget_test.c -- what does not fit is refused with both numbers, under a limit or on a small machine. */
#include "core/budget.h"

#include "core/file.h"
#include "core/machine.h"
#include "support/suite.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

START_TEST(what_fits_is_allowed_and_the_rest_refused_with_both_numbers)
{
    must(lam_budget_compare("weights", 3000000000, 3000000000, 0));
    ck_assert_int_eq(lam_budget_compare("weights", 9100000000, 3000000000, 0), LAM_ERR_MEMORY);
    ck_assert_str_eq(lam_error(),
                     "weights: needs 9.1 GB of memory, 3.0 GB available; use smaller sizes");
    ck_assert_int_eq(lam_budget_compare("weights", 9100000000, 3000000000, 1), LAM_ERR_MEMORY);
    ck_assert_msg(strstr(lam_error(), "sizes, or set max_memory higher"), "%s", lam_error());
    /* Two numbers that read alike would explain nothing. */
    ck_assert_int_eq(lam_budget_compare("weights", 23400000001, 23400000000, 0), LAM_ERR_MEMORY);
    ck_assert_msg(strstr(lam_error(), "needs 23400000001 bytes of memory, 23400000000 available"),
                  "%s", lam_error());
}
END_TEST

START_TEST(a_limit_counts_what_the_process_has)
{
    const size_t limit = (size_t)1 << 40, much = (size_t)64 << 20;
    const size_t before = lam_budget_left(limit);
    ck_assert_uint_lt(before, limit);
    char *volatile block = malloc(much); /* or a compiler leaves it out */
    memset(block, 1, much);
    const size_t after = lam_budget_left(limit);
    ck_assert_uint_le(after, before - much + ((size_t)1 << 20));
    ck_assert_int_eq(block[much / 2], 1);
    free(block);
    ck_assert_uint_eq(lam_budget_left(1), 0); /* it has more already */
}
END_TEST

START_TEST(the_common_limit_is_for_those_without_their_own)
{
    must(lam_budget_ask("a block", (size_t)1 << 20));
    lam_budget_set(1);
    ck_assert_uint_eq(lam_budget_left(0), 0);
    ck_assert_uint_gt(lam_budget_left((size_t)1 << 40), 0);
    ck_assert_int_eq(lam_budget_ask("a block", (size_t)1 << 20), LAM_ERR_MEMORY);
    must(lam_budget_ask("a small block", 100));
    must(lam_budget_ask_under((size_t)1 << 40, "a block", (size_t)1 << 20));
    lam_budget_set(0);
    must(lam_budget_ask("a block", (size_t)1 << 20));
    ck_assert_int_eq(lam_budget_ask_under(1, "a block", (size_t)1 << 20), LAM_ERR_MEMORY);
}
END_TEST

START_TEST(this_machine_has_something_left)
{
    const size_t left = lam_machine_left("");
    ck_assert_uint_gt(left, 0);
    ck_assert_uint_gt(lam_machine_used(), 0);
}
END_TEST

START_TEST(a_limit_on_addresses_counts)
{
    const size_t much = (size_t)256 << 20;
    struct rlimit limit;
    unsigned long pages;
    FILE *const statm = fopen("/proc/self/statm", "r");
    ck_assert(statm && fscanf(statm, "%lu", &pages) == 1); /* terabytes under a sanitizer */
    fclose(statm);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + much;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    struct rlimit now;
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &now), 0);
    if (now.rlim_cur != limit.rlim_cur) { /* qemu-user takes such a limit and does nothing */
        puts("skipped: this system ignores limits on addresses");
        return;
    }
    ck_assert_uint_le(lam_machine_left(""), much);
}
END_TEST

/* ---- a simulated machine: /proc and cgroup files ---- */

static void put(const char *path, const char *text)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s%s", test_temp_path("root"), path);
    *strrchr(dir, '/') = '\0';
    must(lam_dir_make(dir));
    snprintf(dir, sizeof dir, "%s%s", test_temp_path("root"), path);
    must(lam_file_save(dir, text, strlen(text)));
}

static size_t left(void)
{
    return lam_machine_left(test_temp_path("root"));
}

START_TEST(the_least_of_all_limits_counts)
{
    ck_assert_uint_eq(left(), SIZE_MAX); /* nothing is known */
    put("/proc/meminfo", "MemTotal:       24684240 kB\nMemFree:         1 kB\n"
                         "MemAvailable:   20000000 kB\nBuffers: 7 kB\n");
    ck_assert_uint_eq(left(), (size_t)20000000 * 1024);

    /* Version 2: a group without a limit in one with a limit; cached files give way. */
    put("/proc/self/cgroup", "0::/user.slice/job\n");
    put("/sys/fs/cgroup/user.slice/job/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/job/memory.current", "100\n");
    put("/sys/fs/cgroup/user.slice/memory.max", "9000000000\n");
    put("/sys/fs/cgroup/user.slice/memory.current", "5000000000\n");
    put("/sys/fs/cgroup/user.slice/memory.stat", "anon 1000000000\nfile 4000000000\nkernel 1\n");
    ck_assert_uint_eq(left(), 8000000000);
    put("/sys/fs/cgroup/user.slice/job/memory.max", "1000\n");
    ck_assert_uint_eq(left(), 900);
    put("/sys/fs/cgroup/user.slice/job/memory.max", "50\n"); /* it was lowered: nothing is left */
    ck_assert_uint_eq(left(), 0);

    /* Version 1, in a container that sees the end of the tree only. */
    put("/proc/self/cgroup", "5:cpu:/x\n4:memory:/docker/0123abcd\n1:name=systemd:/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000000\n");
    put("/sys/fs/cgroup/memory/memory.stat", "cache 1\nrss 2\ntotal_cache 100000000\n");
    ck_assert_uint_eq(left(), 1600000000);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    ck_assert_uint_eq(left(), (size_t)20000000 * 1024);
}
END_TEST

START_TEST(sizes_read_well)
{
    char t[32];
    ck_assert_str_eq(lam_format_size(t, sizeof t, 512), "512 B");
    ck_assert_str_eq(lam_format_size(t, sizeof t, 1500), "1.5 kB");
    ck_assert_str_eq(lam_format_size(t, sizeof t, 1e8), "100 MB");
    ck_assert_str_eq(lam_format_size(t, sizeof t, 999.9), "1.0 kB");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, what_fits_is_allowed_and_the_rest_refused_with_both_numbers);
    tcase_add_test(tests, a_limit_counts_what_the_process_has);
    tcase_add_test(tests, the_common_limit_is_for_those_without_their_own);
    tcase_add_test(tests, this_machine_has_something_left);
    tcase_add_test(tests, a_limit_on_addresses_counts);
    tcase_add_test(tests, the_least_of_all_limits_counts);
    tcase_add_test(tests, sizes_read_well);
    return test_run("core/budget", tests);
}
