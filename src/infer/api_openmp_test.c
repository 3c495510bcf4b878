/* api_openmp_test.c -- a host program that uses OpenMP itself gets the same numbers, whatever it has set, and
 * finds its settings as it left them.
 *
 * 64 streams make the GEMMs of the small model large enough to be divided among threads.  Where a session
 * gets its threads, its results are those of a plain program with as many; where it cannot have them, those of
 * one thread: to the last bit, because only the GEMM library's order of summation depends on the number. */
#include "lamemo.h"

#include "support/suite.h"
#include "support/toy_folder.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STREAMS = 64, V = 256, TOKENS = 2 * TOY_FOLDER_N + 3, THREADS = 3, HOSTS = 3 };

typedef struct result {
    double logits[STREAMS * V];
} result;

static lamemo_engine *engine;
static result *divided, *alone; /* of a plain program with THREADS, and with one */

/* 0, or how many things went wrong; in any thread. */
static int compute(result *r, int threads)
{
    const lamemo_session_options options = {.streams = STREAMS, .threads = threads};
    const int host_threads = omp_get_max_threads(), host_dynamic = omp_get_dynamic();
    int32_t tokens[STREAMS * TOKENS];
    lamemo_session *s = NULL;
    for (int i = 0; i < STREAMS * TOKENS; i++)
        tokens[i] = i * 7 % V;
    int wrong = lamemo_session_create(engine, &options, &s) != LAMEMO_OK ||
                lamemo_session_feed(s, tokens, TOKENS) != LAMEMO_OK ||
                lamemo_session_logits(s, r->logits) != LAMEMO_OK;
    lamemo_session_free(s);
    wrong += omp_get_max_threads() != host_threads;
    wrong += omp_get_dynamic() != host_dynamic;
    return wrong;
}

static int differs(const result *expected)
{
    result *const r = calloc(1, sizeof *r);
    const int wrong = !r || compute(r, THREADS) != 0 || memcmp(r, expected, sizeof *r) != 0;
    free(r);
    return wrong;
}

static void open_engine(void)
{
    const char *dir = test_temp_path("model");
    const lamemo_engine_options options = {.device = "cpu"};
    must(toy_folder_save(dir, "lamemo", 1));
    ck_assert_msg(lamemo_engine_open(dir, &options, &engine) == LAMEMO_OK, "%s", lamemo_error());
    divided = calloc(1, sizeof *divided);
    alone = calloc(1, sizeof *alone);
    ck_assert(divided && alone);
}

/* Not in open_engine(): some tests are about a program that has computed nothing yet. */
static void compute_plainly(void)
{
    ck_assert_int_eq(compute(divided, THREADS), 0);
    ck_assert_int_eq(compute(alone, 1), 0);
}

static void close_engine(void)
{
    free(divided);
    free(alone);
    lamemo_engine_close(engine);
}

START_TEST(the_host_may_let_teams_be_dynamic)
{
    compute_plainly();
    omp_set_dynamic(1);
    ck_assert(!differs(divided));
}
END_TEST

START_TEST(the_host_may_change_its_number_of_threads)
{
    compute_plainly();
    for (int n = 1; n <= 9; n += 4) {
        omp_set_num_threads(n);
        ck_assert(!differs(divided));
    }
}
END_TEST

START_TEST(the_host_may_forbid_teams)
{
    compute_plainly();
    omp_set_max_active_levels(0);
    ck_assert(!differs(alone));
    omp_set_max_active_levels(1);
    ck_assert(!differs(divided));
}
END_TEST

/* Every thread of a team has a session of its own. */
static int differ_in_a_team(int levels, int threads)
{
    int wrong = 0;
    omp_set_max_active_levels(levels);
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
    wrong += differs(alone);
    return wrong;
}

START_TEST(the_host_may_call_from_its_own_teams)
{
    compute_plainly();
    for (int dynamic = 0; dynamic <= 1; dynamic++)
        for (int levels = 1; levels <= 3; levels++) {
            omp_set_dynamic(dynamic);
            ck_assert_int_eq(differ_in_a_team(levels, HOSTS), 0);
            ck_assert_int_eq(differ_in_a_team(levels, 1), 0);
        }
}
END_TEST

/* OpenMP's threads do not survive fork(): opening must not have started any. */
START_TEST(the_host_may_fork_before_it_computes)
{
    lamemo_session *s;
    ck_assert_int_eq(
        lamemo_session_create(engine, &(lamemo_session_options){.threads = THREADS}, &s),
        LAMEMO_OK);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(600); /* only against hanging */
        _exit(compute(divided, THREADS));
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    lamemo_session_free(s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, open_engine, close_engine);
    tcase_add_test(tests, the_host_may_let_teams_be_dynamic);
    tcase_add_test(tests, the_host_may_change_its_number_of_threads);
    tcase_add_test(tests, the_host_may_forbid_teams);
    tcase_add_test(tests, the_host_may_call_from_its_own_teams);
    tcase_add_test(tests, the_host_may_fork_before_it_computes);
    return test_run("infer/api_openmp", tests);
}
