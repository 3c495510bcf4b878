/* presets.c -- the named configurations: the paper's, with its batches and steps, and two that train on a laptop.
 *
 * wt103-base is what the authors' scripts really build (a full softmax); wt103-adaptive is
 * Transformer-XL's own.  n_token is a default that the corpus replaces. */
#include "model/configure.h"

#include "mem/fields.h"

#include <string.h>

/* clang-format off */
static const lam_preset presets[] = {
    /* name           layers  width  heads  head  inner  N = M  vocabulary  batch   steps  clusters of the softmax */
    {"tiny",               4,   128,     4,   32,   512,    64,        256,    16,   4000, 0, {0}},
    {"small",              6,   256,     4,   64,  1024,   128,        256,     8,  20000, 0, {0}},
    {"enwik8-base",       12,   512,     8,   64,  2048,   512,        204,    40, 100000, 0, {0}},
    {"text8-base",        12,   512,     8,   64,  2048,   512,         27,    40, 100000, 0, {0}},
    {"wt103-base",        16,   410,    10,   41,  2100,   150,     267735,    64, 250000, 0, {0}},
    {"wt103-adaptive",    16,   410,    10,   41,  2100,   150,     267735,    64, 250000, 3, {20000, 40000, 200000}},
};
/* clang-format on */
enum { PRESETS = sizeof presets / sizeof *presets };

const char *lam_preset_name(int i)
{
    return i < PRESETS ? presets[i].name : NULL;
}

const lam_preset *lam_preset_find(const char *name)
{
    for (const lam_preset *p = presets; p < presets + PRESETS; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

lam_status lam_config_preset(lam_config *cfg, const char *name, const char *memory)
{
    const lam_preset *p = lam_preset_find(name);
    const lam_mem_ops *mem;
    if (!p)
        return lam_fail(LAM_ERR_ARG, "preset %s: must be " LAM_PRESET_LIST, name);
    LAM_TRY(lam_mem_find(&mem, memory));

    lam_config_defaults(cfg);
    lam_fields_fresh(cfg, mem);
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
    return lam_config_finish(cfg);
}
