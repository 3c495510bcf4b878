/* head.h -- the output softmax, plain or adaptive, tied or not, with its loss (Eq. 4) and gradients.
 *
 * Logits are never stored for more than a chunk of rows: for each chunk the forward GEMM, the loss and (when training)
 * both gradient GEMMs follow each other, so memory does not grow with rows x vocabulary.  With n cutoffs the head has
 * the first c_0 tokens and n cluster rows; cluster i is the i-th column from the end, as in Transformer-XL's
 * checkpoints. */
#ifndef LAM_NN_HEAD_H
#define LAM_NN_HEAD_H

#include "core/arena.h"
#include "nn/config.h"
#include "nn/dims.h"
#include "nn/embed.h"
#include "nn/params.h"

typedef struct lam_head_params {
    int cluster_weight, cluster_bias; /* -1 without cutoffs */
    int weight[LAM_MAX_CUTOFFS + 1];  /* by table; the embedding's own when tied */
    int bias[LAM_MAX_CUTOFFS + 1];    /* by table */
    int proj[LAM_MAX_CUTOFFS + 1];    /* by cluster; the embedding's own when tied; -1: none */
} lam_head_params;

typedef struct lam_head {
    lam_dev *dev;
    const lam_config *cfg;
    const lam_params *params;
    const lam_head_params *ids;
    lam_dims dims;
    int rows;     /* capacity */
    int chunk;    /* rows of logits at a time */
    void *logits; /* ACT [chunk][widest part] */
    void *part;   /* ACT [rows][D]: the rows of a tail */
    void *narrow; /* ACT [rows][d_embed]: projected rows */
    void *dpart, *dnarrow;
    void *target, *index; /* INT [rows] each: targets and the list of rows, of one part at a time */
    int32_t *host;        /* [2 * rows], owned by the stack */
} lam_head;

void lam_head_declare(lam_head_params *ids, const lam_embed_params *embed, lam_params *p,
                      const lam_config *cfg, const lam_dev *dev);
void lam_head_layout(lam_head *h, lam_arena *arena, int train);

/* nll [rows] WIDE = loss of each row of z [rows][D] against targets (host memory, in [0, n_token)).
 * grad_scale != 0: also dz [rows][D] = grad_scale * d nll / dz, and the parameters' gradients. */
void lam_head_loss(const lam_head *h, void *nll, const void *z, const int32_t *targets, int rows,
                   double grad_scale, void *dz);

/* The parts of the softmax: 0 is the head (first c_0 tokens, then the clusters), i >= 1 is tail i.
 * Writes the logits of part i for `rows` <= chunk rows of z into h->logits; returns their number
 * per row.  For inference. */
int lam_head_logits(const lam_head *h, int part, const void *z, int rows);

#endif
