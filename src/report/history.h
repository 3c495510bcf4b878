/* history.h -- what a run has logged so far: its metrics.jsonl as curves.
 *
 * The file may be growing, empty, cut, packed (gzip, xz, zstd) or written by somebody else: every number
 * with a name becomes a point of the curve of that name; lines that are not objects with a step are counted,
 * and an unfinished last line is left out.  A log of more than 6 million numbers, 4 million records, 100,000 lines
 * that are none, or 512 MiB is refused; a line of more than 1 MiB is none.  A step that comes again replaces what was logged from there on, as
 * a resumed run does. */
#ifndef LAM_REPORT_HISTORY_H
#define LAM_REPORT_HISTORY_H

#include "core/status.h"

#include <stddef.h>

enum { LAM_CURVES_MAX = 64, LAM_CURVE_NAME = 48 };

typedef struct lam_curve {
    char name[LAM_CURVE_NAME];
    int n, room;
    double *step, *elapsed, *value; /* [n]; seconds and values may be NaN */
} lam_curve;

typedef struct lam_history {
    int n;
    lam_curve curves[LAM_CURVES_MAX];
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

#endif
