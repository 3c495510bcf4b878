/* outcome.h -- how a run went, as its metrics.jsonl tells. */
#ifndef LAM_REPORT_OUTCOME_H
#define LAM_REPORT_OUTCOME_H

#include "core/status.h"

#include <stdint.h>

/* Losses in nats; NaN: there is none. */
typedef struct lam_outcome {
    int64_t step;             /* of the newest record */
    int diverged;             /* a loss or gradient was not finite after it */
    double valid, test;       /* lowest validation loss; test loss of that model */
    double tokens_per_second; /* median of what was logged: a pause counts for little */
    double seconds;           /* of all calls */
} lam_outcome;

/* An outcome without a single record. */
lam_outcome lam_outcome_none(void);

/* Reads DIR/metrics.jsonl; where it is missing, the outcome is that without records.  A line that is
 * not a JSON object is LAM_ERR_FORMAT; an unfinished last line is left out. */
lam_status lam_outcome_read(lam_outcome *out, const char *dir);

#endif
