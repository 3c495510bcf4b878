/* exchange.h -- the gradients of a step, summed over the ranks that share a run.
 *
 * Which parameters received a gradient is exchanged too: one that no rank has touched is not updated. */
#ifndef LAM_TRAIN_EXCHANGE_H
#define LAM_TRAIN_EXCHANGE_H

#include "comm/comm.h"
#include "model/model.h"

/* How a run is shared; all zero: by nobody. */
typedef struct lam_share {
    lam_comm *comm; /* kept; NULL: one process alone */
    lam_reduce reduce;
} lam_share;

typedef struct lam_exchange {
    lam_share share;
    lam_model *model;    /* kept */
    void *stage;         /* host copy of the gradients, where they are not in host memory */
    void *scratch;       /* room for half of them */
    unsigned char *used; /* [n params] */
    double waited, took; /* seconds so far: until the last rank was there, and for the sums */
} lam_exchange;

/* `model` has its gradients placed.  Makes nothing for one rank. */
lam_status lam_exchange_create(lam_exchange *x, lam_model *model, lam_share share);
void lam_exchange_free(lam_exchange *x); /* fine on a zeroed one */

/* Gradients and marks of all ranks, instead of this one's. */
lam_status lam_exchange_gradients(lam_exchange *x);

#endif
