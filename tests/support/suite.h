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

#include "core/rng.h"
#include "core/status.h"

#include <check.h>

/* Runs the tests and returns the exit status of the program.  CK_RUN_CASE, CK_VERBOSITY and
 * CK_FORK=no work as in Check's manual. */
int test_run(const char *suite, TCase *tests);

/* A call that has to succeed; the test fails with its message where it stands. */
#define must(call) ck_assert_msg((call) == LAM_OK, "%s", lam_error())

/* Random numbers for a test; the seed goes to stderr, which also shows when the test fails. */
lam_rng test_rng(uint64_t seed);

/* First in main() of a program with thousands of fsyncs and no claim about the disk: its folder is in memory,
 * unless TMPDIR says where. */
void test_temp_in_memory(void);
/* A folder for one test program: pass both to tcase_add_unchecked_fixture(). */
void test_temp_make(void);
void test_temp_remove(void);
/* "FOLDER/name", valid until the program ends; at most 64 different names. */
const char *test_temp_path(const char *name);
/* How many names are in it, without those that begin with a dot. */
int test_temp_count(void);

#endif
