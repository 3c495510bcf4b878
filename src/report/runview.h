/* runview.h -- several runs side by side: their names, what they logged, how they were configured. */
#ifndef LAM_REPORT_RUNVIEW_H
#define LAM_REPORT_RUNVIEW_H

#include "draw/table.h"
#include "measure/history.h"

#include <jansson.h>

typedef struct lam_runview {
    char *path, *name; /* as given; short and different from all others */
    lam_history history;
    json_t *config; /* flat: name -> text, of the model and its training; may be empty */
} lam_runview;

typedef struct lam_runs {
    int n;
    lam_runview *list;
} lam_runs;

typedef enum lam_run_axis { LAM_OVER_STEPS, LAM_OVER_TIME } lam_run_axis;

/* Opens run folders, metrics files themselves, or, for a folder without metrics.jsonl, the runs directly in it.  A run that cannot be
 * read is left out with a warning; LAM_ERR_IO when none is left. */
lam_status lam_runs_open(lam_runs *out, int n, char *const *paths);
void lam_runs_free(lam_runs *runs);

/* Has the run come to its end, as far as its records tell: tested, ended without a test, or diverged? */
int lam_run_ended(const lam_runview *run);

/* The measure all runs have logged: bpc, ppl, or the loss in nats. */
typedef enum lam_unit { LAM_UNIT_BPC, LAM_UNIT_PPL, LAM_UNIT_NATS } lam_unit;
lam_unit lam_runs_unit(const lam_runs *runs);
const char *lam_unit_name(lam_unit unit); /* "bpc", "ppl", "nats" */
double lam_unit_of(lam_unit unit, double nats);

/* Do bits per byte say more than the loss does?  Not where tokens are bytes. */
bool lam_runs_bits(const lam_runs *runs);

/* Tables; lam_runs_table_free() frees what they own, the rest is borrowed from the runs. */
lam_status lam_runs_summary(lam_table *out, const lam_runs *runs);
/* The validation loss of every run after at[0..n) steps or seconds, between two evaluations on the line that joins
 * them; a run that was not evaluated before and after has an empty cell. */
lam_status lam_runs_at(lam_table *out, const lam_runs *runs, lam_run_axis over, const int *at,
                       int n);
/* One row for each setting in which runs differ; no rows if there are none. */
lam_status lam_runs_differences(lam_table *out, const lam_runs *runs);
/* One row for each setting with which a resumed run went on otherwise; no rows if there are none. */
lam_status lam_runs_changes(lam_table *out, const lam_runs *runs);
/* What a reader of the numbers must know: that a run's best loss is above that of a uniform guess.  "" if nothing. */
char *lam_run_warning(char *out, size_t size, const lam_runview *run, lam_unit unit);
/* Is any setting of any run known? */
bool lam_runs_configured(const lam_runs *runs);
void lam_runs_table_free(lam_table *table);

#endif
