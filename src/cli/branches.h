/* branches.h -- a text that a model goes on writing, its memory, and forks of both under names.
 *
 * One session computes; the branches that are not current wait as snapshots.  Everything that was fed or drawn is in
 * the session at once, so a branch can be forked or saved between any two tokens. */
#ifndef LAM_CLI_BRANCHES_H
#define LAM_CLI_BRANCHES_H

#include "cli/generate_options.h"

enum { LAM_BRANCHES_MAX = 64, LAM_BRANCH_NAME = 32 };

typedef struct lam_branches lam_branches;

/* engine is kept; of the options the lengths count.  Begins with one empty branch, called main. */
lam_status lam_branches_create(lam_branches **out, const lam_engine *engine,
                               const lam_generate_args *o);
void lam_branches_free(lam_branches *b); /* NULL is fine */

/* Appends tokens to the current branch.  LAM_ERR_INTERRUPTED: a signal came, and the rest was not fed. */
lam_status lam_branches_read(lam_branches *b, const int32_t *tokens, size_t n);
/* Appends a token that the model has drawn itself: under --refresh the memory is refreshed at its own pace. */
lam_status lam_branches_drawn(lam_branches *b, int32_t token);
/* What follows: [n_token] log-probabilities up to a constant, borrowed until the next call. */
lam_status lam_branches_scores(lam_branches *b, const double **scores);

int64_t lam_branches_length(const lam_branches *b); /* tokens of the current branch */
/* Its latest tokens, at least `enough` of them where there were as many since it began or was loaded. */
const int32_t *lam_branches_recent(const lam_branches *b, int *n);

/* Copies the current branch and makes the copy current.  name: NULL chooses a free number.  LAM_ERR_ARG: the name is in
 * use or not one word. */
lam_status lam_branches_fork(lam_branches *b, const char *name);
/* LAM_ERR_ARG: there is no such branch; drop also: it is the current one. */
lam_status lam_branches_switch(lam_branches *b, const char *name);
lam_status lam_branches_drop(lam_branches *b, const char *name);

/* Of the current branch: forgets everything; a snapshot to and from a file.  A file that is no snapshot is not
 * replaced; after a failed load the branch is as it was. */
void lam_branches_reset(lam_branches *b);
lam_status lam_branches_save(lam_branches *b, const char *path);
lam_status lam_branches_load(lam_branches *b, const char *path);

int lam_branches_count(const lam_branches *b);
int lam_branches_current(const lam_branches *b);
/* Of branch i: its name and how many tokens it has. */
const char *lam_branches_name(const lam_branches *b, int i, int64_t *length);

#endif
