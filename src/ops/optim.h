/* optim.h -- the optimiser's arithmetic over the flat parameter vector. */
#ifndef LAM_OPS_OPTIM_H
#define LAM_OPS_OPTIM_H

#include "ops/types.h"

/* One tensor's stretch of the flat vector.  Each tensor has its own step count, because one that
 * received no gradient in a step is skipped, its counter too. */
typedef struct lam_part {
    size_t offset, count;
    double lr;         /* learning rate of this tensor in this step */
    double decay;      /* decoupled weight decay, 0: none */
    double fix1, fix2; /* 1 - beta1^t, 1 - beta2^t */
} lam_part;

/* *norm = sqrt(sum of squares) over the parts; accumulated in double on every back-end, in an order
 * that depends on nothing but the sizes. */
typedef struct lam_gnorm {
    const lam_part *parts; /* host memory, borrowed for the call */
    int n_parts;
    const void *grad; /* WIDE, the flat vector */
    void *norm;       /* WIDE [1] */
} lam_gnorm;

typedef enum lam_update_kind {
    LAM_ADAM,   /* m, v moments; p -= lr * (m/fix1) / (sqrt(v/fix2) + eps) */
    LAM_SGD,    /* m = beta1 m + g; p -= lr * m */
    LAM_ADAGRAD /* v += g^2; p -= lr * g / (sqrt(v) + eps) */
} lam_update_kind;

/* g = grad * min(1, clip / (norm + 1e-6)) (clip 0: unclipped), then the rule; decoupled decay first:
 * p -= lr * decay * p.  If norm is not finite nothing changes.  `weight` is the ACT copy that GEMMs
 * read; NULL where master and weight are the same memory. */
typedef struct lam_update {
    lam_update_kind kind;
    const lam_part *parts; /* host memory, borrowed for the call */
    int n_parts;
    double beta1, beta2, eps, clip;
    const void *norm;     /* WIDE [1] */
    const void *grad;     /* WIDE */
    void *master, *m, *v; /* WIDE; m or v may be NULL where the rule has none */
    void *weight;         /* ACT, or NULL */
} lam_update;

/* What a run wants to know of many steps without asking after each:
 *   totals[0] + totals[1] += sum of x   (in double; two numbers, so that long sums lose nothing), or
 *   totals[2] += n                      where that sum is not finite;
 *   totals[3] += 1                      if one of the norms is not finite: update did nothing. */
typedef struct lam_tally {
    int n;
    const void *x; /* WIDE [n] */
    int n_norms;
    const void *norms; /* WIDE [n_norms] */
    void *totals;      /* WIDE [4] */
} lam_tally;

#endif
