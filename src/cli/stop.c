/* stop.c -- see stop.h.
 *
 * The handler has a stack of its own.  oneDNN's matrix products use the stack pointer as one more
 * register that points into their buffers; the frame of a handler on that "stack" overwrote the heap
 * below them, and one Ctrl-C in a few hundred ended in "free(): invalid size" instead of a checkpoint. */
#include "cli/stop.h"

#include "core/file.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16 }; /* a frame holds all vector registers: some 4 kB */
/* timeout(1) signals its command and then its whole group, so one wish may arrive twice, milliseconds apart. */
enum { SAME_WISH_NS = 200000000 };

static atomic_int stop_signal; /* written in the handler, read by every thread that asks */
static const char *volatile answer;
static volatile unsigned patience;
/* When the first SIGINT, SIGTERM or SIGHUP came; read and written in the handler. */
static struct timespec asked;
static char handler_stack[STACK_BYTES];

static sigset_t those_who_ask(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

static bool same_wish(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - asked.tv_sec) * 1000000000LL + (now.tv_nsec - asked.tv_nsec) <
           SAME_WISH_NS;
}

/* Kills once the handler has returned. */
static void end_at_once(int signal_number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
    raise(signal_number);
}

static void on_signal(int signal_number)
{
    const char *const text = answer;
    const int error = errno;
    const bool first =
        stop_signal == 0; /* what follows (a reader that Ctrl-C ended too) is not the reason */
    if (first)
        stop_signal = signal_number;
    /* Nobody presses SIGPIPE or SIGHUP again out of impatience: a session that ends sends SIGHUP right after SIGTERM. */
    if (signal_number == SIGINT || signal_number == SIGTERM || (first && signal_number == SIGHUP)) {
        if (asked.tv_sec == 0 && asked.tv_nsec == 0)
            clock_gettime(CLOCK_MONOTONIC, &asked);
        else if (!same_wish())
            end_at_once(signal_number);
    }
    if (first && patience > 0)
        alarm(patience);
    if (first && signal_number == SIGINT && text && write(STDERR_FILENO, text, strlen(text)) < 0)
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
    /* No RESTART: a read that waits for input must return.  One handler at a time, because they share `asked`. */
    struct sigaction action = {
        .sa_handler = on_signal, .sa_flags = (int)SA_ONSTACK, .sa_mask = those_who_ask()};
    /* Of this, the main thread, to which the kernel gives such signals while it does not block them. */
    sigaltstack(&(stack_t){.ss_sp = handler_stack, .ss_size = sizeof handler_stack}, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* as under nohup */
        sigaction(SIGHUP, &action, NULL);
    /* `lamemo train 2>&1 | tee log`, and tee is gone: the next line must not cost the checkpoint. */
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
    const sigset_t asking = those_who_ask();
    sigset_t before;
    alarm(0);
    sigprocmask(SIG_BLOCK, &asking, &before); /* one that comes meanwhile asks again */
    asked = (struct timespec){0};
    stop_signal = 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return true;
}

void lam_stop_answer(const char *text)
{
    answer = text;
}
