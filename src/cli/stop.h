/* stop.h -- Ctrl-C asks; a second Ctrl-C insists.
 *
 * The first SIGINT, SIGTERM or SIGHUP (the terminal is gone) sets a flag that long work looks at between steps, so that it can
 * finish what must not be cut (a file, a checkpoint) and return LAM_ERR_INTERRUPTED.  The next SIGINT or SIGTERM
 * kills, unless it comes within 0.2 seconds: then it is the same wish, sent twice.  SIGPIPE asks too, as often as it comes: nobody reads what we print any more. */
#ifndef LAM_CLI_STOP_H
#define LAM_CLI_STOP_H

#include <stdbool.h>

void lam_stop_install(void);
int lam_stop_signal(void); /* the signal that asked us to stop, or 0 */

/* Was it Ctrl-C?  Then it is obeyed, and the next one asks again; for commands that go on after it.  Another signal
 * stays. */
bool lam_stop_again(void);

/* After the first signal the work has so many seconds; then the process ends where it is.  For commands that make
 * no files, and while others make none: one segment of a long text may take minutes.  0: it has all the time. */
enum { LAM_STOP_PATIENCE = 5 };
void lam_stop_within(unsigned seconds);

/* What the first Ctrl-C is answered with, at once, on standard error: a step may take a while.  `text`, a whole line,
 * is kept; NULL: nothing. */
void lam_stop_answer(const char *text);

#endif
