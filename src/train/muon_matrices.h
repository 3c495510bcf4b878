/* muon_matrices.h -- the matrices that Muon updates: their shapes, their batches, and the rank that computes each.
 *
 * Matrices of one shape are orthogonalised together as batched GEMMs: a single one would leave a GPU mostly idle.
 *
 * Where ranks share a run, each orthogonalises its part of the matrices, divided as evenly as whole matrices can be,
 * the dearest first.  There are as many parts as leaves, so that the batches, and with them the bits, do not depend on
 * the number of ranks. */
#ifndef LAM_TRAIN_MUON_MATRICES_H
#define LAM_TRAIN_MUON_MATRICES_H

#include "nn/params.h"

typedef struct lam_muon_matrix {
    int param;      /* of this parameter; q, k and v are three matrices of one */
    int rows, cols; /* as stored */
    int side;       /* the longer one, without padding */
    double even;    /* length of the rows of an orthogonal step, root mean square */
    int part;       /* which part of the work it is */
    size_t offset;  /* in the flat vectors */
} lam_muon_matrix;

typedef struct lam_muon_matrices {
    lam_muon_matrix *list; /* [n], owned: by part, then by shape, then by place */
    int n, parts, ranks;   /* parts: 0 or 1, undivided */
} lam_muon_matrices;

/* Those of `p`, divided into `parts` among `ranks`. */
lam_status lam_muon_matrices_create(lam_muon_matrices *out, const lam_params *p, int parts,
                                    int ranks);
void lam_muon_matrices_free(lam_muon_matrices *m);

size_t lam_muon_size(const lam_muon_matrix *a);
int lam_muon_shorter(const lam_muon_matrix *a);
/* The size of the batch that starts at number `from`: matrices of one part and shape, with at most `most` elements
 * unless a single matrix has more. */
int lam_muon_batch(const lam_muon_matrices *m, int from, size_t most);
/* The rank that orthogonalises it. */
int lam_muon_owner(const lam_muon_matrices *m, const lam_muon_matrix *a);

#endif
