/* train_options.h -- the option table of `lamemo train`, and what its values mean.
 *
 * Most options stand for one field of a lam_config (cli/shape_options.h) or of a lam_settings and are stored
 * there by the parser.  Which of them count depends: a new run takes the table's defaults and the preset's,
 * a resumed one only what the user wrote. */
#ifndef LAM_CLI_TRAIN_OPTIONS_H
#define LAM_CLI_TRAIN_OPTIONS_H

#include "cli/device.h"
#include "cli/shape_options.h"
#include "train/settings.h"

typedef struct lam_train_options {
    lam_shape_options shape; /* first */
    const char *data, *out, *init_from, *config, *sample_prompt;
    double epochs;
    bool resume, overwrite, no_test, no_overlap, print_config, json;
    double timeout;
    int reduce; /* lam_reduce */
    int zero;   /* 1: the optimiser's state is divided between the ranks */
    lam_device_options device;
    lam_settings settings; /* only the fields that are options */
} lam_train_options;

extern const lam_option lam_train_table[];

/* The configuration and settings of a new run on a vocabulary of n_token entries and a text of so many tokens (0: not
 * known). */
lam_status lam_train_fresh(lam_config *cfg, lam_settings *s, const lam_args *args, int n_token,
                           int64_t tokens);
/* Those of a new run that begins with a model's weights: on entry its configuration, on return with the
 * lengths and dropout the user wrote.  LAM_ERR_ARG names an option that would make another model of it. */
lam_status lam_train_from(lam_config *cfg, lam_settings *s, const lam_args *args, int64_t tokens);
/* Those of a resumed run: on entry the checkpoint's, on return with what the user wrote.  LAM_ERR_ARG
 * names a model option that contradicts the checkpoint. */
lam_status lam_train_resumed(lam_config *cfg, lam_settings *s, const lam_args *args,
                             int64_t tokens);
/* Warns of what the user wrote that has no effect with the optimiser, the schedule or the initial weights of the run. */
void lam_train_warn(const lam_args *args, const lam_config *cfg, const lam_settings *s);

#endif
