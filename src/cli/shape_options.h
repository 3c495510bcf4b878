/* shape_options.h -- the options that say what a model is, for every command that makes one.
 *
 * Each of them stands for one field of a lam_config; cli/shape_rows.inc has their rows.  A command that
 * takes them begins its struct with a lam_shape_options.  Where a configuration comes from decides what
 * counts: a new one takes the preset's values and the table's defaults, one that exists only what the
 * user wrote. */
#ifndef LAM_CLI_SHAPE_OPTIONS_H
#define LAM_CLI_SHAPE_OPTIONS_H

#include "cli/options.h"
#include "mem/mem.h"
#include "model/configure.h"
#include "nn/config.h"

typedef struct lam_shape_options {
    const char *preset, *memory;
    bool same_length, pre_lnorm, not_tied, adaptive;
    lam_int_list cutoffs;
    lam_config cfg; /* only the fields that are options */
} lam_shape_options;

#define LAM_SHAPE(field) offsetof(lam_shape_options, field)

/* The two rows in front of the others, where a command wants them; and for commands without a corpus, how many types the
 * model knows. */
/* clang-format off */
#define LAM_PRESET_OPTION \
    {"preset", 0, "NAME", LAM_OPT_STRING, LAM_SHAPE(preset), "tiny", .former = 'p', \
     .help = "Sizes of the model, batch and steps: " LAM_PRESET_LIST "."}
#define LAM_MEMORY_OPTION(letter) \
    {"memory", 0, "NAME", LAM_OPT_STRING, LAM_SHAPE(memory), LAM_MEMORY_DEFAULT, .choices = lam_mem_names, \
     .former = letter, .help = "Memory of earlier segments."}
#define LAM_N_TOKEN_OPTION \
    {"n-token", 0, "V", LAM_OPT_INT, LAM_SHAPE(cfg.n_token), .min = 1, .max = 1 << 24, .shown = LAM_PRESETS, \
     .aliases = "vocab-size", .help = "Number of tokens in the vocabulary."}
/* clang-format on */

/* The options of the memories' own fields: a heading for each memory that has some.  `offset` is where the command's
 * struct has its lam_config. */
int lam_shape_memories(lam_option *rows, int room, size_t offset);

extern const char *const lam_init_names[]; /* of init_uniform */
#define LAM_PRESETS "the preset's"

/* The configuration the options describe, on a vocabulary of n_token types (0: the preset's, or --n-token).
 * Cutoffs of the preset that do not fit the vocabulary give way to others in their proportion; written
 * ones must fit. */
lam_status lam_shape_fresh(lam_config *cfg, const lam_args *args, int n_token);

/* Did the preset's cutoffs give way in *cfg, made by lam_shape_fresh()? */
bool lam_shape_cut(const lam_config *cfg, const lam_args *args);

/* *cfg with what the user wrote. */
lam_status lam_shape_change(lam_config *cfg, const lam_args *args);

/* LAM_ERR_ARG "--n-layer 4: WHY 3" for the first option the user wrote in which *wanted is not *was. */
lam_status lam_shape_same(const lam_config *was, const lam_config *wanted, const lam_args *args,
                          const char *why);

/* LAM_ERR_ARG for the first option the user wrote, of any of the command's, that `memory` cannot use; a
 * harmless one gets a warning.  0 asks for nothing, so it is never refused. */
lam_status lam_shape_usable(const lam_args *args, const char *memory);

/* Can `memory` use the option? */
bool lam_option_serves(const lam_option *option, const char *memory);

#endif
