/* trainer.h -- the state of a run and its one step: forward, backward, update.
 *
 * A step takes the next batch of the corpus, runs its groups of columns one after the other, each with its
 * own memory, adds their gradients and updates the parameters once.  When to log, evaluate and save
 * is train/run.h's business.  Creation and checkpoints are in trainer.c, the step in step.c. */
#ifndef LAM_TRAIN_TRAINER_H
#define LAM_TRAIN_TRAINER_H

#include "train/checkpoint.h"
#include "train/exchange.h"
#include "train/leaves.h"

typedef struct lam_trainer {
    lam_model *model; /* kept */
    lam_schedule schedule;
    lam_optimizer *optimizer;
    lam_stack *stack;      /* of one group */
    lam_exchange exchange; /* with other ranks */
    lam_groups groups;     /* those computed here: all of the run's, or this rank's leaves */
    int streams;           /* of one group */
    lam_leaves *leaves;    /* NULL: the groups' gradients are accumulated one after the other */
    lam_group_memory *memories;
    lam_batcher *batcher;
    lam_train_state state;     /* state.settings are this run's */
    int32_t *inputs, *targets; /* [streams of the groups][longest] */
    int *rows;                 /* [streams]: those without padding, where there are documents */
    void *
        totals; /* WIDE [1, or leaves][LAM_TOTALS] on the device: of the steps since they were read */
    int64_t unread, unread_tokens; /* those steps, and their tokens */
    int64_t tokens;                /* of the last step's batch */
    double
        progress; /* share of the schedule that is over, if the clock says so (run.c); < 0: steps do */
} lam_trainer;

/* A fresh run on `text` (kept): the model's parameters are what they are, its mem_len and tgt_len
 * hold.  With several ranks each computes its part of the leaves, and all calls below are collective; NULL: one
 * process alone. */
lam_status lam_trainer_create(lam_trainer **out, lam_model *model, const lam_tokens *text,
                              const lam_settings *settings, const lam_share *share);
void lam_trainer_free(lam_trainer *t); /* NULL is fine */

/* Of all steps since the last report. */
typedef struct lam_step_report {
    double nll;       /* sum over their tokens, nats; without steps whose loss is not finite */
    int64_t tokens;   /* of that sum: with half_loss only half of the batch's */
    double aux;       /* the memory's own loss, summed likewise; 0 where it has none */
    int64_t skipped;  /* gradient not finite: no parameter changed; the memory is emptied now */
    double grad_norm; /* of the last step, before clipping */
    double lr;
} lam_step_report;

/* Makes step state.step + 1.  With a report the device is waited for; if no loss or no gradient since
 * the last report was finite, that is LAM_ERR_NUMERIC naming step and quantity, and the parameters are
 * still those before the step.  Without one (NULL) nothing is read back, and a bad step leaves the
 * parameters alone all the same. */
lam_status lam_trainer_step(lam_trainer *t, lam_step_report *report);

/* Memory rows of the next step: mem_len, or fewer in the first part of the run. */
int lam_trainer_mem_len(const lam_trainer *t);

/* Bytes that the stack will take besides when the memory gets its whole length. */
lam_status lam_trainer_growth(size_t *bytes, const lam_trainer *t);

/* The learning rate of the next step. */
double lam_trainer_lr(const lam_trainer *t);

/* Saves the run as checkpoint `dir`; `vocab` as in lam_folder_save. */
lam_status lam_trainer_save(lam_trainer *t, const char *dir, const char *vocab);
/* Goes on from checkpoint `dir`.  The trainer keeps its own settings; those that give the state its
 * meaning must be equal. */
lam_status lam_trainer_resume(lam_trainer *t, const char *dir);

#endif
