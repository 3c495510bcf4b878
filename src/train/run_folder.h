/* run_folder.h -- finds what a folder contains of a run, and what of it a new run may replace.
 *
 * Training replaces, truncates or removes files with the names of a run folder (docs/formats.md).  The folder belongs
 * to the user, who may have other files with these names: such a file is refused by name.  Everything else in the
 * folder is left alone. */
#ifndef LAM_TRAIN_RUN_FOLDER_H
#define LAM_TRAIN_RUN_FOLDER_H

#include "core/status.h"

typedef struct lam_run_found {
    int last, best; /* a checkpoint to resume from (or what a crash left of one), the best model */
    int records;    /* metrics.jsonl or train.log */
} lam_run_found;

/* Examines `dir`, which may be missing, and changes nothing.  LAM_ERR_IO names what is in the way: a file with a name
 * of a run folder that lamemo did not write, or, if there is no run, any file. */
lam_status lam_run_look(lam_run_found *out, const char *dir);

/* Removes last and best, which lam_run_look() has seen; a process that dies here leaves whole ones, or none. */
lam_status lam_run_remove(const char *dir);

#endif
