/* ranks.h -- a command that several processes share, started by mpirun or srun: who speaks, and how it ends. */
#ifndef LAM_CLI_RANKS_H
#define LAM_CLI_RANKS_H

#include "cli/options.h"
#include "comm/comm.h"

/* The table entry for a double at `field` of struct `type`. */
/* clang-format off */
#define LAM_TIMEOUT_OPTION(type, field) \
    {"comm-timeout", 0, "SECONDS", LAM_OPT_DOUBLE, offsetof(type, field), "300", .max = 1e9, \
     .help = "Under mpirun: end all processes when one does not respond for SECONDS; 0: wait for ever."}
/* clang-format on */

typedef lam_status lam_ranks_work(const void *user, lam_comm *comm);

/* Joins the other processes, if there are any, and does the work.  What one of them fails with all return, and only
 * the first of them will be heard.  A group that is broken does not return: the message is printed, and all end. */
lam_status lam_ranks_run(const lam_command *command, double timeout, lam_ranks_work *work,
                         const void *user);

/* Is this process one whose messages about the command rank 0 prints as well?  Then it ends with 0: a launcher that
 * sees one process fail kills the others at once, and rank 0 would not get to speak. */
bool lam_ranks_mute(const lam_command *command);

/* Threads for this process: what was asked for, or its part of the cores it shares with others on this host. */
int lam_ranks_threads(const lam_comm *comm, int asked);

#endif
