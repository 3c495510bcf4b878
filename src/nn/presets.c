/* presets.c -- the named configurations: the paper's, and two that train on a laptop.
 *
 * wt103-base is what the authors' scripts really build (a full softmax); wt103-adaptive is
 * Transformer-XL's own.  n_token is a default that the corpus replaces. */
#include "nn/config.h"

#include <string.h>

typedef struct preset {
    const char *name;
    int n_layer, d_model, n_head, d_head, d_inner, len, n_token;
    int n_cutoffs, cutoffs[3];
} preset;

static const preset presets[] = {
    {"tiny", 4, 128, 4, 32, 512, 64, 256, 0, {0}},
    {"small", 6, 256, 4, 64, 1024, 128, 256, 0, {0}},
    {"enwik8-base", 12, 512, 8, 64, 2048, 512, 204, 0, {0}},
    {"text8-base", 12, 512, 8, 64, 2048, 512, 27, 0, {0}},
    {"wt103-base", 16, 410, 10, 41, 2100, 150, 267735, 0, {0}},
    {"wt103-adaptive", 16, 410, 10, 41, 2100, 150, 267735, 3, {20000, 40000, 200000}},
};
enum { PRESETS = sizeof presets / sizeof *presets };

const char *lam_preset_name(int i)
{
    return i < PRESETS ? presets[i].name : NULL;
}

lam_status lam_config_preset(lam_config *cfg, const char *name, const char *memory)
{
    const preset *p = presets;
    while (p < presets + PRESETS && strcmp(p->name, name) != 0)
        p++;
    if (p == presets + PRESETS)
        return lam_fail(LAM_ERR_ARG, "preset %s: must be " LAM_PRESET_LIST, name);
    if (strlen(memory) >= sizeof cfg->memory)
        return lam_fail(LAM_ERR_ARG, "memory %s: there is no such mechanism", memory);

    lam_config_defaults(cfg);
    strcpy(cfg->memory, memory);
    cfg->n_layer = p->n_layer;
    cfg->d_model = p->d_model;
    cfg->n_head = p->n_head;
    cfg->d_head = p->d_head;
    cfg->d_inner = p->d_inner;
    cfg->tgt_len = cfg->mem_len = p->len;
    cfg->n_token = p->n_token;
    cfg->n_cutoffs = p->n_cutoffs;
    memcpy(cfg->cutoffs, p->cutoffs, sizeof p->cutoffs);
    if (strcmp(memory, "infinite") == 0)
        cfg->ltm_sticky = LAM_STICKY_LEFT; /* as in the row of Table 1 */
    return lam_config_finish(cfg);
}
