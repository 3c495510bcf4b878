/* probe.h -- looking at a model while it reads: where its attention goes, what its memory keeps, where it errs.
 *
 * One evaluation (train/evaluate.h) with full memory; after every segment the numbers below are added up, so the
 * memory taken does not depend on how much is read.  Averages are over streams, tokens and segments:
 *
 *   alpha    Eq. 11, per layer, head and memory slot, 0 the oldest             (Figure 6)
 *   peak     the largest attention weight among `interval` neighbouring tokens on the left, per layer, head and
 *            interval; interval 0 begins with the token before the predicted one (Figure 1)
 *   entropy  of the attention weights, in nats, per layer and head
 *   share    of the attention weight that falls on compressed rows, and on all remembered rows
 *   loss     by the position of a token in its segment, in nats
 *
 * and again over heads, in stretches of the text (measure/parts.h), which say how sure they are.
 *
 * Attention is looked at for the first `tokens` tokens only, the rest throughout.  What a mechanism does not have
 * is NULL (alpha) or zero (share). */
#ifndef LAM_MEASURE_PROBE_H
#define LAM_MEASURE_PROBE_H

#include "measure/parts.h"
#include "train/evaluate.h"

typedef struct lam_probe_options {
    int batch, tgt_len, mem_len;
    int64_t segments; /* of one column each, at least: */
    int64_t tokens;   /* enough are read to look at the attention of so many tokens */
    int interval;
    int64_t from; /* tokens of each stream that are not looked at, if more than fill the memory */
} lam_probe_options;

typedef struct lam_probe {
    int L, H, N, M, bins, interval;
    int front;               /* of the M remembered rows that are compressed ones */
    int64_t segments;        /* of one column */
    int64_t tokens;          /* whose attention was looked at */
    double *alpha;           /* [L][H][M]; NULL: there is no such thing */
    int kept;                /* lowest layers that refresh nothing: their alpha is 1 */
    double *peak;            /* [L][H][bins]; NaN where no token sees so far */
    double *entropy;         /* [L][H] */
    double *share[LAM_CUTS]; /* [L][H] */
    double *loss;            /* [N] */
    lam_parted peaks;        /* [L][bins] over heads, as peak */
    lam_parted alphas;       /* [L][M] over heads; empty: there is no such thing */
    lam_parted shares;       /* [L] over heads: of all remembered rows */
    lam_parted losses;       /* [N] */
    lam_parted nll;          /* [1]: the loss of all tokens */
    lam_eval_result result;
} lam_probe;

/* Segments that fill the memory of such a model before anything counts. */
int64_t lam_probe_warm(const lam_config *cfg, int tgt_len, int mem_len);

/* Multiply-adds it takes, to compare with other work; as if the text were long enough. */
double lam_probe_macs(const lam_config *cfg, const lam_probe_options *options);

/* Is `text` long enough?  One too short to fill the memory is LAM_ERR_ARG. */
lam_status lam_probe_check(const lam_config *cfg, const lam_tokens *text,
                           const lam_probe_options *options);
/* Reads `text`, after lam_probe_check().  One with fewer segments than asked for is read
 * to its end.  watch may be NULL.  On failure *out is empty. */
lam_status lam_probe_run(lam_probe *out, lam_model *model, const lam_tokens *text,
                         const lam_probe_options *options, lam_eval_watch *watch, void *user);
void lam_probe_free(lam_probe *p); /* fine on a zeroed one */

#endif
