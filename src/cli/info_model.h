/* info_model.h -- what `lamemo info` prints of a model, and the memory that training and evaluating it takes, before any of
 * it is allocated. */
#ifndef LAM_CLI_INFO_MODEL_H
#define LAM_CLI_INFO_MODEL_H

#include "model/stack.h"
#include "train/settings.h"

#include <stdbool.h>

typedef struct lam_footprint { /* bytes */
    size_t weights, gradients, optimizer, program;
    lam_stack_sizes train;
    size_t all_train; /* what `lamemo train` takes: it also holds a stack for evaluation */
    size_t all_eval;
} lam_footprint;

/* `model` need only be declared; batch and optimiser are those of `settings`. */
lam_status lam_footprint_measure(lam_footprint *out, lam_model *model,
                                 const lam_settings *settings);

typedef struct lam_info_model {
    const char *device;   /* as it was asked for */
    lam_model model;      /* declared, without memory */
    lam_settings trained; /* how, where the folder says so: */
    int64_t step;         /* else -1 */
} lam_info_model;

/* Prints its configuration, parameters by group, multiply-accumulates by part, and memory. */
lam_status lam_info_print(lam_info_model *s, bool json);

#endif
