/* run_page.h -- the page of `lamemo report`: curves, summary, differences. */
#ifndef LAM_REPORT_RUN_PAGE_H
#define LAM_REPORT_RUN_PAGE_H

#include "report/run_figures.h"

typedef struct lam_run_page {
    const char *title;   /* NULL: the names of the runs */
    const char *out;     /* FILE.html: the page alone; else a folder: report.html and figures/ */
    const char *command; /* that makes it, for the page; or NULL */
    int refresh;         /* seconds; 0: the page stays as it is */
    lam_run_figures_options figures;
    int n_at;      /* rows of a table of the validation loss on the way: ... */
    const int *at; /* ... steps, or seconds, as figures.over says */
} lam_run_page;

/* May it be written to `out`?  Changes nothing; to be asked before any work. */
lam_status lam_run_page_may_save(const char *out);
lam_status lam_run_page_save(const lam_runs *runs, const lam_run_page *how);
/* Where the page is: `out` itself or the file in it. */
lam_status lam_run_page_path(char *path, size_t size, const char *out);

#endif
