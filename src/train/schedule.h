/* schedule.h -- the learning rate as a function of the step. */
#ifndef LAM_TRAIN_SCHEDULE_H
#define LAM_TRAIN_SCHEDULE_H

typedef enum lam_schedule_kind {
    LAM_SCHEDULE_COSINE,
    LAM_SCHEDULE_LINEAR,
    LAM_SCHEDULE_INV_SQRT,
    LAM_SCHEDULE_CONSTANT,
    LAM_SCHEDULE_DEV_PERF, /* constant, lowered by lam_plateau */
    LAM_SCHEDULE_WSD       /* warm-up, stable, decay: constant, then a line down */
} lam_schedule_kind;

typedef struct lam_schedule {
    lam_schedule_kind kind;
    double lr;       /* the highest */
    double lr_min;   /* where cosine, linear and wsd end (eta_min) */
    long warmup;     /* steps of linear rise from lr / warmup to lr */
    long steps;      /* length of cosine, linear and wsd */
    double cooldown; /* wsd: the last part of it, 0 to 1, in which the learning rate falls */
} lam_schedule;

/* The learning rate of update t = 0, 1, ...  Cosine is the closed form, at the global step; after `steps` cosine,
 * linear and wsd stay at lr_min.  The warm-up starts low with the first update; the authors' scripts make the first
 * update at the full learning rate. */
double lam_schedule_lr(const lam_schedule *s, long t);
/* The same when the share `progress` of the schedule, 0 to 1, is over, whatever t says: schedules by the clock. */
double lam_schedule_lr_at(const lam_schedule *s, long t, double progress);
/* The share that is over before update t; 1 for a schedule without a length. */
double lam_schedule_progress(const lam_schedule *s, long t);

extern const char *const lam_schedule_names[]; /* by lam_schedule_kind; ends with NULL */

/* dev_perf: the learning rate is multiplied by `decay` when more than `patience` evaluations in a row did not
 * bring the loss below the best one by a part in 10,000 (PyTorch's ReduceLROnPlateau). */
typedef struct lam_plateau {
    double factor; /* of the scheduled rate; 1 at first */
    double best;   /* lowest loss so far; infinity at first */
    int bad;       /* evaluations since */
} lam_plateau;

/* Records an evaluation; `s` gives the learning rate and its lower limit.  Returns 1 if the learning rate fell. */
int lam_plateau_note(lam_plateau *p, const lam_schedule *s, double decay, int patience,
                     double loss);

#endif
