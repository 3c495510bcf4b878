/* train_session.h -- what one `lamemo train` holds open: its folder, corpus, model, trainer and log. */
#ifndef LAM_CLI_TRAIN_SESSION_H
#define LAM_CLI_TRAIN_SESSION_H

#include "cli/train_config.h"
#include "data/corpus.h"
#include "train/run.h"
#include "train/run_folder.h"

#include <limits.h>

typedef struct lam_train_session {
    const lam_train_options *o;
    const lam_args *args;
    lam_comm *comm; /* of whose ranks 0 alone changes the folder */
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

/* Only decides what is trained, cfg and settings, and writes nothing; to print it, neither a corpus nor a folder need be
 * given.  After a failure too the session must be closed.  `c` and `comm` are kept. */
lam_status lam_train_plan(lam_train_session *s, const lam_train_config *c, lam_comm *comm);

/* Opens all that the options ask for, and only then changes the run's folder.  Likewise. */
lam_status lam_train_open(lam_train_session *s, const lam_train_config *c, lam_comm *comm);
void lam_train_close(lam_train_session *s);

/* What lam_run() needs of it; borrowed. */
lam_run_options lam_train_run_options(const lam_train_session *s);

#endif
