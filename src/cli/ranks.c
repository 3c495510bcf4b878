/* ranks.c -- see ranks.h. */
#include "cli/ranks.h"

#include "core/cpus.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const double PATIENCE =
    10.0; /* seconds that a process which failed waits for others that did too */

bool lam_ranks_mute(const lam_command *command)
{
    int rank = 0;
    if (command->shared)
        (void)lam_comm_started(&rank);
    return rank > 0;
}

lam_status lam_ranks_run(const lam_command *command, double timeout, lam_ranks_work *work,
                         const void *user)
{
    lam_comm *comm;
    const lam_status joined = lam_comm_open(&comm, timeout);
    if (joined != LAM_OK && lam_ranks_mute(command)) { /* rank 0 may have joined, and would wait */
        fprintf(stderr, "lamemo %s: %s\n", command->name, lam_error());
        exit(1);
    }
    LAM_TRY(joined);
    if (lam_comm_rank(comm) > 0)
        lam_log_set_level(LAM_LOG_ERROR);
    if (lam_comm_size(comm) > 1)
        lam_log(LAM_LOG_DEBUG, "%d processes, %d of them on this host, by %s", lam_comm_size(comm),
                lam_comm_local(comm), lam_comm_name(comm));
    const lam_status status = lam_comm_end(comm, work(user, comm), PATIENCE);
    if (lam_comm_broken(comm)) {
        if (lam_comm_speaks(comm))
            fprintf(stderr, "lamemo %s: %s\n", command->name, lam_error());
        lam_comm_abort(comm, 1);
    }
    lam_comm_close(comm);
    return status;
}

int lam_ranks_threads(const lam_comm *comm, int asked)
{
    const int mine = lam_cpus(), local = lam_comm_local(comm);
    if (asked > 0 || local == 1 || mine < (int)sysconf(_SC_NPROCESSORS_ONLN))
        return asked; /* chosen, alone, or bound to cores by the launcher */
    return mine > local ? mine / local : 1;
}
