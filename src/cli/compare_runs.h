/* compare_runs.h -- trains what a comparison still lacks, each run in a process of its own. */
#ifndef LAM_CLI_COMPARE_RUNS_H
#define LAM_CLI_COMPARE_RUNS_H

#include "cli/options.h"
#include "comm/comm.h"
#include "report/comparison.h"

enum { LAM_JOBS_MAX = 64 };

/* Runs `jobs` trainings at a time, in folders under `dir`, and saves the comparison after each.  Of several processes
 * each trains its part of the runs, the first one saves the comparison, and all know the result.  Runs that fail do not
 * stop the others; *failed counts them.  LAM_ERR_INTERRUPTED: a signal came, all have saved and ended. */
lam_status lam_compare_train(lam_comparison *c, int *failed, const char *dir, int jobs,
                             const lam_args *args, lam_comm *comm);

#endif
