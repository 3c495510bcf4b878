/* scaling.h -- what a training step would take on many processes: a latency-bandwidth model (docs/scaling.md). */
#ifndef LAM_CLI_SCALING_H
#define LAM_CLI_SCALING_H

#include "model/model.h"
#include "train/settings.h"

#include <stdbool.h>

/* The constants of the model; what is not measured is assumed, and printed. */
typedef struct lam_scaling {
    int ranks;       /* the most; 0: none are asked for */
    double step_ms;  /* of one process with this batch; 0: by its multiply-accumulates */
    double link_gbs; /* GB/s in each direction between two processes */
    double link_us;  /* from one process to another, however short the message */
    int64_t tokens;  /* of the text to train on; 0: not known */
    bool apart;      /* nothing is sent beside the backward pass */
    int zero;        /* 1: the optimiser's state is divided between the processes */
} lam_scaling;

/* Prints step time, exchange and efficiency for 1, 2, 4, ... processes with batch_size streams each, what the optimiser
 * takes in each of them, and how long a stream of the text then is.  Warns where the memory would hardly ever be full. */
lam_status lam_scaling_print(const lam_scaling *s, lam_model *model, const lam_settings *settings,
                             bool json);

#endif
