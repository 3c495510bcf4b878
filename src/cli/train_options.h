/* train_options.h -- the option table of `lamemo train`, and what its values mean.
 *
 * Most options stand for one field of a lam_config or lam_settings and are stored there by the parser. Which
 * of them count depends: a new run takes the table's defaults and the preset's, a resumed one only
 * what the user wrote. */
#ifndef LAM_CLI_TRAIN_OPTIONS_H
#define LAM_CLI_TRAIN_OPTIONS_H

#include "cli/device.h"
#include "cli/options.h"
#include "nn/config.h"
#include "train/settings.h"

typedef struct lam_train_options {
    const char *data, *out, *preset, *memory;
    bool resume, overwrite, no_test;
    bool half_loss, same_length, pre_lnorm, not_tied, adaptive, roll, varlen, ltm_share_proj,
        clip_together;
    lam_int_list cutoffs;
    lam_device_options device;
    lam_config cfg;        /* only the fields that are options */
    lam_settings settings; /* the same */
} lam_train_options;

extern const lam_option lam_train_table[];

/* Words of the rows that tables share (cli/train_rows.inc). */
extern const char *const lam_alpha_names[];
extern const char *const lam_window_names[];
extern const char *const lam_pooling_names[];
extern const char *const lam_remainder_names[];
extern const char *const lam_sticky_names[];
extern const char *const lam_init_names[];
extern const char *const lam_init_out_names[];
#define LAM_PRESETS "the preset's"
#define LAM_MANY    1e15 /* steps: a limit that nobody meets */

/* The configuration and settings of a new run on a vocabulary of n_token types. */
lam_status lam_train_fresh(lam_config *cfg, lam_settings *s, const lam_args *args, int n_token);
/* Those of a resumed run: on entry the checkpoint's, on return with what the user wrote.  LAM_ERR_ARG
 * names a model option that contradicts the checkpoint. */
lam_status lam_train_resumed(lam_config *cfg, lam_settings *s, const lam_args *args);

#endif
