/* stop.c -- see stop.h.
 *
 * The handler has a stack of its own.  oneDNN's matrix products use the stack pointer as one more
 * register that points into their buffers; the frame of a handler on that "stack" overwrote the heap
 * below them, and one Ctrl-C in a few hundred ended in "free(): invalid size" instead of a checkpoint. */
#include "cli/stop.h"

#include "core/file.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16 }; /* a frame holds all vector registers: some 4 kB */

static volatile sig_atomic_t stop_signal;
static const char *volatile answer;
static volatile unsigned patience;
static char handler_stack[STACK_BYTES];

/* SIGHUP is not among them: a session that ends sends it right after SIGTERM, and nobody is impatient then. */
static void end_at_the_next(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void on_signal(int signal_number)
{
    const char *const text = answer;
    const int error = errno;
    if (stop_signal != 0) /* what follows (a reader that Ctrl-C ended too) is not the reason */
        return;
    stop_signal = signal_number;
    if (signal_number != SIGPIPE)
        end_at_the_next();
    if (patience > 0)
        alarm(patience);
    if (signal_number == SIGINT && text && write(STDERR_FILENO, text, strlen(text)) < 0)
        errno = error; /* nobody reads it */
}

/* Nothing waits for a file to be finished: only calls that are safe in a handler. */
static void on_alarm(int signal_number)
{
    static const char text[] = "lamemo: stopped\n";
    (void)signal_number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
        /* nobody reads it */
    }
    _exit(128 + stop_signal);
}

void lam_stop_within(unsigned seconds)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = (int)SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    patience = seconds;
}

void lam_stop_install(void)
{
    lam_read_stop = lam_stop_signal;
    /* RESETHAND: the same signal once more finds the default action and ends the process.  No RESTART: a
     * read that waits for input must return. */
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK)};
    sigemptyset(&action.sa_mask);
    /* Of this, the main thread, to which the kernel gives such signals while it does not block them. */
    sigaltstack(&(stack_t){.ss_sp = handler_stack, .ss_size = sizeof handler_stack}, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* as under nohup */
        sigaction(SIGHUP, &action, NULL);
    /* `lamemo train 2>&1 | tee log`, and tee is gone: the next line must not cost the checkpoint. */
    action.sa_flags = (int)SA_ONSTACK;
    sigaction(SIGPIPE, &action, NULL);
    /* A file that grew to its limit (ulimit -f): the write fails and says so, as on a full disk. */
    signal(SIGXFSZ, SIG_IGN);
}

int lam_stop_signal(void)
{
    return stop_signal;
}

bool lam_stop_again(void)
{
    if (stop_signal != SIGINT)
        return false;
    alarm(0);
    stop_signal = 0; /* before the handlers are back: a signal that they see must not be lost */
    lam_stop_install();
    return true;
}

void lam_stop_answer(const char *text)
{
    answer = text;
}
