/* config.c -- defaults and the rules a configuration must obey. */
#include "nn/config.h"

#include <math.h>
#include <string.h>

void lam_config_defaults(lam_config *cfg)
{
    *cfg = (lam_config){
        .attn_type = -1,
        .clamp_len = -1,
        .tie_weight = 1,
        .div_val = 1,
        .dropout = 0.1,
        .layer_norm_epsilon = 1e-5,
        .interp_eps = 1e-6,
        .rate = 4,
        .aux_weight = 1.0,
        .n_ltm_widths = 2,
        .ltm_widths = {0.01, 0.05},
        .ltm_ridge = 0.5,
        .ltm_samples = 512,
        .ltm_tau = 0.5,
        .ltm_sigma0 = 0.05,
        .ltm_kl = 1e-6,
        .ltm_var_min = 1e-6,
        .ltm_padding = 1,
        .init_std = 0.02,
        .init_range = 0.1,
        .proj_init_std = 0.01,
    };
    /* Transformer-XL's scripts: the head's projection is its own, the tails share the input's. */
    for (int i = 1; i <= LAM_MAX_CUTOFFS; i++)
        cfg->tie_projs[i] = 1;
}

static lam_status in_range(const char *name, int value, int lo, int hi)
{
    if (value >= lo && value <= hi)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "config: %s is %d, must be %d to %d", name, value, lo, hi);
}

static lam_status probability(const char *name, double p)
{
    if (p >= 0.0 && p < 1.0)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "config: %s is %g, must be at least 0 and below 1", name, p);
}

static lam_status not_negative(const char *name, double x)
{
    if (x >= 0.0 && isfinite(x))
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "config: %s is %g, must be 0 or more", name, x);
}

static int is_lamemo_type(int attn_type)
{
    return attn_type == LAM_ATTN_LAMEMO ||
           (attn_type >= LAM_ATTN_LAMEMO_XL && attn_type <= LAM_ATTN_LAMEMO_FULL);
}

/* memory and attn_type say partly the same: traces and the authors' scripts give only the latter. */
static lam_status settle_memory(lam_config *cfg)
{
    if (cfg->memory[0] == '\0')
        strcpy(cfg->memory, is_lamemo_type(cfg->attn_type) ? "lamemo"
                            : cfg->mem_len > 0             ? "xl"
                                                           : "none");
    const int lamemo = strcmp(cfg->memory, "lamemo") == 0;
    if (cfg->attn_type < 0)
        cfg->attn_type = lamemo ? LAM_ATTN_LAMEMO : LAM_ATTN_XL;
    if (lamemo != is_lamemo_type(cfg->attn_type))
        return lam_fail(LAM_ERR_ARG, "config: attn_type %d does not go with memory %s",
                        cfg->attn_type, cfg->memory);
    if (!lamemo && cfg->attn_type > LAM_ATTN_ABSOLUTE)
        return lam_fail(LAM_ERR_ARG, "config: attn_type %d: must be 0, 1, 2, 3, 31, 32 or 33",
                        cfg->attn_type);
    /* With a memory the authors' code adds positions to it in place, again in every segment. */
    if (cfg->attn_type == LAM_ATTN_ABSOLUTE && strcmp(cfg->memory, "none") != 0)
        return lam_fail(LAM_ERR_ARG, "config: attn_type 2 (absolute) needs memory none, not %s",
                        cfg->memory);
    if (strcmp(cfg->memory, "none") == 0)
        cfg->mem_len = 0;
    if (lamemo && cfg->mem_len == 0)
        return lam_fail(LAM_ERR_ARG, "config: memory lamemo needs mem_len above 0");
    return LAM_OK;
}

lam_status lam_config_extends(const lam_config *cfg, int ext_len)
{
    if (ext_len == 0)
        return LAM_OK;
    if (strcmp(cfg->memory, "none") != 0 && strcmp(cfg->memory, "xl") != 0)
        return lam_fail(LAM_ERR_ARG,
                        "config: ext_len %d has no meaning for memory %s, only for none and xl",
                        ext_len, cfg->memory);
    if (cfg->attn_type == LAM_ATTN_ABSOLUTE)
        return lam_fail(LAM_ERR_ARG, "config: ext_len %d has no meaning for attn_type 2 (absolute)",
                        ext_len);
    return LAM_OK;
}

static lam_status check_compressive(lam_config *cfg)
{
    if (strcmp(cfg->memory, "compressive") != 0)
        return LAM_OK;
    if (cfg->attn_type != LAM_ATTN_XL)
        return lam_fail(LAM_ERR_ARG, "config: memory compressive needs attn_type 0, not %d",
                        cfg->attn_type);
    if (cfg->cmem_len == 0)
        cfg->cmem_len = cfg->mem_len;
    if (cfg->cmem_len == 0)
        return lam_fail(LAM_ERR_ARG,
                        "config: memory compressive needs cmem_len or mem_len above 0");
    LAM_TRY(in_range("cmem_len", cfg->cmem_len, 1, LAM_MAX_LEN));
    LAM_TRY(in_range("rate", cfg->rate, 1, LAM_MAX_RATE));
    return not_negative("aux_weight", cfg->aux_weight);
}

static lam_status positive(const char *name, double x)
{
    if (x > 0.0 && isfinite(x))
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "config: %s is %g, must be above 0", name, x);
}

static lam_status check_infinite(lam_config *cfg)
{
    if (strcmp(cfg->memory, "infinite") != 0)
        return LAM_OK;
    if (cfg->attn_type != LAM_ATTN_XL)
        return lam_fail(LAM_ERR_ARG, "config: memory infinite needs attn_type 0, not %d",
                        cfg->attn_type);
    LAM_TRY(in_range("number of ltm_widths", cfg->n_ltm_widths, 1, LAM_MAX_LTM_WIDTHS));
    if (cfg->ltm_basis == 0)
        cfg->ltm_basis = cfg->mem_len - cfg->mem_len % cfg->n_ltm_widths;
    if (cfg->ltm_block == 0)
        cfg->ltm_block = cfg->tgt_len;
    if (cfg->ltm_basis == 0)
        return lam_fail(LAM_ERR_ARG,
                        "config: memory infinite needs ltm_basis or mem_len of %d or more",
                        cfg->n_ltm_widths);
    if (cfg->ltm_block == 1)
        return lam_fail(LAM_ERR_ARG,
                        "config: memory infinite needs ltm_block or tgt_len of 2 or more");
    LAM_TRY(in_range("ltm_basis", cfg->ltm_basis, 1, LAM_MAX_BASIS));
    if (cfg->ltm_basis % cfg->n_ltm_widths)
        return lam_fail(LAM_ERR_ARG, "config: ltm_basis is %d, must be a multiple of the %d widths",
                        cfg->ltm_basis, cfg->n_ltm_widths);
    LAM_TRY(in_range("ltm_block", cfg->ltm_block, 2, LAM_MAX_LEN));
    LAM_TRY(in_range("ltm_samples", cfg->ltm_samples, 1, LAM_MAX_LEN));
    LAM_TRY(in_range("ltm_reset", cfg->ltm_reset, 0, 1 << 30));
    for (int i = 0; i < cfg->n_ltm_widths; i++)
        LAM_TRY(positive("ltm_widths", cfg->ltm_widths[i]));
    LAM_TRY(positive("ltm_ridge", cfg->ltm_ridge));
    if (!(cfg->ltm_tau > 0.0 && cfg->ltm_tau < 1.0))
        return lam_fail(LAM_ERR_ARG, "config: ltm_tau is %g, must be above 0 and below 1",
                        cfg->ltm_tau);
    LAM_TRY(positive("ltm_sigma0", cfg->ltm_sigma0));
    LAM_TRY(positive("ltm_var_min", cfg->ltm_var_min));
    return not_negative("ltm_kl", cfg->ltm_kl);
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
    if (cfg->d_embed <= 0)
        cfg->d_embed = cfg->d_model;
    LAM_TRY(in_range("n_token", cfg->n_token, 1, 1 << 24));
    LAM_TRY(in_range("n_layer", cfg->n_layer, 1, LAM_MAX_LAYERS));
    LAM_TRY(in_range("n_head", cfg->n_head, 1, LAM_MAX_WIDTH));
    LAM_TRY(in_range("d_head", cfg->d_head, 1, LAM_MAX_WIDTH));
    LAM_TRY(in_range("d_model", cfg->d_model, 2, LAM_MAX_WIDTH));
    LAM_TRY(in_range("d_inner", cfg->d_inner, 1, LAM_MAX_WIDTH));
    LAM_TRY(in_range("d_embed", cfg->d_embed, 1, LAM_MAX_WIDTH));
    LAM_TRY(in_range("n_head * d_head",
                     cfg->n_head > LAM_MAX_WIDTH / cfg->d_head ? LAM_MAX_WIDTH + 1
                                                               : cfg->n_head * cfg->d_head,
                     1, LAM_MAX_WIDTH));
    LAM_TRY(in_range("tgt_len", cfg->tgt_len, 1, LAM_MAX_LEN));
    LAM_TRY(in_range("mem_len", cfg->mem_len, 0, LAM_MAX_LEN));
    LAM_TRY(in_range("ext_len", cfg->ext_len, 0, LAM_MAX_LEN));
    LAM_TRY(in_range("n_cutoffs", cfg->n_cutoffs, 0, LAM_MAX_CUTOFFS));
    LAM_TRY(in_range("div_val", cfg->div_val, 1, LAM_MAX_WIDTH));
    LAM_TRY(in_range("same_length", cfg->same_length, 0, 1));
    LAM_TRY(in_range("pre_lnorm", cfg->pre_lnorm, 0, 1));
    LAM_TRY(in_range("tie_weight", cfg->tie_weight, 0, 1));
    LAM_TRY(probability("dropout", cfg->dropout));
    LAM_TRY(probability("dropatt", cfg->dropatt));
    if (cfg->d_model % 2)
        return lam_fail(LAM_ERR_ARG, "config: d_model is %d, must be even (sine and cosine halves)",
                        cfg->d_model);
    if (cfg->init_uniform && cfg->init_out != LAM_INIT_OUT_SAME)
        return lam_fail(LAM_ERR_ARG, "config: init_out needs normal, not uniform, initial weights");
    LAM_TRY(not_negative("interp_eps", cfg->interp_eps));
    LAM_TRY(not_negative("layer_norm_epsilon", cfg->layer_norm_epsilon));
    LAM_TRY(not_negative("init_std", cfg->init_std));
    LAM_TRY(not_negative("init_range", cfg->init_range));
    LAM_TRY(not_negative("proj_init_std", cfg->proj_init_std));
    LAM_TRY(settle_memory(cfg));
    LAM_TRY(lam_config_extends(cfg, cfg->ext_len));
    LAM_TRY(check_compressive(cfg));
    LAM_TRY(check_infinite(cfg));
    return check_cutoffs(cfg);
}

int lam_config_span(const lam_config *cfg)
{
    return cfg->tgt_len + cfg->ext_len + cfg->mem_len;
}

lam_cluster lam_config_cluster(const lam_config *cfg, int i)
{
    const int first = i == 0 ? 0 : cfg->cutoffs[i - 1];
    const int end = i == cfg->n_cutoffs ? cfg->n_token : cfg->cutoffs[i];
    int width = cfg->d_embed;
    for (int k = 0; k < i; k++)
        width /= cfg->div_val;
    return (lam_cluster){first, end - first, width};
}

int lam_length_fit(int length, int64_t most)
{
    const int64_t enough = most > LAM_FIT_LEAST ? most : LAM_FIT_LEAST;
    return length <= enough ? length : (int)enough;
}
