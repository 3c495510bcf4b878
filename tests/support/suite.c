/* suite.c -- running one Check suite, and a temporary folder that goes away with it. */
#include "support/suite.h"

#include "core/file.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int test_run(const char *name, TCase *tests)
{
    Suite *const suite = suite_create(name);
    tcase_set_timeout(tests, 0);
    suite_add_tcase(suite, tests);
    SRunner *const runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

lam_rng test_rng(uint64_t seed)
{
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    return (lam_rng){.key = seed};
}

static char folder[PATH_MAX];

void test_temp_in_memory(void)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
}

void test_temp_make(void)
{
    const char *const base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/lamemo-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(1);
    }
}

void test_temp_remove(void)
{
    lam_dir_remove(folder);
}

const char *test_temp_path(const char *name)
{
    enum { MAX = 64 };
    static char paths[MAX][PATH_MAX];
    char path[PATH_MAX];
    ck_assert_int_eq(lam_path_join(path, sizeof path, folder, name), LAM_OK);
    int i = 0;
    while (i < MAX && paths[i][0] && strcmp(paths[i], path) != 0)
        i++;
    ck_assert_int_lt(i, MAX);
    return strcpy(paths[i], path);
}

int test_temp_count(void)
{
    DIR *dir = opendir(folder);
    int n = 0;
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}
