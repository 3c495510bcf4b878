/* children.h -- starting this program again, in its own place or beside itself to do one command.
 *
 * /proc/self/exe is this program, unless a loader was told to run it ("ld.so --library-path DIR lamemo ..."):
 * then it is the loader, which wants its own words first.  Children have a process group of their own: a Ctrl-C at the terminal reaches only us, and we pass it on once.
 * They end with us: whatever ends this process asks them to stop, too. */
#ifndef LAM_CLI_CHILDREN_H
#define LAM_CLI_CHILDREN_H

#include "core/status.h"

#include <sys/types.h>

/* The words with which execv() of /proc/self/exe starts this program with the arguments argv[1], ...;
 * argv[0] is only a name, both end with NULL.  One block, the caller's to free(); NULL: no memory.  It points
 * into argv. */
char **lam_self_words(char *const argv[]);

/* Starts "lamemo ARGV[1] ...": argv[0] is only a name, argv ends with NULL.  Its standard output is thrown
 * away: what it made is on disk. */
lam_status lam_child_start(pid_t *out, char *const argv[]);

/* Waits at most a tenth of a second for any child to end; *pid is 0 if none did.  *code is its exit
 * status, 128 + n after signal n. */
lam_status lam_child_wait(pid_t *pid, int *code);

#endif
