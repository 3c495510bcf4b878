/* configure.h -- making configurations: defaults, rules, presets, config.json.
 *
 * Each memory describes its own fields: their table (mem/fields.h) says how they are read, written and checked.  So
 * this file is above the memories, and not beside the struct in nn/config.h. */
#ifndef LAM_MODEL_CONFIGURE_H
#define LAM_MODEL_CONFIGURE_H

#include "core/status.h"
#include "nn/config.h"

/* Sensible values for everything that is not a size; sizes are 0. */
void lam_config_defaults(lam_config *cfg);

/* Derives the missing fields (d_embed, attn_type from memory or vice versa) and refuses impossible configurations,
 * naming the field and the limit. */
lam_status lam_config_finish(lam_config *cfg);

/* The presets, for help and messages. */
#define LAM_PRESET_LIST "tiny, small, enwik8-base, text8-base, wt103-base or wt103-adaptive"
const char *lam_preset_name(int i); /* NULL after the last */

/* A preset: the sizes of a model, and the default batch size and number of steps of its training. */
typedef struct lam_preset {
    const char *name;
    int n_layer, d_model, n_head, d_head, d_inner, len, n_token; /* len: tgt_len and mem_len */
    int batch_size, max_step;
    int n_cutoffs, cutoffs[3];
} lam_preset;
const lam_preset *lam_preset_find(const char *name); /* NULL: there is none */
/* LAM_ERR_ARG lists the presets if there is no such name.  memory is set to `memory`. */
lam_status lam_config_preset(lam_config *cfg, const char *preset, const char *memory);

/* JSON text to and from a config.  Reading starts from the defaults, ignores keys it does not know and ends with
 * lam_config_finish(); `label` names the source in all messages; an impossible configuration is LAM_ERR_FORMAT.  The
 * text is owned by the caller (free). */
lam_status lam_config_parse(lam_config *cfg, const char *json, const char *label);
lam_status lam_config_load(lam_config *cfg, const char *path); /* a file; LAM_ERR_IO too */
lam_status lam_config_print(char **json, const lam_config *cfg);

/* LAM_ERR_FORMAT "LABEL: another configuration: it has \"n_layer\": 2, not \"n_layer\": 4" with the first
 * field in which `it` differs from `wanted`. */
lam_status lam_config_same(const lam_config *it, const lam_config *wanted, const char *label);

/* Can rows be computed again with the next segment (ext_len)?  Yes if the memory is just the newest rows and positions
 * are relative, or if ext_len is 0. Otherwise LAM_ERR_ARG says why not. */
lam_status lam_config_extends(const lam_config *cfg, int ext_len);

#endif
