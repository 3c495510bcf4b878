/* stop.c -- see stop.h. */
#include "cli/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int signal_number)
{
    stop_signal = signal_number;
}

void lam_stop_install(void)
{
    /* RESETHAND: the next signal finds the default action and ends the process.  No RESTART: a
     * read that waits for input must return. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int lam_stop_signal(void)
{
    return stop_signal;
}
