/* run_paths.h -- which runs are meant: a folder without metrics.jsonl stands for the runs in it. */
#ifndef LAM_REPORT_RUN_PATHS_H
#define LAM_REPORT_RUN_PATHS_H

#include "core/status.h"

typedef struct lam_run_paths {
    int n, room;
    char **list;
} lam_run_paths;

/* Every given path, but in place of a folder that is no run the runs directly in it, folders or NAME.metrics.jsonl,
 * packed or not, by name.  What is neither stays as it is: whoever opens it says what is wrong. */
lam_status lam_run_paths_find(lam_run_paths *out, int n, char *const *given);
void lam_run_paths_free(lam_run_paths *paths);

#endif
