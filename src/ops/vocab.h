/* vocab.h -- what touches token ids: embedding rows, softmax cross-entropy, row lists. */
#ifndef LAM_OPS_VOCAB_H
#define LAM_OPS_VOCAB_H

#include "ops/types.h"

/* out[r] = scale * table[ids[r] - first] where first <= ids[r] < first + count, else a zero row.
 * Backward: dtable[ids[r] - first] += scale * dout[r], in the order of r. */
typedef struct lam_embed {
    int rows, first, count, width, ld; /* table and out rows are ld apart */
    double scale;
    const void *ids;         /* INT [rows] */
    const void *table;       /* table_class [count][ld] */
    lam_class table_class;   /* ACT, HALF or BYTE */
    const void *table_scale; /* WIDE [count]; BYTE only */
    void *out;               /* ACT [rows][ld] */
    const void *dout;        /* ACT [rows][ld] */
    void *dtable;            /* WIDE [count][ld], accumulated */
} lam_embed;

/* Softmax cross-entropy of each row of logits against its target column (Eq. 4, with its sign turned).
 *   nll[row] = log sum exp(logits) - logits[target], stored or (add) added, where row = index[r], or
 *   r without an index.  With grad_scale != 0 logits become grad_scale * (softmax - onehot).
 * A row with a negative target is not scored: nll[row] is 0, or with `add` what it was, and logits become 0. */
typedef struct lam_xent {
    int rows, cols, add;
    size_t ld;
    double grad_scale;
    void *logits;       /* ACT [rows][ld] */
    const void *target; /* INT [rows], each below cols */
    const void *index;  /* INT [rows], or NULL */
    void *nll;          /* WIDE */
} lam_xent;

/* Row lists: gather out[r] = in[index[r]]; scatter out[index[r]] += in[r].  Indices are distinct. */
typedef struct lam_pick {
    int rows, width;
    size_t ld_in, ld_out;
    const void *index; /* INT [rows] */
    const void *in;    /* ACT */
    void *out;         /* ACT */
} lam_pick;

#endif
