/* holdings.h -- which rank keeps the optimiser's state of which parameter (--zero 1).
 *
 * The state is divided by whole units: a matrix that a rule treats as one (Muon's maps), otherwise a whole parameter.
 * Flat slices would cut matrices that must be orthogonalised in one piece.  The owner of a unit keeps its moments,
 * updates it and sends the new weights to the others.  Everything about the division is a function of the model, the
 * rule and the number of ranks, so every rank knows it without asking. */
#ifndef LAM_TRAIN_HOLDINGS_H
#define LAM_TRAIN_HOLDINGS_H

#include "train/optimizer.h"

struct lam_holding {
    int param;
    size_t offset, count; /* in the flat vectors */
    int owner;
    size_t m, v; /* place in the moments of the owner, where it has them */
};

struct lam_holdings {
    int n;
    lam_holding *list;   /* in the order of offsets */
    size_t mean, square; /* elements of the moments that this rank keeps */
};

/* Divides the state among options->ranks; LAM_ERR_ARG if a rank would have nothing. */
lam_status lam_holdings_create(lam_holdings **out, const lam_model *model,
                               const lam_optimizer_options *options);
void lam_holdings_free(lam_holdings *u); /* NULL is fine */

/* The unit that begins at this offset of the flat vectors, which must exist. */
const lam_holding *lam_holdings_at(const lam_holdings *u, size_t offset);

/* Gets the new weights of all units that received a gradient from their owners. */
lam_status lam_holdings_send(lam_optimizer *o);

/* Collects the moments of all ranks, m or v (square), in the vector of gradients, which is unused between two steps;
 * all ranks must call this.  And takes those of this rank out of it. */
lam_status lam_holdings_collect(lam_optimizer *o, int square);
void lam_holdings_keep(lam_optimizer *o, int square);

#endif
