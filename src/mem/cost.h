/* cost.h -- the multiply-accumulates of a memory, beside those that every model has (model/macs.h).
 *
 * All are per predicted token of a segment with full memory, unless they say otherwise.  The paper's count and ours
 * differ: it takes every layer alike and does not say how it was made; ours is what this program multiplies. */
#ifndef LAM_MEM_COST_H
#define LAM_MEM_COST_H

#include "nn/config.h"

typedef struct lam_mem_cost {
    /* The paper's count (Table 1): */
    double memory;     /* on remembered rows: their projections, and the FFN where they climb */
    double look_ahead; /* attention of memory rows */
    double external;   /* on a second memory beyond the newest M rows, ... */
    int external_rows; /* ... of so many rows */

    /* Ours: */
    double unused;    /* of `memory`, what is not computed because nothing reads it */
    double attention; /* beyond that of current rows to the newest M and to each other */
    double forward;   /* other products: in a forward pass, */
    double step;      /* and in a training step, backward included */
    double
        constant; /* per stream and segment: input gradients of remembered rows, which have none */
    double positions; /* encoded distances beyond the newest M and the segment */
} lam_mem_cost;

/* n_head * d_head. */
static inline double lam_cost_heads(const lam_config *cfg)
{
    return (double)cfg->n_head * cfg->d_head;
}

/* The newest M rows as constant keys and values: what Transformer-XL does, and others besides. */
static inline void lam_cost_keys(lam_mem_cost *c, const lam_config *cfg)
{
    const double D = cfg->d_model, HK = lam_cost_heads(cfg), L = cfg->n_layer, M = cfg->mem_len;
    c->memory = L * 2.0 * D * HK * M / cfg->tgt_len;
    c->constant = M * 2.0 * D * HK * L;
}

#endif
