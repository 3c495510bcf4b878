/* exchange.h -- what the ranks of a run send each other in a step: gradients, which are summed, and ranges of flat
 * vectors that one rank has computed for all.
 *
 * The marks of which parameters received a gradient are exchanged too: a parameter without a gradient on any rank is
 * not updated. */
#ifndef LAM_TRAIN_EXCHANGE_H
#define LAM_TRAIN_EXCHANGE_H

#include "comm/nccl.h"
#include "core/background.h"
#include "model/model.h"

/* How a run is divided; all zero: one process. */
typedef struct lam_share {
    lam_comm *comm; /* kept; NULL: one process alone */
    lam_reduce reduce;
    int zero;    /* 1: the optimiser's state is divided between the ranks (holdings.h) */
    int overlap; /* 1: sum beside the backward pass, where all ranks say so */
} lam_share;

typedef struct lam_exchange {
    lam_share share;
    lam_model *model;    /* kept */
    lam_nccl *nccl;      /* between devices with their own memory; NULL: through the host */
    void *stage;         /* then: host copy of a flat vector */
    void *scratch;       /* room for half of one; with NCCL on the device */
    void *zero;          /* WIDE [1] there */
    unsigned char *used; /* [n params] */
    lam_background
        *beside;    /* in the host's memory: sums during the backward pass; NULL: all after it */
    lam_dev *queue; /* on a device: a context that does so, whose queue is another one; or NULL */
    size_t from
        [LAM_MARKS]; /* where the parts begin that it may sum once the model's device has come to mark i */
    int parts;
    size_t left; /* gradients before this one are not in a part yet */
    double waited, took,
        hidden; /* seconds so far: waiting for the last rank, sending, and sending beside backward */
} lam_exchange;

/* `model` need not have its gradients yet.  Makes nothing for one rank. */
lam_status lam_exchange_create(lam_exchange *x, lam_model *model, lam_share share);
void lam_exchange_free(lam_exchange *x); /* fine on a zeroed one */

/* Should gradients be passed as soon as they are final? */
int lam_exchange_early(const lam_exchange *x);
/* If so: the gradients from `from` to `end` are, and those behind them were before; `end` is that of the vector when a
 * backward pass begins, or begins anew.  How many from `from` on are to be passed now; 0: it is too few yet. */
size_t lam_exchange_due(lam_exchange *x, size_t from, size_t end);
/* Passes these.  On a device it may be captured (ops.h, repeat).  Elsewhere a summing thread sends the messages of this
 * rank from the first call of a step until lam_exchange_gradients(): no other thread may send any. */
void lam_exchange_part(lam_exchange *x, size_t from);
/* Replaces this rank's gradients and marks by those of all ranks. */
lam_status lam_exchange_gradients(lam_exchange *x);
double lam_exchange_hidden(const lam_exchange *x); /* seconds of it beside backward, so far */

/* A range of a flat vector that one rank has. */
typedef struct lam_stretch {
    size_t from, count;
    int owner;
} lam_stretch;
/* Sends all ranges of `flat`, WIDE on the device, from their owners to every rank.  The list is the same on every rank;
 * adjacent ranges with one owner are sent together, with the padding between them. */
lam_status lam_exchange_spread(lam_exchange *x, void *flat, const lam_stretch *list, int n);

#endif
