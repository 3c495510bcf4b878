/* train_session.h -- what one `lamemo train` holds open: its folder, corpus, model, trainer and log. */
#ifndef LAM_CLI_TRAIN_SESSION_H
#define LAM_CLI_TRAIN_SESSION_H

#include "cli/train_options.h"
#include "data/corpus.h"
#include "train/run.h"
#include "train/run_folder.h"

#include <limits.h>

typedef struct lam_train_session {
    const lam_train_options *o;
    const lam_args *args;
    char last[PATH_MAX];
    lam_run_found found; /* in the folder, at first */
    int resumed;
    lam_train_state then; /* of the checkpoint, when resumed */
    char from[PATH_MAX];  /* the model that a new run begins with, if any */
    char data[PATH_MAX];
    lam_config cfg;
    lam_settings settings;
    lam_corpus *corpus;
    char *vocab;
    lam_dev *dev;
    lam_model *model;
    lam_trainer *trainer;
    lam_runlog *log;
} lam_train_session;

/* Opens all that the options in `args` ask for, and only then changes the run's folder.  After a failure too
 * the session must be closed.  `args` is kept. */
lam_status lam_train_open(lam_train_session *s, const lam_args *args);
void lam_train_close(lam_train_session *s);

/* What lam_run() needs of it; borrowed. */
lam_run_options lam_train_run_options(const lam_train_session *s);

#endif
