/* comparison.h -- several models trained alike: what was asked, how far it is, and the table.
 *
 * A comparison lives in a folder: compare.json holds all of it, so that a stopped one can go on; compare.txt,
 * compare.md and compare.csv hold its table (the paper's Tables 1 and 3: parameters, memory, external
 * memory, multiply-accumulates, speed, dev and test).  Every model is trained once for each seed in the run
 * folder LABEL-sSEED.  Who trains them is not our business. */
#ifndef LAM_REPORT_COMPARISON_H
#define LAM_REPORT_COMPARISON_H

#include "data/corpus.h"
#include "draw/table.h"
#include "measure/history.h"
#include "train/state.h"

#include <jansson.h>

enum { LAM_COMPARE_MAX = 64, LAM_LABEL_MAX = 48, LAM_DEFINITION_MAX = 512 };

typedef enum lam_run_end {
    LAM_RUN_WAITING, /* not yet, or stopped on the way */
    LAM_RUN_DONE,
    LAM_RUN_DIVERGED, /* a number was not finite */
    LAM_RUN_FAILED    /* anything else; is tried again */
} lam_run_end;

const char *lam_run_end_name(lam_run_end end); /* "waiting", "done", "diverged", "failed" */

typedef struct lam_compared_run {
    lam_run_end end;
    lam_outcome outcome;
} lam_compared_run;

typedef struct lam_compared_model {
    char label[LAM_LABEL_MAX];
    char definition[LAM_DEFINITION_MAX]; /* MEMORY[:OPTION=VALUE]... */
    lam_config cfg;
    size_t parameters;
    lam_compared_run runs[LAM_COMPARE_MAX]; /* by seed */
} lam_compared_model;

typedef struct lam_comparison {
    char corpus_name[128];
    lam_metric metric;
    lam_corpus_mark corpus;
    json_t *options; /* owned: an object, text by option name; true for a flag */
    int n_seeds, seeds[LAM_COMPARE_MAX];
    int n_models;
    lam_compared_model models[LAM_COMPARE_MAX];
} lam_comparison;

/* An empty comparison: no options, seeds or models. */
lam_status lam_comparison_create(lam_comparison **out);
void lam_comparison_free(lam_comparison *c); /* NULL is fine */

/* Adds what is not there yet.  LAM_ERR_ARG: there is no room, a label cannot name a folder, or it has
 * another definition already. */
lam_status lam_comparison_add_model(lam_comparison *c, const char *label, const char *definition);
lam_status lam_comparison_add_seed(lam_comparison *c, int seed);

/* The name of a run's folder inside the comparison's. */
void lam_comparison_folder(char name[LAM_LABEL_MAX + 16], const lam_comparison *c, int model,
                           int seed);
/* Runs that ended well or diverged: those are not repeated. */
int lam_comparison_settled(const lam_comparison *c);

/* DIR/compare.json into an empty comparison, without cfg and parameters of the models. */
lam_status lam_comparison_load(lam_comparison *c, const char *dir);
/* All four files. */
lam_status lam_comparison_save(const lam_comparison *c, const char *dir);
/* The text of compare.json; *text is owned by the caller (free). */
lam_status lam_comparison_json(char **text, const lam_comparison *c);

/* ---- the table (comparison_table.c) ---- */

/* Mean and standard deviation (NaN below two) over the runs that are done; of a single one the standard error of its
 * evaluation. */
typedef struct lam_spread {
    int n;
    double mean, deviation, error;
} lam_spread;

typedef enum lam_compared_value {
    LAM_OF_DEV,
    LAM_OF_TEST,
    LAM_OF_TEST_BITS,
    LAM_OF_SPEED
} lam_compared_value;
lam_spread lam_comparison_spread(const lam_comparison *c, int model, lam_compared_value what);

/* One row a model, for people; one row a training, for programs (whose numbers to average is their choice). */
lam_status lam_comparison_models(lam_text *out, const lam_comparison *c,
                                 void (*print)(lam_text *out, const lam_table *t));
lam_status lam_comparison_trainings(lam_text *out, const lam_comparison *c,
                                    void (*print)(lam_text *out, const lam_table *t));

#endif
