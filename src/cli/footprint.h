/* footprint.h -- the memory that training and evaluating a model takes, before any of it is allocated. */
#ifndef LAM_CLI_FOOTPRINT_H
#define LAM_CLI_FOOTPRINT_H

#include "model/stack.h"
#include "train/settings.h"

typedef struct lam_footprint { /* bytes */
    size_t weights, gradients, optimizer, program;
    lam_stack_sizes train;
    size_t all_train; /* what `lamemo train` takes: it also holds a stack for evaluation */
    size_t all_eval;
} lam_footprint;

/* `model` need only be declared; batch and optimiser are those of `settings`. */
lam_status lam_footprint_measure(lam_footprint *out, lam_model *model,
                                 const lam_settings *settings);

#endif
