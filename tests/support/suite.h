/* suite.h -- the last lines of every Check program.
 *
 *     int main(void)
 *     {
 *         TCase *const tests = tcase_create("all");
 *         tcase_add_test(tests, measuring_equals_taking);
 *         return test_run("core/arena", tests);
 *     }
 *
 * Check's own limit of four seconds a test is off: CTest holds the only clock. */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>

/* Runs the tests and returns the exit status of the program.  CK_RUN_CASE, CK_VERBOSITY and
 * CK_FORK=no work as in Check's manual. */
int test_run(const char *suite, TCase *tests);

/* A folder for one test program: pass both to tcase_add_unchecked_fixture(). */
void test_temp_make(void);
void test_temp_remove(void);
/* "FOLDER/name" in a buffer of this call's own; eight are in use at a time. */
const char *test_temp_path(const char *name);

#endif
