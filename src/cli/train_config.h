/* train_config.h -- a file with the options of a training: train --config FILE, train --print-config.
 *
 * The file is a JSON object.  Its keys are those of config.json and of the settings in training_state.json, or any
 * other long option of train, with underscores.  A value counts as if it were written on the command line, which wins
 * where both have one. */
#ifndef LAM_CLI_TRAIN_CONFIG_H
#define LAM_CLI_TRAIN_CONFIG_H

#include "cli/train_options.h"

#include <jansson.h>

/* The options of a command line and a file. */
typedef struct lam_train_config {
    lam_args args; /* options points to the next */
    lam_train_options options;
    char *text[LAM_OPTIONS_MAX]; /* that came from the file */
    json_t *file;                /* NULL: there is none */
} lam_train_config;

/* args, and what is in the file that --config names.  LAM_ERR_ARG names the file and a key that is unknown or wrong.
 * Must be freed after a failure, too. */
lam_status lam_train_config_read(lam_train_config *out, const lam_args *args);
void lam_train_config_free(lam_train_config *c);

/* Some keys of config.json are no options (layer_norm_epsilon, n_token): is the model what they say?  LAM_ERR_ARG. */
lam_status lam_train_config_check(const lam_train_config *c, const lam_config *cfg);

/* Prints what lam_train_config_read() takes: the model and the settings of a training, all of them. */
lam_status lam_train_config_print(const lam_args *args, const lam_config *cfg,
                                  const lam_settings *settings);

#endif
