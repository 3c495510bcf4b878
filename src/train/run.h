/* run.h -- a whole run: steps with logging, evaluation and checkpoints between them, and the conditions to stop.
 *
 * The run folder afterwards holds last/ (a checkpoint), best/ (a model folder, the one with the lowest validation
 * loss), metrics.jsonl, train.log and the TensorBoard events.  State is saved only after it was found to be finite:
 * last/ is always usable. */
#ifndef LAM_TRAIN_RUN_H
#define LAM_TRAIN_RUN_H

#include "data/corpus.h"
#include "train/evaluate.h"
#include "train/trainer.h"

typedef struct lam_run_options {
    const char *dir; /* exists */
    lam_metric metric;
    const lam_tokens *valid; /* NULL: no evaluation, no best/ */
    const lam_tokens *test;  /* NULL: none at the end */
    const char *vocab;       /* text for the folders' vocab.json; NULL: none */
} lam_run_options;

/* For a live progress line. */
typedef struct lam_run_progress {
    int64_t step, max_step;
    double loss; /* mean since the last logged step, nats; NaN: none yet */
    double tokens_per_second, flops;
    double seconds_left;
    double evaluated; /* part of the evaluation that is done; below 0: no evaluation runs */
} lam_run_progress;

typedef struct lam_run_watch {
    void *user;
    int (*stop)(void *user);                                 /* non-zero: save and leave */
    void (*progress)(void *user, const lam_run_progress *p); /* after every step */
    void (*sample)(
        void *user,
        int64_t step); /* every sample_interval steps, the model being that of this step */
} lam_run_watch;

typedef struct lam_run_result {
    int64_t step;
    int timed_out;    /* max_time ended it: there is more to do */
    double best_loss; /* infinity: never evaluated */
    double
        best_bits; /* per byte of text, as far as it was evaluated by this call; NaN: it was not */
    int64_t best_step;
    lam_eval_result test; /* tokens 0: not made */
} lam_run_result;

/* Checks in advance for errors that would otherwise end the run at its first evaluation or at its end: LAM_ERR_ARG if
 * the evaluation's lengths are impossible, or a text is too short for its batch.  Call this before a folder is
 * changed. */
lam_status lam_run_check(const lam_trainer *t, const lam_run_options *options);

/* Trains until max_step, scheduler_time, max_time or a stop; `log` is open on the same folder.  At the end the
 * best model (the last one without a validation text) is loaded and evaluated on the test text.  LAM_OK at the
 * end, LAM_ERR_INTERRUPTED after a stop: last/ is then saved too.  LAM_ERR_NUMERIC names the step, the quantity
 * and the last good checkpoint. */
lam_status lam_run(lam_run_result *out, lam_trainer *t, lam_runlog *log,
                   const lam_run_options *options, const lam_run_watch *watch);

#endif
