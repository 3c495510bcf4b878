/* analysis_int.h -- the sections of an analysis, one file each. */
#ifndef LAM_REPORT_ANALYSIS_INT_H
#define LAM_REPORT_ANALYSIS_INT_H

#include "report/analysis.h"
#include "report/curves.h"
#include "report/page.h"

#include <math.h>

/* Each appends a heading and what belongs to it. */
lam_status lam_analysis_loss(const lam_analysis *a, lam_page *page);      /* results, by position */
lam_status lam_analysis_claims(const lam_analysis *a, lam_page *page);    /* what the paper saw */
lam_status lam_analysis_attention(const lam_analysis *a, lam_page *page); /* Figure 1 and more */
lam_status lam_analysis_alpha(const lam_analysis *a, lam_page *page);     /* Figure 6 */
lam_status lam_analysis_sweep(const lam_analysis *a, lam_page *page);     /* Figure 5 */
lam_status lam_analysis_passage(const lam_analysis *a, lam_page *page);   /* tokens in colour */
lam_status lam_analysis_stories(const lam_analysis *a, lam_page *page);   /* the case study */
lam_status lam_analysis_cost(const lam_analysis *a, lam_page *page);      /* Table 1 */
lam_status lam_analysis_encoding(const lam_analysis *a, lam_page *page);  /* Appendix B */

/* The layer of Figure 1, from 0 on. */
int lam_analysis_layer(const lam_analysis *a, const lam_analysed *m);
/* "last" where it is the last one of every model, else its number. */
void lam_analysis_layer_name(const lam_analysis *a, char *out, size_t size);

/* Means over heads. */
double lam_analysed_alpha(const lam_analysed *m, int layer, int slot);
double lam_analysed_peak(const lam_analysed *m, int layer, int interval);
/* The mean of x [L][H] over heads, and the smallest and largest of them. */
typedef struct lam_heads {
    double mean, low, high;
} lam_heads;
lam_heads lam_analysed_heads(const lam_analysed *m, const double *x, int layer);

/* How far on the left of the predicted token the middle of an interval lies. */
static inline double lam_analysed_distance(const lam_analysed *m, int interval)
{
    return (interval + 0.5) * m->probe.interval + 0.5;
}

/* A loss in the corpus's unit, and its error there. */
double lam_analysis_value(const lam_analysis *a, const lam_eval_result *r);
double lam_analysis_error(const lam_analysis *a, const lam_eval_result *r);
const char *lam_analysis_unit(const lam_analysis *a); /* "bits per character", "perplexity" */

#endif
