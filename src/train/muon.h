/* muon.h -- Muon: hidden matrices step along the orthogonal factor of their momentum.
 *
 * For a linear map W with Nesterov momentum u = Q S R^T (singular values S) the step is Q R^T: every
 * direction moves equally far.  Five Newton-Schulz rounds bring the singular values to about 1
 * (between 0.7 and 1.2), which serves as well.  The step is scaled by 0.2 sqrt(the longer side), the
 * size of Adam's usual steps, so that Adam's learning rate and weight decay carry over (Moonlight).
 * q, k and v are maps of their own although they are stored as one.
 *
 * Orthogonal columns say nothing of the rows: those of a map with more outputs than inputs may have any length,
 * and a few outputs then learn at the cost of others.  And where a gradient has few large singular values the
 * rounds leave the others small: the step is shorter than its rate says.  With even rows each row is brought to
 * the length that it has on average in a step that is orthogonal, whatever the gradient.
 *
 * Everything else (embeddings, output, gains, biases, u, v, convolutions) is Adam's: optimizer.h. */
#ifndef LAM_TRAIN_MUON_H
#define LAM_TRAIN_MUON_H

#include "model/model.h"

typedef struct lam_muon lam_muon;

/* Buffers for the model's hidden maps; the model is kept. */
lam_status lam_muon_measure(size_t *bytes, lam_model *model); /* their size */
lam_status lam_muon_create(lam_muon **out, lam_model *model);
void lam_muon_free(lam_muon *muon); /* NULL is fine */

typedef enum lam_muon_rows {
    LAM_MUON_ROWS_FREE, /* as the rounds leave them */
    LAM_MUON_ROWS_EVEN  /* all of one length */
} lam_muon_rows;

typedef struct lam_muon_step {
    double lr, decay;      /* decoupled, as in lam_update */
    double momentum, clip; /* clip as in lam_update */
    lam_muon_rows rows;
    const void *norm; /* WIDE [1], from gnorm */
    void *m;          /* WIDE, flat: the momentum */
} lam_muon_step;

/* Updates every hidden map that received a gradient.  Their gradients become the steps taken. */
void lam_muon_update(lam_muon *muon, const lam_muon_step *step);

#endif
