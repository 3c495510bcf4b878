/* run_folder.h -- what a folder holds of a run, and what of it a new run may replace.
 *
 * The names of a run folder (docs/formats.md) are replaced, cut or removed by training; the folder is a user's, and
 * something else may be called so.  What is called so and is not ours is refused by name.  Everything else in the
 * folder is left alone. */
#ifndef LAM_TRAIN_RUN_FOLDER_H
#define LAM_TRAIN_RUN_FOLDER_H

#include "core/status.h"

typedef struct lam_run_found {
    int last, best; /* a checkpoint to go on from (or what a crash left of one), the best model */
    int records;    /* metrics.jsonl or train.log */
} lam_run_found;

/* Looks at `dir`, which may be missing, and changes nothing.  LAM_ERR_IO names what is in the way: something of ours
 * that is not ours, or, where there is no run, anything at all. */
lam_status lam_run_look(lam_run_found *out, const char *dir);

/* Removes last and best, which lam_run_look() has seen; a process that dies here leaves whole ones, or none. */
lam_status lam_run_remove(const char *dir);

#endif
