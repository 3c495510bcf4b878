/* configure.c -- defaults and the rules a configuration must obey. */
#include "model/configure.h"

#include "model/config_rows.h"

#include <stdio.h>
#include <string.h>

#define FIELD(name, kind)       .json = {#name, LAM_JSON_##kind, offsetof(lam_config, name), NULL}
#define WORD_FIELD(name, words) .json = {#name, LAM_JSON_WORD, offsetof(lam_config, name), words}

/* Sensible values for everything that is not a size; sizes are 0. */
const lam_mem_field lam_shape_rows[] = {
    {FIELD(attn_type, INT), .value = "-1"}, /* check_type says which there are */
    {FIELD(n_token, INT), .min = 1, .max = 1 << 24},
    {FIELD(n_layer, INT), .min = 1, .max = LAM_MAX_LAYERS},
    {FIELD(n_head, INT), .min = 1, .max = LAM_MAX_WIDTH},
    {FIELD(d_model, INT), .min = 2, .max = LAM_MAX_WIDTH},
    {FIELD(d_head, INT), .min = 1, .max = LAM_MAX_WIDTH},
    {FIELD(d_inner, INT), .min = 1, .max = LAM_MAX_WIDTH},
    {FIELD(d_embed, INT), .min = 1, .max = LAM_MAX_WIDTH},
    {FIELD(tgt_len, INT), .min = 1, .max = LAM_MAX_LEN},
    {FIELD(mem_len, INT), .max = LAM_MAX_LEN},
    {FIELD(ext_len, INT), .max = LAM_MAX_LEN},
    {FIELD(clamp_len, INT), .value = "-1"},
    {FIELD(same_length, BOOL), .max = 1},
    {FIELD(pre_lnorm, BOOL), .max = 1},
    {FIELD(tie_weight, BOOL), .value = "1", .max = 1},
    {FIELD(div_val, INT), .value = "1", .min = 1, .max = LAM_MAX_WIDTH},
    {FIELD(dropout, REAL), .value = "0.1", .rule = LAM_BELOW_1},
    {FIELD(dropatt, REAL), .rule = LAM_BELOW_1},
    {FIELD(layer_norm_epsilon, REAL), .value = "1e-5"},
    {.json = {0}}};
const lam_mem_field lam_init_rows[] = {{FIELD(init_uniform, BOOL)},
                                       {FIELD(init_std, REAL), .value = "0.02"},
                                       {FIELD(init_range, REAL), .value = "0.1"},
                                       {FIELD(proj_init_std, REAL), .value = "0.01"},
                                       {WORD_FIELD(init_out, lam_init_out_names)},
                                       {.json = {0}}};
const lam_mem_field lam_rare_rows[] = {{FIELD(untie_r, BOOL), .max = 1}, {.json = {0}}};

static const lam_mem_field *const parts[] = {lam_shape_rows, lam_rare_rows, lam_init_rows};
enum { PARTS = sizeof parts / sizeof *parts };

void lam_config_defaults(lam_config *cfg)
{
    *cfg = (lam_config){0};
    for (int i = 0; i < PARTS; i++)
        lam_rows_default(cfg, parts[i]);
    /* Transformer-XL's scripts: the head's projection is its own, the tails share the input's. */
    for (int i = 1; i <= LAM_MAX_CUTOFFS; i++)
        cfg->tie_projs[i] = 1;
    for (int i = 0; lam_mem_all[i]; i++)
        lam_fields_default(cfg, lam_mem_all[i]);
}

static lam_status in_range(const char *name, int value, int lo, int hi)
{
    if (value >= lo && value <= hi)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "config: %s is %d, must be %d to %d", name, value, lo, hi);
}

static int takes(const lam_mem_ops *mem, int attn_type)
{
    const int *type = mem->attn_types;
    while (*type >= 0 && *type != attn_type)
        type++;
    return *type >= 0;
}

/* The attn_types that a memory takes, or (NULL) that any does: "0, 1". */
static const char *list_types(char *text, size_t size, const lam_mem_ops *mem)
{
    size_t used = 0;
    for (int type = 0; type <= LAM_ATTN_LAMEMO_FULL && used < size; type++) {
        int known = mem && takes(mem, type);
        for (int i = 0; !mem && lam_mem_all[i]; i++)
            known |= takes(lam_mem_all[i], type);
        if (known)
            used += (size_t)snprintf(text + used, size - used, "%s%d", used > 0 ? ", " : "", type);
    }
    return text;
}

static lam_status check_type(const lam_config *cfg, const lam_mem_ops *mem)
{
    char text[64];
    if (takes(mem, cfg->attn_type))
        return LAM_OK;
    for (int i = 0; lam_mem_all[i]; i++)
        if (takes(lam_mem_all[i], cfg->attn_type))
            return lam_fail(LAM_ERR_ARG,
                            "config: attn_type %d does not go with memory %s, only: %s",
                            cfg->attn_type, mem->name, list_types(text, sizeof text, mem));
    return lam_fail(LAM_ERR_ARG, "config: attn_type %d: must be one of: %s", cfg->attn_type,
                    list_types(text, sizeof text, NULL));
}

/* memory and attn_type say partly the same: traces and the authors' scripts give only the latter. */
static lam_status resolve_memory(lam_config *cfg, const lam_mem_ops **mem)
{
    for (int i = 0; cfg->memory[0] == '\0' && lam_mem_all[i]; i++)
        if (lam_mem_all[i]->implied && lam_mem_all[i]->implied(cfg))
            strcpy(cfg->memory, lam_mem_all[i]->name);
    LAM_TRY(lam_mem_find(mem, cfg->memory));
    if (cfg->attn_type < 0)
        cfg->attn_type = (*mem)->attn_types[0];
    if (!lam_mem_has(*mem, LAM_REMEMBERS))
        cfg->mem_len = 0;
    return check_type(cfg, *mem);
}

lam_status lam_config_extends(const lam_config *cfg, int ext_len)
{
    const lam_mem_ops *mem;
    char text[LAM_MEMORY_TEXT];
    if (ext_len == 0)
        return LAM_OK;
    LAM_TRY(lam_mem_find(&mem, cfg->memory));
    if (!lam_mem_has(mem, LAM_EXTENDS))
        return lam_fail(LAM_ERR_ARG,
                        "config: ext_len %d has no meaning for memory %s, only for: %s", ext_len,
                        cfg->memory, lam_mem_having(text, LAM_EXTENDS));
    if (cfg->attn_type == LAM_ATTN_ABSOLUTE)
        return lam_fail(LAM_ERR_ARG, "config: ext_len %d has no meaning for attn_type 2 (absolute)",
                        ext_len);
    return LAM_OK;
}

static lam_status check_cutoffs(const lam_config *cfg)
{
    int last = 0;
    for (int i = 0; i < cfg->n_cutoffs; i++) {
        if (cfg->cutoffs[i] <= last || cfg->cutoffs[i] >= cfg->n_token)
            return lam_fail(LAM_ERR_ARG,
                            "config: cutoff %d must be above %d and below the vocabulary size %d",
                            cfg->cutoffs[i], last, cfg->n_token);
        last = cfg->cutoffs[i];
    }
    if (lam_config_cluster(cfg, cfg->n_cutoffs).width < 1)
        return lam_fail(LAM_ERR_ARG, "config: div_val %d leaves no width for the last cluster",
                        cfg->div_val);
    return LAM_OK;
}

lam_status lam_config_finish(lam_config *cfg)
{
    const lam_mem_ops *mem;
    if (cfg->d_embed <= 0)
        cfg->d_embed = cfg->d_model;
    for (int i = 0; i < PARTS; i++)
        LAM_TRY(lam_rows_check(cfg, parts[i]));
    LAM_TRY(in_range("n_head * d_head",
                     cfg->n_head > LAM_MAX_WIDTH / cfg->d_head ? LAM_MAX_WIDTH + 1
                                                               : cfg->n_head * cfg->d_head,
                     1, LAM_MAX_WIDTH));
    LAM_TRY(in_range("n_cutoffs", cfg->n_cutoffs, 0, LAM_MAX_CUTOFFS));
    if (cfg->d_model % 2)
        return lam_fail(LAM_ERR_ARG, "config: d_model is %d, must be even (sine and cosine halves)",
                        cfg->d_model);
    if (cfg->init_uniform && cfg->init_out != LAM_INIT_OUT_SAME)
        return lam_fail(LAM_ERR_ARG, "config: init_out needs normal, not uniform, initial weights");
    LAM_TRY(resolve_memory(cfg, &mem));
    if (cfg->untie_r && cfg->attn_type != LAM_ATTN_XL)
        return lam_fail(LAM_ERR_ARG, "config: untie_r goes with attn_type 0, not with %d",
                        cfg->attn_type);
    LAM_TRY(lam_config_extends(cfg, cfg->ext_len));
    if (mem->resolve)
        LAM_TRY(mem->resolve(cfg));
    for (int i = 0; lam_mem_all[i]; i++)
        if (lam_fields_written(lam_mem_all[i], mem))
            LAM_TRY(lam_fields_check(cfg, lam_mem_all[i]));
    return check_cutoffs(cfg);
}
