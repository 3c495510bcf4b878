/* state.h -- where a run stands: training_state.json.
 *
 * Together with the parameters, the optimiser's moments and the memories this is everything the next
 * step depends on; dropout needs nothing but the step, since its masks are computed from it. */
#ifndef LAM_TRAIN_STATE_H
#define LAM_TRAIN_STATE_H

#include "data/batcher.h"
#include "train/runlog.h"
#include "train/settings.h"

enum { LAM_STATE_FORMAT = 1 };

/* The corpus a run belongs to. */
typedef struct lam_corpus_mark {
    char path[1024];
    int64_t tokens; /* of the training split */
    uint32_t crc;   /* of the training split */
} lam_corpus_mark;

typedef struct lam_train_state {
    int64_t step; /* updates made */
    lam_batcher_position position;
    int64_t *shifts; /* [n_shifts], owned */
    int n_shifts;
    int grown;        /* the memory has its full length (settings.short_mem) */
    int64_t averaged; /* steps whose weights are in the mean (average.h) */
    lam_plateau plateau;
    double best_loss; /* lowest validation loss; infinity: none yet */
    int64_t best_step;
    int64_t eval_step;        /* step of the last evaluation; 0: none yet */
    int64_t evals_since_best; /* evaluations that did not improve on it */
    double elapsed;           /* seconds of all calls */
    double log_nll;           /* sum and tokens since the last logged step */
    int64_t log_tokens;
    double log_aux; /* the memory's own loss, summed like log_nll */
    lam_log_marks marks;
    lam_corpus_mark corpus;
    char device[16];
    lam_settings settings;
} lam_train_state;

void lam_train_state_init(lam_train_state *s, const lam_settings *settings);
void lam_train_state_free(lam_train_state *s); /* its shifts; fine on a zeroed one */

/* The file.  The parameters' step counts travel in it too, as params->list[].steps. */
lam_status lam_train_state_save(const lam_train_state *s, const lam_params *params,
                                const char *path);
/* params NULL: the counts are not looked at.  Otherwise every parameter must have one. */
lam_status lam_train_state_load(lam_train_state *s, lam_params *params, const char *path);

#endif
