/* embed.h -- token ids to input rows: plain and adaptive input embeddings.
 *
 * x = sqrt(D) E[id], through a projection where the cluster's width is not D (Baevski and Auli's adaptive
 * input; clusters as in the softmax).  Dropout comes after, in the stack. */
#ifndef LAM_NN_EMBED_H
#define LAM_NN_EMBED_H

#include "core/arena.h"
#include "nn/config.h"
#include "nn/dims.h"
#include "nn/params.h"

/* Parameters by cluster; with div_val 1 there is one table for all clusters.  -1: has none. */
typedef struct lam_embed_params {
    int tables; /* 1, or n_cutoffs + 1 */
    int table[LAM_MAX_CUTOFFS + 1];
    int proj[LAM_MAX_CUTOFFS + 1];
} lam_embed_params;

typedef struct lam_embedding {
    lam_dev *dev;
    const lam_config *cfg;
    const lam_params *params;
    const lam_embed_params *ids;
    lam_dims dims;
    int rows;      /* capacity */
    void *narrow;  /* ACT [rows][widest cluster]: looked-up rows before the projection */
    void *dnarrow; /* same for gradients */
} lam_embedding;

void lam_embed_declare(lam_embed_params *ids, lam_params *p, const lam_config *cfg,
                       const lam_dev *dev);
void lam_embed_layout(lam_embedding *e, lam_arena *arena, int train);

/* out [rows][D] = embedding of tokens (INT, on the device). */
void lam_embed_rows(const lam_embedding *e, void *out, const void *tokens, int rows);
/* Accumulates the gradients of the tables (and projections) from dout. */
void lam_embed_rows_bwd(const lam_embedding *e, const void *dout, const void *tokens, int rows);

/* The stored rows of a table of `count` ids: rounded up like a width, so that GEMMs with it are fast; clusters of a
 * softmax are not rounded, since they are adjacent.  The additional rows stay zero. */
int lam_embed_stored(const lam_config *cfg, const lam_dev *dev, int count);
/* Ids and width of table t: with one table it is the whole vocabulary. */
lam_cluster lam_embed_table(const lam_config *cfg, int t);

#endif
