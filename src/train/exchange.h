/* exchange.h -- what the ranks that share a run send each other in a step: gradients, which are summed, and stretches of
 * flat vectors that one rank has computed for all.
 *
 * Which parameters received a gradient is exchanged too: one that no rank has touched is not updated. */
#ifndef LAM_TRAIN_EXCHANGE_H
#define LAM_TRAIN_EXCHANGE_H

#include "comm/nccl.h"
#include "core/background.h"
#include "model/model.h"

/* How a run is shared; all zero: by nobody. */
typedef struct lam_share {
    lam_comm *comm; /* kept; NULL: one process alone */
    lam_reduce reduce;
    int zero;    /* 1: the optimiser's state is divided between the ranks (holdings.h) */
    int overlap; /* 1: sum beside the backward pass, where all ranks say so, on a CPU */
} lam_share;

typedef struct lam_exchange {
    lam_share share;
    lam_model *model;       /* kept */
    lam_nccl *nccl;         /* between devices with memory of their own; NULL: through the host */
    void *stage;            /* then: host copy of a flat vector */
    void *scratch;          /* room for half of one; with NCCL on the device */
    void *zero;             /* WIDE [1] there */
    unsigned char *used;    /* [n params] */
    lam_background *beside; /* sums beside the backward pass; NULL: all after it */
    size_t left;            /* gradients before this one have not been given to it yet */
    double waited, took; /* seconds so far: until the last rank was there, and for what was sent */
} lam_exchange;

/* `model` need not have its gradients yet.  Makes nothing for one rank. */
lam_status lam_exchange_create(lam_exchange *x, lam_model *model, lam_share share);
void lam_exchange_free(lam_exchange *x); /* fine on a zeroed one */

/* Are gradients wanted as soon as they are final? */
int lam_exchange_early(const lam_exchange *x);
/* Then: those from `from` on are, up to where the last call began.  From the first call of a step until
 * lam_exchange_gradients() the messages of this rank are those of a thread that sums: nobody else may send any. */
void lam_exchange_part(lam_exchange *x, size_t from);
/* Gradients and marks of all ranks, instead of this one's. */
lam_status lam_exchange_gradients(lam_exchange *x);

/* A stretch of a flat vector that one rank has. */
typedef struct lam_stretch {
    size_t from, count;
    int owner;
} lam_stretch;
/* Every rank has all stretches of `flat`, WIDE on the device, as their owners have them.  The list is the same on every
 * rank; neighbours that have one owner are sent together, with the padding between them. */
lam_status lam_exchange_spread(lam_exchange *x, void *flat, const lam_stretch *list, int n);

#endif
