/* leaves.h -- the gradients of groups of streams, summed in a tree that does not depend on which process computes them.
 *
 * A run with leaves divides its streams into L = 2^k groups.  Their gradients are summed pair by pair, then the pairs,
 * and so on: (0 + 1) + (2 + 3), ...  Floating-point sums depend on their order; this one depends on L alone, so the
 * weights are the same bits however many processes share the leaves. */
#ifndef LAM_TRAIN_LEAVES_H
#define LAM_TRAIN_LEAVES_H

#include "model/model.h"

typedef struct lam_leaves lam_leaves;

/* The tree over `n` leaves, a power of two, that are computed one after the other into model->params.grad.  `model` is
 * kept; its gradients are placed already. */
lam_status lam_leaves_create(lam_leaves **out, lam_model *model, int n);
void lam_leaves_free(lam_leaves *l); /* NULL is fine */
/* Bytes of device memory needed: one vector of gradients for each level of the tree. */
size_t lam_leaves_bytes(const lam_model *model, int n);

/* Before the backward pass of leaf i (they come in order): clears the gradients, where leaf i - 1 left its own. */
void lam_leaves_begin(lam_leaves *l, int i);
/* After the backward pass: adds the completed nodes of the tree.  After the last leaf the gradients are the sum of
 * all. */
void lam_leaves_end(lam_leaves *l, int i);
/* The same for `count` numbers from `from` on, as soon as they are final. */
void lam_leaves_end_part(lam_leaves *l, int i, size_t from, size_t count);

/* The same tree over `count` numbers of each leaf, x[n][count] in host memory; the sums are x[0]. */
void lam_leaves_sum(double *x, int n, int count);

#endif
