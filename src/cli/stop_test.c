/* stop_test.c -- a signal sets the flag, on a stack of its own. */
#include "cli/stop.h"

#include "support/suite.h"

#include <signal.h>

START_TEST(a_signal_asks_and_the_next_one_insists)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const int it = signals[_i];
    struct sigaction now;
    lam_stop_install();
    ck_assert_int_eq(lam_stop_signal(), 0);
    raise(it);
    ck_assert_int_eq(lam_stop_signal(), it);
    ck_assert_int_eq(sigaction(it, NULL, &now), 0);
    ck_assert(now.sa_handler == SIG_DFL);
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

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, a_signal_asks_and_the_next_one_insists, 0, 3);
    tcase_add_loop_test(tests, the_handler_does_not_use_the_stack_it_finds, 0, 2);
    tcase_add_test(tests, a_limit_on_files_does_not_kill);
    tcase_add_test(tests, an_ignored_hangup_stays_ignored);
    return test_run("cli/stop", tests);
}
