/* optimizer.h -- one update of all parameters: global-norm clip, then Adam, SGD, Adagrad or Muon.
 *
 * Parameters that learn from a loss of their own (a memory's compression) are clipped by a norm of their own:
 * that loss shall not shrink the language model's steps.  Each norm guards its own parameters against
 * numbers that are not finite.
 *
 * Muon (train/muon.h) takes the hidden matrices; `kind`, which is then Adam, the rest.
 *
 * Nothing is read back from the device: norm and clip factor stay there; lam_optimizer_norm waits. */
#ifndef LAM_TRAIN_OPTIMIZER_H
#define LAM_TRAIN_OPTIMIZER_H

#include "train/muon.h"

typedef struct lam_optimizer_options {
    lam_update_kind kind;
    double beta1, beta2, eps; /* SGD: beta1 is the momentum */
    double clip;              /* 0: none */
    double decay;             /* decoupled weight decay of matrices and tables, 0: none */
    double matrix_lr, table_lr, vector_lr; /* factors of the learning rate, by lam_role */
    int muon;                              /* hidden matrices are Muon's */
    double muon_momentum;
    lam_muon_rows muon_rows;
    int clip_together; /* one norm for all, also for parameters that are set apart */
} lam_optimizer_options;

/* Adam 0.9/0.999, eps 1e-8, clip 0.25, no decay, one rate for all: the paper's. */
lam_optimizer_options lam_optimizer_defaults(void);

typedef struct lam_optimizer {
    lam_optimizer_options opt;
    lam_model *model; /* kept */
    /* WIDE moments, flat like the parameters; NULL where the rule has none.  With Muon v ends before the
     * hidden matrices, which have none. */
    void *m, *v;
    void *norm; /* WIDE [2]: gradient norms of the last step, before clipping; the second is that of
                         the parameters set apart */
    lam_part *parts; /* [n params] */
    long *counted;   /* [n params]: steps that were counted since lam_optimizer_settle */
    lam_muon *muon;  /* NULL without */
} lam_optimizer;

/* Bytes of device memory it takes besides the gradients. */
lam_status lam_optimizer_measure(size_t *bytes, lam_model *model,
                                 const lam_optimizer_options *options);
lam_status lam_optimizer_create(lam_optimizer **out, lam_model *model,
                                const lam_optimizer_options *options);
void lam_optimizer_free(lam_optimizer *o); /* NULL is fine */

/* Clears the gradients and the marks of which parameters received one. */
void lam_optimizer_zero(lam_optimizer *o);
/* Updates every parameter that received a gradient since zero(), at learning rate lr. */
void lam_optimizer_step(lam_optimizer *o, double lr);
/* Counts the last step in totals[3] if it was skipped (lam_tally), in totals[7] if that of the parameters set
 * apart was. */
void lam_optimizer_tally(const lam_optimizer *o, void *totals);
/* So many steps since the last call were skipped, of the two groups: Adam's own counts did not move in them.
 * Whether a step was skipped only the device knows, so steps that nobody looked at are counted until then. */
void lam_optimizer_settle(lam_optimizer *o, const int64_t skipped[2]);
/* The last step's gradient norm, without parameters that were clipped apart unless theirs is not finite.
 * Waits. */
lam_status lam_optimizer_norm(const lam_optimizer *o, double *norm);

#endif
