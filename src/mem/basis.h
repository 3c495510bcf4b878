/* basis.h -- a signal on [0, 1] as a sum of Gaussian bumps, and fitting one to rows of data.
 *
 * X(t) = B^T psi(t) with psi_j(t) = N(t; mu_j, s_j^2), the normalised density.  Centres are evenly spaced on [0, 1],
 * both ends included; every centre has all widths, centre by centre.  Fitting is ridge regression: for data X at P
 * places, B = G^T X with G = F^T (F F^T + ridge I)^-1 and F [N][P] the bumps at those places.  G depends on the places
 * alone, so it is computed once, in double, on the host.
 *
 * As in the authors' code the places reach beyond [0, 1] on either side, with zeros as data there, so that the signal
 * falls off at its ends; its->ltm_padding = 0 disables this. */
#ifndef LAM_MEM_BASIS_H
#define LAM_MEM_BASIS_H

#include "mem/infinite_int.h"

typedef struct lam_bump {
    double centre, width;
} lam_bump;

/* Bump j of its->ltm_basis. */
lam_bump lam_basis_bump(const lam_infinite *its, int j);
/* Its value at t. */
double lam_bump_at(lam_bump bump, double t);

/* Where the old signal is sampled for the next one: place m of its->ltm_samples, before the contraction. */
double lam_basis_sample(const lam_infinite *its, int m);

/* G of the first block of rows, [block][ltm_basis]: they are at (i + 1/2) / block. */
lam_status lam_basis_first(double *G, const lam_infinite *its, int block);
/* G of an update, [ltm_samples + block][ltm_basis]: samples of the old signal contracted to (0, tau], then
 * the new block on (tau, 1]. */
lam_status lam_basis_update(double *G, const lam_infinite *its, int block);

#endif
