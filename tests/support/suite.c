/* suite.c -- running one Check suite, and a temporary folder that goes away with it. */
#include "support/suite.h"

#include "core/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

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

static char folder[PATH_MAX];

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
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *const path = paths[next++ % 8];
    ck_assert_int_eq(lam_path_join(path, sizeof paths[0], folder, name), LAM_OK);
    return path;
}
