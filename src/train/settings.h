/* settings.h -- the settings of a run: batches, optimiser, schedule, intervals of reports.
 *
 * Defaults, ranges, options and help of every setting: settings.def; a new setting is a field here and a row there.
 * nn/config.h has the settings of the model.  Names are those of the Transformer-XL and LaMemo scripts where they
 * have them; a checkpoint keeps them under the same names, so that a run can be resumed with nothing but its
 * folder. */
#ifndef LAM_TRAIN_SETTINGS_H
#define LAM_TRAIN_SETTINGS_H

#include "core/status.h"
#include "train/optimizer.h"
#include "train/schedule.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* When memory is emptied besides at the beginning of an epoch. */
typedef struct lam_reset {
    int64_t every; /* steps after which all streams forget; 0: never */
    bool
        document; /* a stream forgets where a document begins, which is at the start of a segment */
} lam_reset;

/* "8", "document" or both, separated by a comma; LAM_ERR_ARG names what is neither. */
lam_status lam_reset_parse(lam_reset *out, const char *text);

typedef struct lam_settings {
    int batch_size;  /* streams */
    int batch_chunk; /* groups they are computed in, each with its own memory */
    int leaves; /* groups whose gradients are summed in a tree (leaves.h); 0: batch_chunk says how many */
    bool roll, varlen;
    int64_t seed;

    int recipe; /* lam_recipe_names: where the values came from; has no effect of its own */
    int optim;  /* lam_optim */
    double lr, mom, clip, weight_decay;
    double beta1, beta2, adam_eps;         /* of Adam */
    double muon_mom;                       /* momentum of Muon */
    int muon_rows;                         /* lam_muon_rows */
    double matrix_lr, embed_lr, vector_lr; /* factors of lr, by lam_role */
    bool clip_together; /* also parameters that learn only from the auxiliary loss */
    bool half_loss;     /* the second half of every segment counts twice, the first not at all */
    double loss_scale;  /* 0.5 mimics the published halving of the loss before clipping */

    int scheduler;                           /* lam_schedule_kind */
    int64_t warmup_step, max_step_scheduler; /* the latter 0: max_step */
    double cooldown;                         /* wsd: the part of the run in which the rate falls */
    double scheduler_time; /* seconds of all calls that schedule and run last; 0: it counts steps */
    double eta_min;        /* lowest learning rate, of dev_perf too */
    double decay_rate;     /* dev_perf: factor ... */
    int patience;          /* ... after more than so many evaluations in vain */

    int short_mem;         /* memory length in the first part of the schedule; 0: mem_len always */
    double short_mem_part; /* how long that part is, 0 to 1 */
    lam_reset mem_reset;
    double average; /* the last part of the schedule, 0 to 1, over which weights are averaged */

    int64_t max_step; /* LAM_MANY: as many as scheduler_time allows */
    double max_time;  /* seconds of this call; 0: no limit */
    int64_t log_interval, eval_interval, save_interval; /* 0: never; saving goes with evaluation */
    int64_t sample_interval;                            /* steps between samples; 0: none */
    int64_t max_eval_steps;                             /* segments; 0: all */
    int eval_batch_size, eval_tgt_len;                  /* the latter 0: tgt_len */
    int early_stop; /* evaluations without improvement after which the run ends; 0: it does not */
} lam_settings;

enum { LAM_MAX_LEAVES = 4096 };
#define LAM_MANY 1e15 /* steps, seconds: a limit that nobody meets */

/* The one setting that compare does not share with train: it has seeds. */
#define LAM_SEED_SETTING(SETTING)                                                                  \
    SETTING(seed, LONG, FIXED, "1111", (double)INT64_MIN, (double)INT64_MAX, )

extern const char *const lam_muon_row_names[]; /* by lam_muon_rows; ends with NULL */
typedef enum lam_recipe { LAM_RECIPE_PAPER, LAM_RECIPE_FAST } lam_recipe;
extern const char *const lam_recipe_names[]; /* by lam_recipe; ends with NULL */

/* The paper's: Adam 2.5e-4, cosine to 0, clip 0.25, loss scale 1.  batch_size and max_step are 0. */
void lam_settings_defaults(lam_settings *s);
/* Batch size and length of run that go with a preset of nn/config.h. */
void lam_settings_preset(lam_settings *s, const char *preset);
/* Refuses impossible settings, naming the field and the limit. */
lam_status lam_settings_check(const lam_settings *s);
/* Groups of streams, each with its own memory: the leaves, or batch_chunk. */
int lam_settings_groups(const lam_settings *s);
/* Is the length of the run given only in time? */
int lam_settings_timed(const lam_settings *s);
/* Is the run complete after `step` steps and `elapsed` seconds, counted over all calls? */
int lam_settings_complete(const lam_settings *s, int64_t step, double elapsed);

/* The settings as structs of the schedule, the optimiser and so on. */
lam_optimizer_options lam_settings_optimizer(const lam_settings *s);
lam_schedule lam_settings_schedule(const lam_settings *s);

/* A JSON object, to be released by the caller (NULL: no memory), and back; a missing field keeps its
 * value, `label` names the source. */
json_t *lam_settings_print(const lam_settings *s);
lam_status lam_settings_parse(lam_settings *s, const json_t *object, const char *label);

/* A resumed run may change its length and its learning rate, but not settings on which its state depends (batches,
 * seed, recipe, optimiser, memory lengths): LAM_ERR_ARG names the first such setting that differs. */
lam_status lam_settings_same_state(const lam_settings *now, const lam_settings *then);

#endif
