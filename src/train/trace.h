/* trace.h -- a reference trace: what another program computed, in one safetensors file.
 *
 * Its metadata hold the configuration, B, the number of segments and of training steps; its tensors are
 * tokens, parameters ("param.NAME") and results (tests/golden/README.md).  Everything is checked before it is
 * used.  What is done with it: train/verify.h. */
#ifndef LAM_TRAIN_TRACE_H
#define LAM_TRAIN_TRACE_H

#include "io/safetensors.h"
#include "model/model.h"

typedef struct lam_trace {
    lam_safetensors *st;
    const char *path; /* kept */
    lam_config cfg;
    double lr;
    int B, segments, train_steps;
    int32_t *tokens; /* [B][stride], of the run being replayed */
    size_t stride;
} lam_trace;

/* Opens the file and reads what its metadata say.  Close it after a failure too. */
lam_status lam_trace_open(lam_trace *t, const char *path);
void lam_trace_close(lam_trace *t); /* fine on zeros */

/* Do the parameters in the file fit the configuration?  Asked before anything is allocated, so that a
 * configuration cannot claim more than the file holds. */
lam_status lam_trace_check(const lam_trace *t, lam_dev *dev);
/* Loads [B][N * segments + 1] token ids from the tensor `name` and checks them. */
lam_status lam_trace_tokens(lam_trace *t, const char *name, int segments);
/* Gives the parameters the file's values; scratch has room for the largest. */
lam_status lam_trace_params(const lam_trace *t, lam_params *p, double *scratch);

#endif
