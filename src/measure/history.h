/* history.h -- what a run has logged so far: its metrics.jsonl as curves.
 *
 * The file may be growing, empty, cut, packed (gzip, xz, zstd) or written by somebody else: every number
 * with a name becomes a point of the curve of that name; lines that are not objects with a step are counted,
 * and an unfinished last line is left out.  A log of more than 6 million numbers, 4 million records, 100,000 lines
 * that are none, or 512 MiB is refused; a line of more than 1 MiB is none.  A step that comes again replaces what was logged from there on, as
 * a resumed run does. */
#ifndef LAM_MEASURE_HISTORY_H
#define LAM_MEASURE_HISTORY_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { LAM_CURVES_MAX = 64, LAM_CURVE_NAME = 48, LAM_NOTES_MAX = 1000 };

typedef struct lam_curve {
    char name[LAM_CURVE_NAME];
    int n, room;
    double *step, *elapsed, *value; /* [n]; seconds and values may be NaN */
} lam_curve;

/* What the model wrote at a step; where a resumed run went on with another setting. */
typedef struct lam_sample {
    double step;
    char *prompt, *text; /* owned */
} lam_sample;

typedef struct lam_change {
    double step;
    char *name, *before, *after; /* owned */
} lam_change;

typedef struct lam_history {
    int n;
    lam_curve curves[LAM_CURVES_MAX];
    int n_samples, n_changes; /* the newest LAM_NOTES_MAX of each */
    lam_sample *samples;
    lam_change *changes;
    int lines;        /* all of them, for messages */
    int records, bad; /* lines that were taken, lines that were not */
    char why[256];    /* of the first bad line: "metrics.jsonl, line 3: ..." */
} lam_history;        /* begins as zeros */

/* Adds the lines of a text; `label` names it in messages. */
lam_status lam_history_parse(lam_history *h, const char *label, const char *text, size_t size);
/* Reads a whole file, which `path` names itself; it may be packed, or a pipe. */
lam_status lam_history_read(lam_history *out, const char *path);
/* Reads the metrics.jsonl of a run folder, a regular file. */
lam_status lam_history_of_run(lam_history *out, const char *dir);
void lam_history_free(lam_history *h); /* and begins anew */

/* The curve called `name`, or NULL. */
const lam_curve *lam_history_find(const lam_history *h, const char *name);
/* Its last value, or NaN; NULL is fine. */
double lam_curve_last(const lam_curve *c);
double lam_curve_median(const lam_curve *c); /* of its finite values, or NaN; NULL is fine */
/* Index of its least finite value, or -1. */
int lam_curve_least(const lam_curve *c);

/* How a run went, as its records tell. */
/* Losses in nats; NaN: there is none. */
typedef struct lam_outcome {
    int64_t step;                   /* of the newest record */
    int diverged;                   /* a loss or gradient was not finite after it */
    double valid, test;             /* lowest validation loss; test loss of that model */
    double valid_error, test_error; /* standard errors of these two */
    double test_bits;               /* the test loss per byte of text, in bits */
    double tokens_per_second;       /* median of what was logged: a pause counts for little */
    double seconds;                 /* of all calls */
} lam_outcome;

/* An outcome without a single record. */
lam_outcome lam_outcome_none(void);

/* Reads DIR/metrics.jsonl; where it is missing, the outcome is that without records.  A line that is
 * not a JSON object is LAM_ERR_FORMAT; an unfinished last line is left out. */
lam_status lam_outcome_read(lam_outcome *out, const char *dir);

#endif
