/* analysis_int.h -- the sections of an analysis, one file each. */
#ifndef LAM_REPORT_ANALYSIS_INT_H
#define LAM_REPORT_ANALYSIS_INT_H

#include "report/analysis.h"
#include "report/curves.h"
#include "report/page.h"
#include "train/run.h"

#include <math.h>

/* How every standard error of the page is made (report/parts.h), in a few words. */
#define LAM_ERROR_NAME "jackknife over separate stretches of the text"

/* Each appends what belongs to it; from the loss on, under a heading of its own. */
lam_status lam_analysis_results(const lam_analysis *a, lam_page *page);   /* the models */
lam_status lam_analysis_claims(const lam_analysis *a, lam_page *page);    /* what the paper saw */
lam_status lam_analysis_loss(const lam_analysis *a, lam_page *page);      /* by position */
lam_status lam_analysis_attention(const lam_analysis *a, lam_page *page); /* Figure 1 and more */
lam_status lam_analysis_alpha(const lam_analysis *a, lam_page *page);     /* Figure 6 */
lam_status lam_analysis_sweep(const lam_analysis *a, lam_page *page);     /* Figure 5 */
lam_status lam_analysis_passage(const lam_analysis *a, lam_page *page);   /* tokens in colour */
lam_status lam_analysis_stories(const lam_analysis *a, lam_page *page);   /* the case study */
lam_status lam_analysis_cost(const lam_analysis *a, lam_page *page);      /* Table 1 */
lam_status lam_analysis_encoding(const lam_analysis *a, lam_page *page);  /* Appendix B */

/* One piece of the work while it is done. */
typedef struct lam_watcher {
    lam_analysis *a;
    lam_analysis_watch *watch; /* may be NULL */
    void *user;
    char what[160];
    double macs; /* of all, this piece's */
    int64_t skip, row,
        done; /* of text that is read: rows of columns that only fill memories, tokens of a
                              * row, rows done */
} lam_watcher;

/* Tells how much of the piece is done; non-zero: stop. */
int lam_watcher_tell(const lam_watcher *w, double share);

/* Lets a model continue the prompt. */
lam_status lam_analysis_tell(lam_analysis *a, const lam_engine *engine, lam_analysed *m,
                             lam_watcher *w);

/* The paper's observations, by what is measured; the first LaMemo (or a given one) and the first Transformer-XL are
 * compared. */
typedef enum lam_claim {
    LAM_CLAIM_LOSS,
    LAM_CLAIM_FAR,
    LAM_CLAIM_SHARE,
    LAM_CLAIM_BOTTOM,
    LAM_CLAIM_DEPTH,
    LAM_CLAIM_OLDEST,
    LAM_CLAIM_LENGTHS,
    LAM_CLAIM_GROWTH,
    LAM_CLAIM_GAIN,
    LAM_CLAIM_ENCODING
} lam_claim;

/* The number behind one, as a sentence for the figure that shows it; empty where it was not measured. */
typedef struct lam_finding {
    char text[320];
} lam_finding;
lam_finding lam_analysis_finding(const lam_analysis *a, const lam_analysed *lamemo, lam_claim kind);

/* The layer of Figure 1, from 0 on. */
int lam_analysis_layer(const lam_analysis *a, const lam_analysed *m);
/* "last" where it is the last one of every model, else its number. */
void lam_analysis_layer_name(const lam_analysis *a, char *out, size_t size);

/* Means over heads. */
double lam_analysed_alpha(const lam_analysed *m, int layer, int slot);
double lam_analysed_peak(const lam_analysed *m, int layer, int interval);
/* The mean of x [L][H] over heads, and the smallest and largest of them. */
typedef struct lam_head_range {
    double mean, low, high;
} lam_head_range;
lam_head_range lam_analysed_heads(const lam_analysed *m, const double *x, int layer);

/* The point of a model's sweep at a memory length, or NULL. */
const lam_sweep_point *lam_analysed_point(const lam_analysed *m, int mem_len);

/* How far on the left of the predicted token the middle of an interval lies. */
static inline double lam_analysed_distance(const lam_analysed *m, int interval)
{
    return (interval + 0.5) * m->probe.interval + 0.5;
}

/* A loss, mean 0 of `nll`, in the corpus's unit; and how much lower the second of two is, which have read the same
 * text. */
lam_estimate lam_analysis_value(const lam_analysis *a, const lam_parted *nll);
lam_estimate lam_analysis_gap(const lam_analysis *a, const lam_parted *high, const lam_parted *low);
/* A standard error in a sentence: "0.012", or "an unknown amount" where too little was read. */
char *lam_error_shown(char *out, size_t size, double error);
const char *lam_analysis_unit(const lam_analysis *a); /* "bits per character", "perplexity" */
int lam_analysis_decimals(const lam_analysis *a);     /* of a loss in a table */

#endif
