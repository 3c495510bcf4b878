/* runlog.h -- the logs of a run: metrics.jsonl, train.log and a TensorBoard event file.
 *
 * All three only grow.  A checkpoint records their lengths; a resumed run truncates them to these lengths and
 * continues, so that no step appears twice and a partly written line disappears. */
#ifndef LAM_TRAIN_RUNLOG_H
#define LAM_TRAIN_RUNLOG_H

#include "core/status.h"

#include <jansson.h>
#include <stdint.h>

/* The lengths of the files, and the name of the event file. */
typedef struct lam_log_marks {
    int64_t metrics, log, events;
    char events_name[256];
} lam_log_marks;

typedef struct lam_runlog lam_runlog;

/* The start of the first line of a train.log, by which lamemo recognises its own. */
#define LAM_RUNLOG_FIRST "model: memory "

/* Could a run have written this name into its checkpoint? */
int lam_runlog_events_name(const char *name);

/* Did lamemo write the existing log files?  LAM_ERR_IO names one that it did not write, or a link; *begun: there are
 * logs.  Changes nothing. */
lam_status lam_runlog_look(int *begun, const char *dir);
/* The same of the event files, of which a new run leaves none. */
lam_status lam_runlog_look_at_events(const char *dir);

/* Locks the run in folder `dir` for this process and changes nothing yet: train.log is opened and locked, so a second
 * process is refused. */
lam_status lam_runlog_open(lam_runlog **out, const char *dir);
/* Cuts the files at `marks`, or, where that is NULL, begins new ones.  Only then can anything be written.  Both refuse
 * files that are not ours. */
lam_status lam_runlog_begin(lam_runlog *r, const lam_log_marks *marks);
void lam_runlog_close(lam_runlog *r); /* NULL is fine */

/* The functions below ignore a NULL log: of several ranks only one writes. */

/* A line for people: train.log, and the log of the program (core/log.h, level info). */
lam_status lam_runlog_line(lam_runlog *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One object of metrics.jsonl, {"step": ..., NAME: value, ...}, and one event for each value that has a
 * TensorBoard tag.  A value that is not finite is null, and no event. */
typedef struct lam_scalar {
    const char *name; /* plain ASCII */
    double value;
    const char *tag; /* NULL: not for TensorBoard */
} lam_scalar;
lam_status lam_runlog_record(lam_runlog *r, int64_t step, const lam_scalar *scalars, int n);

/* One object {"step": ..., "prompt": ..., "sample": ...} of metrics.jsonl, and a line of train.log with its beginning.
 * Bytes that are no characters, and zeros, become U+FFFD. */
typedef struct lam_log_text {
    const char *bytes;
    size_t size;
} lam_log_text;
lam_status lam_runlog_sample(lam_runlog *r, int64_t step, lam_log_text prompt, lam_log_text sample);
/* Records changed settings of a resumed run: one object {"step": ..., "changed": {NAME: [before, after], ...}} and a
 * line, or nothing if the members of `before` and `after`, flat objects, are the same. */
lam_status lam_runlog_changes(lam_runlog *r, int64_t step, const json_t *before,
                              const json_t *after);

/* Flushes everything so far to disk and returns the lengths. */
lam_status lam_runlog_sync(lam_runlog *r, lam_log_marks *marks);

#endif
