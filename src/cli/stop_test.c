/* stop_test.c -- a signal sets the flag, on a stack of its own, and Ctrl-C is answered. */
#include "cli/stop.h"

#include "core/file.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const int asking[] = {SIGINT, SIGTERM, SIGHUP};

/* The clock stands still unless a test lets time pass: a busy machine may take long between two signals. */
static long milliseconds = 5000;
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    (void)id;
    *now = (struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000};
    return 0;
}

START_TEST(a_signal_asks)
{
    lam_stop_install();
    ck_assert_int_eq(lam_stop_signal(), 0);
    raise(asking[_i]);
    ck_assert_int_eq(lam_stop_signal(), asking[_i]);
}
END_TEST

START_TEST(the_next_one_insists) /* whatever came first */
{
    lam_stop_install();
    raise(asking[_i]);
    milliseconds += 201;
    raise(SIGTERM);
}
END_TEST

/* timeout(1) signals its command, and then the group of its command. */
START_TEST(one_that_follows_at_once_does_not)
{
    lam_stop_install();
    raise(asking[_i]);
    milliseconds += 199;
    for (int i = 0; i < 3; i++)
        raise(asking[i]);
    ck_assert_int_eq(lam_stop_signal(), asking[_i]);
}
END_TEST

START_TEST(nor_does_the_end_of_the_terminal)
{
    lam_stop_install();
    raise(SIGTERM);
    milliseconds += 10000;
    raise(SIGHUP);
    raise(SIGHUP);
    ck_assert_int_eq(lam_stop_signal(), SIGTERM);
}
END_TEST

/* What a signal writes on standard error, to be freed. */
static char *said_to(int signal_number)
{
    char *text;
    size_t size;
    const int kept = dup(STDERR_FILENO);
    FILE *const file = fopen(test_temp_path("said"), "w+");
    ck_assert_ptr_nonnull(file);
    dup2(fileno(file), STDERR_FILENO);
    raise(signal_number);
    dup2(kept, STDERR_FILENO);
    close(kept);
    fclose(file);
    must(lam_file_load(&text, &size, test_temp_path("said"), 1000));
    return text;
}

START_TEST(the_first_ctrl_c_is_answered_at_once)
{
    lam_stop_install();
    lam_stop_answer("soon\n");
    char *text = said_to(_i ? SIGTERM : SIGINT);
    ck_assert_str_eq(text, _i ? "" : "soon\n"); /* SIGTERM comes from a program */
    free(text);
    lam_stop_install();
    text = said_to(SIGINT); /* not the first */
    ck_assert_str_eq(text, "");
    free(text);
}
END_TEST

START_TEST(without_an_answer_nothing_is_said)
{
    lam_stop_install();
    lam_stop_answer("soon\n");
    lam_stop_answer(NULL);
    char *text = said_to(SIGINT);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(lam_stop_signal(), SIGINT);
    free(text);
}
END_TEST

START_TEST(a_limit_on_files_does_not_kill)
{
    lam_stop_install();
    raise(SIGXFSZ);
    ck_assert_int_eq(lam_stop_signal(), 0);
}
END_TEST

/* nohup's wish is respected. */
START_TEST(an_ignored_hangup_stays_ignored)
{
    signal(SIGHUP, SIG_IGN);
    lam_stop_install();
    raise(SIGHUP);
    ck_assert_int_eq(lam_stop_signal(), 0);
}
END_TEST

/* Code that uses the stack pointer for something else must find its memory as it was. */
START_TEST(the_handler_does_not_use_the_stack_it_finds)
{
    struct sigaction now;
    stack_t stack;
    lam_stop_install();
    ck_assert_int_eq(sigaction(_i ? SIGTERM : SIGINT, NULL, &now), 0);
    ck_assert(now.sa_flags & SA_ONSTACK);
    ck_assert_int_eq(sigaltstack(NULL, &stack), 0);
    ck_assert(!(stack.ss_flags & SS_DISABLE));
    ck_assert_uint_ge(stack.ss_size, (size_t)1 << 16);
}
END_TEST

START_TEST(work_that_does_not_ask_ends_with_its_time)
{
    lam_stop_install();
    lam_stop_within(1);
    raise(SIGTERM);
    for (;;)
        pause();
}
END_TEST

/* A terminal session goes on after Ctrl-C, its time to end is over, and the next one asks again. */
START_TEST(ctrl_c_can_be_obeyed_again_and_again)
{
    lam_stop_install();
    lam_stop_within(60);
    ck_assert(!lam_stop_again());
    for (int i = 0; i < 3; i++) {
        raise(SIGINT);
        ck_assert_int_eq(lam_stop_signal(), SIGINT);
        ck_assert(lam_stop_again());
        ck_assert_int_eq(lam_stop_signal(), 0);
        ck_assert_uint_eq(alarm(0), 0);
    }
    raise(SIGTERM);
    ck_assert(!lam_stop_again());
    ck_assert_int_eq(lam_stop_signal(), SIGTERM);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, a_signal_asks, 0, 3);
    tcase_add_loop_test_raise_signal(tests, the_next_one_insists, SIGTERM, 0, 3);
    tcase_add_loop_test(tests, one_that_follows_at_once_does_not, 0, 3);
    tcase_add_test(tests, nor_does_the_end_of_the_terminal);
    tcase_add_loop_test(tests, the_handler_does_not_use_the_stack_it_finds, 0, 2);
    tcase_add_loop_test(tests, the_first_ctrl_c_is_answered_at_once, 0, 2);
    tcase_add_test(tests, without_an_answer_nothing_is_said);
    tcase_add_test(tests, a_limit_on_files_does_not_kill);
    tcase_add_test(tests, an_ignored_hangup_stays_ignored);
    tcase_add_test(tests, ctrl_c_can_be_obeyed_again_and_again);
    tcase_add_exit_test(tests, work_that_does_not_ask_ends_with_its_time, 128 + SIGTERM);
    return test_run("cli/stop", tests);
}
