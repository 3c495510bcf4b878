/* analysis_int.h -- the sections of an analysis, one file each. */
#ifndef LAM_REPORT_ANALYSIS_INT_H
#define LAM_REPORT_ANALYSIS_INT_H

#include "draw/page.h"
#include "measure/analysis.h"
#include "train/run.h"

#include <math.h>

/* How every standard error of the page is made (measure/parts.h), in a few words. */
#define LAM_ERROR_NAME "jackknife over separate parts of the text"

/* Each appends what belongs to it; from the loss on, under a heading of its own. */
lam_status lam_analysis_results(const lam_analysis *a, lam_page *page);   /* the models */
lam_status lam_analysis_claims(const lam_analysis *a, lam_page *page);    /* what the paper saw */
lam_status lam_analysis_loss(const lam_analysis *a, lam_page *page);      /* by position */
lam_status lam_analysis_attention(const lam_analysis *a, lam_page *page); /* Figure 1 and more */
lam_status lam_analysis_alpha(const lam_analysis *a, lam_page *page);     /* Figure 6 */
lam_status lam_analysis_sweep(const lam_analysis *a, lam_page *page);     /* Figure 5 */
lam_status lam_analysis_passage(const lam_analysis *a, lam_page *page);   /* tokens in colour */
lam_status lam_analysis_stories(const lam_analysis *a, lam_page *page);   /* the case study */
lam_status lam_analysis_paper(const lam_analysis *a, lam_page *page);     /* Table 1, Appendix B */

/* Makes figures one after the other, each of curves that are freed behind it. */
typedef lam_status lam_figure_maker(const lam_analysis *a, lam_page *page, lam_curves *curves);
lam_status lam_analysis_figures(const lam_analysis *a, lam_page *page,
                                lam_figure_maker *const *makers, int n);

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

#endif
