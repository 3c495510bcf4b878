/* analysis_claims.h -- the paper's observations while they are judged, row by row of a table. */
#ifndef LAM_REPORT_ANALYSIS_CLAIMS_H
#define LAM_REPORT_ANALYSIS_CLAIMS_H

#include "report/analysis_int.h"

enum { LAM_CLAIM_COLS = 3, LAM_CLAIM_TEXT = sizeof(lam_finding), LAM_CLAIMS_MOST = 16 };

typedef struct lam_claims {
    const lam_analysis *a;
    const lam_analysed *lamemo, *xl; /* or NULL */
    int n, left_out;                 /* rows; observations that could not be measured */
    lam_claim kinds[LAM_CLAIMS_MOST];
    lam_cell cells[LAM_CLAIMS_MOST][LAM_CLAIM_COLS];
    char measured[LAM_CLAIMS_MOST][LAM_CLAIM_TEXT];
} lam_claims;

/* Begins a row; one that was begun before and not judged is left out. */
void lam_claim_begin(lam_claims *c, lam_claim kind, const char *text);
/* Ends it: 1 seen, -1 not, 0 too close to tell; and the numbers. */
__attribute__((format(printf, 3, 4))) void lam_claim_judge(lam_claims *c, int side,
                                                           const char *format, ...);
/* A number without its sign, and the word that stands for that. */
lam_shown lam_claim_amount(lam_estimate e);
const char *lam_claim_sign(const lam_estimate *e, const char *positive, const char *negative);

void lam_claims_sweep(lam_claims *c); /* Figure 5 */

#endif
