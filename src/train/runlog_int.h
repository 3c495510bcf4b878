/* runlog_int.h -- the records of a run: runlog.c writes them, runlog_own.c tells ours from those of others. */
#ifndef LAM_TRAIN_RUNLOG_INT_H
#define LAM_TRAIN_RUNLOG_INT_H

#include "train/runlog.h"

enum { LAM_RECORD_METRICS, LAM_RECORD_LOG, LAM_RECORD_EVENTS, LAM_RECORDS };
extern const char *const lam_runlog_names
    [LAM_RECORD_EVENTS]; /* an event file's is the prefix, the time, a dot and the host */
#define LAM_EVENTS_PREFIX "events.out.tfevents."

/* How much a file must say for itself: a checkpoint that names it has said the rest. */
typedef enum lam_trust { LAM_UNKNOWN, LAM_NAMED } lam_trust;

/* Is the open file empty or one of ours? */
lam_status lam_runlog_check(int fd, int which, lam_trust t, const char *path);
/* Those of ours; one of others is LAM_ERR_IO. */
lam_status lam_runlog_remove_events(const char *dir);

#endif
