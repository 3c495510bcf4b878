/* opcases.h -- one list of cases that every back-end must pass: each operation against ops/ref.
 *
 * Plain C with no test library, so that it also runs where there is nothing but a compiler and the
 * device.  A case runs one operation three ways on the same inputs: in double on lam_ops_ref (the
 * specification), in float32 on lam_ops_naive (the obvious loop), and on the back-end in question.
 * ALL elements are compared; the limit is 2 times (forward) or 3 times (backward) the error of the
 * naive loop, in the root mean square and in the largest error.  opcase.h has the details. */
#ifndef LAM_SUPPORT_OPCASES_H
#define LAM_SUPPORT_OPCASES_H

#include "ops/ops.h"

#include <stdio.h>

/* Runs the family called `only`, or all of them when it is NULL; an unknown name is one failure.
 * Writes one line per family to `report` (NULL: nowhere), and one per failed case with the seed
 * that repeats it.  Returns the number of failed cases.  The seed is 1, or the environment's
 * LAM_OPCASES_SEED. */
int lam_opcases_run(const lam_ops *ops, const char *only, FILE *report);

/* The same with options for the device, e.g. full_prec or a number of threads. */
int lam_opcases_run_on(const lam_ops *ops, const lam_dev_options *options, const char *only,
                       FILE *report);

/* The name of family i, counted from 0; NULL past the last. */
const char *lam_opcases_family(int i);

/* Is there a case of the family `name` that fails?  Stops at the first, and reports nothing. */
int lam_opcases_find_failure(const lam_ops *ops, const char *name);

#endif
