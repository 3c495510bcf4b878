/* sweep.h -- the loss of one text with memories of several lengths, at a fixed segment (the paper's Figure 5).
 *
 * Every length of every model predicts the same tokens: the first ones of each column only fill memories, as many as
 * the longest memory of all models needs.  What a LaMemo costs: its memory rows climb all layers in every
 * segment, (N + M) / N rows for one predicted token. */
#ifndef LAM_MEASURE_SWEEP_H
#define LAM_MEASURE_SWEEP_H

#include "measure/parts.h"
#include "train/evaluate.h"

enum { LAM_SWEEP = 64 };

typedef struct lam_sweep_options {
    int batch; /* columns; 0: chosen */
    int tgt_len;
    int n; /* memory lengths; none: no sweep */
    int lengths[LAM_SWEEP];
    int64_t tokens; /* that each of them predicts; 0: the whole text; negative: chosen, by */
    double work;    /* the multiply-adds of all models and lengths together */
    int64_t skip; /* segments that only fill memories: the most any model wants (lam_sweep_warm) */
} lam_sweep_options;

typedef struct lam_sweep_point {
    int mem_len;
    lam_parted nll; /* [1], by stretches of the text; owned */
    lam_eval_result result;
} lam_sweep_point;

/* Segments that fill the longest memory of the sweep. */
int64_t lam_sweep_warm(const lam_sweep_options *o, const lam_config *cfg);
/* Multiply-adds of one segment of one column, all lengths together; 0 for a model without memory. */
double lam_sweep_macs(const lam_sweep_options *o, const lam_config *cfg);
/* The same of one length. */
double lam_sweep_length_macs(const lam_sweep_options *o, const lam_config *cfg, int mem_len);
/* Chooses batch and tokens where they are not given, from the multiply-adds of one segment of one column of all
 * models.  Many short columns say more than few long ones, but each has to fill its memory first: 8 to 64 columns of 4 to
 * 16 segments that count. */
void lam_sweep_resolve(lam_sweep_options *o, double macs, const lam_tokens *text);
/* As many full segments of one column as reading `text` is worth: what counts, and the warm-up for half. */
double lam_sweep_weight(const lam_sweep_options *o, const lam_tokens *text);

/* Measures point->mem_len.  LAM_ERR_UNSUPPORTED or LAM_ERR_ARG: the model cannot have it. */
lam_status lam_sweep_run(lam_sweep_point *point, lam_model *model, const lam_tokens *text,
                         const lam_sweep_options *o, lam_eval_watch *watch, void *user);

#endif
