/* macs.h -- counts the multiply-accumulates of a prediction and of a training step.
 *
 * One MAC is two floating-point operations. lam_macs_token follows the paper's "#FLOPS" column of Table 1 (which counts
 * MACs): per predicted token, averaged over a segment with the memory full, every layer alike, the projection of
 * positions left out (it is shared by the batch). lam_macs_step counts what this program actually multiplies in one
 * training step, to compare its throughput with the hardware's. */
#ifndef LAM_MODEL_MACS_H
#define LAM_MODEL_MACS_H

#include "nn/config.h"

typedef struct lam_macs {
    double project;   /* q, k, v and o of the token itself */
    double ffn;       /* feed-forward of the token itself */
    double attention; /* scores by content and position, and the weighted sum, of the token */
    double
        memory; /* work on memory rows: their projections, and the FFN where they pass through it */
    double look_ahead; /* attention of memory rows */
    double softmax;    /* output layer; adaptive: the head alone */
    double external;   /* compressed or continuous memories */
    double total;
} lam_macs;

/* MACs per predicted token of a model of this shape with the memory called `memory`, at the config's tgt_len and
 * mem_len, whatever memory the config itself has. */
lam_macs lam_macs_token(const lam_config *cfg, const char *memory);

/* Rows of external memory as Table 1 counts them: compressed rows, or basis functions; 0: the memory has none. */
int lam_macs_external_rows(const lam_config *cfg);

/* MACs of the GEMMs and attentions of one training step, forward and backward, of B streams with
 * full memory.  Adaptive softmax: tails are left out. */
double lam_macs_step(const lam_config *cfg, int B);
/* The same for one forward segment without gradients. */
double lam_macs_segment(const lam_config *cfg, int B);

#endif
