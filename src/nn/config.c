/* config.c -- see config.h. */
#include "nn/config.h"

const char *const lam_init_out_names[] = {"same", "depth", "zero", NULL};

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
