/* fault.c -- the hook behind lam_file_fault; see fault.h. */
#include "support/fault.h"

#include "core/file.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CRASH = -1, CRASHED = 99 };

static int countdown, wanted; /* guarded calls until the fault; its errno, or CRASH */
static int armed, happened, no_exchange;

static int hook(const char *what)
{
    if (no_exchange && strcmp(what, "exchange") == 0)
        return ENOSYS;
    if (countdown == 0 || --countdown > 0)
        return 0;
    if (wanted == CRASH)
        _exit(CRASHED);
    happened = 1;
    return wanted;
}

int test_fault_at(int nth, int error)
{
    const int again = !armed || happened;
    armed = again;
    happened = 0;
    countdown = again ? nth : 0;
    wanted = error;
    lam_file_fault = hook;
    return again;
}

int test_fault_happened(void)
{
    return happened;
}

void test_fault_no_exchange(int on)
{
    no_exchange = on;
    lam_file_fault = hook;
}

int test_crash_at(int nth, void (*body)(void *arg), void *arg)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        countdown = nth;
        wanted = CRASH;
        lam_file_fault = hook;
        body(arg);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CRASHED);
    return WEXITSTATUS(status) == CRASHED;
}
