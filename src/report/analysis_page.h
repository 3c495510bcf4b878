/* analysis_page.h -- an analysis (measure/analysis.h) becomes a page: DIR/report.html and the files of its figures and
 * tables.  Nothing is written before that, so an interrupted analysis leaves nothing behind. */
#ifndef LAM_REPORT_ANALYSIS_PAGE_H
#define LAM_REPORT_ANALYSIS_PAGE_H

#include "draw/table.h"
#include "measure/analysis.h"

/* Writes everything into `dir`, which is made; `command`, which the page shows, may be NULL. */
lam_status lam_analysis_write(const lam_analysis *a, const char *dir, const char *command);
/* The table of the models, as the page begins with it. */
lam_status lam_analysis_table(lam_text *out, const lam_analysis *a,
                              void (*print)(lam_text *out, const lam_table *t));
/* May it be written there?  Changes nothing; to be asked before any work. */
lam_status lam_analysis_may_write(const char *dir);

#endif
