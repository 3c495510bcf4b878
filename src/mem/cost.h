/* cost.h -- the multiply-accumulates of a memory, in addition to those of every model (model/macs.h).
 *
 * All are per predicted token of a segment with full memory, unless they say otherwise.  The paper's count and ours
 * differ: the paper's treats all layers alike and is not explained; ours counts what this program multiplies. */
#ifndef LAM_MEM_COST_H
#define LAM_MEM_COST_H

#include "nn/config.h"

typedef struct lam_mem_cost {
    /* The paper's count (Table 1): */
    double memory; /* on memory rows: their projections, and the FFN where they pass through it */
    double look_ahead; /* attention of memory rows */
    double external;   /* on a second memory beyond the newest M rows, ... */
    int external_rows; /* ... of so many rows */

    /* Ours: */
    double unused;    /* the part of `memory` that is not computed because nothing reads it */
    double attention; /* beyond that of current rows to the newest M and to each other */
    double forward;   /* other GEMMs: in a forward pass, */
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

/* The cost of the newest M rows as constant keys and values, as in Transformer-XL and other memories. */
static inline void lam_cost_keys(lam_mem_cost *c, const lam_config *cfg)
{
    const double D = cfg->d_model, HK = lam_cost_heads(cfg), L = cfg->n_layer, M = cfg->mem_len;
    c->memory = L * 2.0 * D * HK * M / cfg->tgt_len;
    c->constant = M * 2.0 * D * HK * L;
}

#endif
