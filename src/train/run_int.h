/* run_int.h -- the state of a running run: run.c steps, logs and saves; run_eval.c evaluates. */
#ifndef LAM_TRAIN_RUN_INT_H
#define LAM_TRAIN_RUN_INT_H

#include "train/run.h"

#include <limits.h>

typedef struct lam_running {
    lam_trainer *t;
    lam_runlog *log;
    const lam_run_options *opt;
    const lam_run_watch *watch;
    lam_comm *comm; /* the ranks that share the run; NULL: one process alone */
    lam_evaluator *evaluator;
    char last[PATH_MAX], best[PATH_MAX];
    int on_host;        /* reading a number back costs nothing */
    int64_t saved;      /* step of last/; -1: there is none */
    int dirty;          /* last/ differs from the current state */
    int checked;        /* the last step was seen to be finite */
    double began;       /* clock when this call began */
    double before;      /* seconds of earlier calls */
    int stop;           /* 1: a rank wants to stop; as of the last check */
    double now;         /* seconds of this call, by the clock of rank 0; likewise */
    double step_tokens; /* of a whole step */
    double spent;       /* seconds in steps since the last logged one */
    int64_t tokens;     /* and tokens */
    double step_time;   /* seconds per step, smoothed */
    double stepped;     /* seconds in all steps */
    double
        density; /* tokens per byte of the validation text, as far as it was read; NaN: it was not */
    double norm, lr; /* of the last step read back */
    int64_t skipped; /* steps since the last logged one whose gradient was not finite */
} lam_running;

/* ---- run.c ---- */

/* Seconds of all calls so far. */
double lam_run_elapsed(const lam_running *r);
/* Should this process stop?  The ranks' joint decision is r->stop. */
int lam_run_stopping(const lam_running *r);
/* Calls watch->progress; `evaluated` as in lam_run_progress. */
void lam_run_show(const lam_running *r, double evaluated);

/* ---- run_eval.c ---- */

/* The loss of the validation text: logged, best/ saved if it is the lowest.  LAM_ERR_INTERRUPTED leaves no
 * trace. */
lam_status lam_run_evaluate(lam_running *r);
/* The loss of the best model on the test text.  The trainer's model becomes the best one: nothing is
 * trained after this. */
lam_status lam_run_test(lam_running *r, lam_eval_result *out);

#endif
