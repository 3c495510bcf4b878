/* children.h -- this program, started again beside itself to do one command.
 *
 * Children have a process group of their own: a Ctrl-C at the terminal reaches only us, and we pass it on once.
 * They end with us: whatever ends this process asks them to stop, too. */
#ifndef LAM_CLI_CHILDREN_H
#define LAM_CLI_CHILDREN_H

#include "core/status.h"

#include <sys/types.h>

/* Starts "lamemo ARGV[1] ...": argv[0] is only a name, argv ends with NULL.  Its standard output is thrown
 * away: what it made is on disk. */
lam_status lam_child_start(pid_t *out, char *const argv[]);

/* Waits at most a tenth of a second for any child to end; *pid is 0 if none did.  *code is its exit
 * status, 128 + n after signal n. */
lam_status lam_child_wait(pid_t *pid, int *code);

#endif
