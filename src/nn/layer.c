/* layer.c -- names and shapes of one layer's parameters (the W of Eq. 1 and of f in Eq. 3), as in the authors'
 * modules. */
#include "nn/layer.h"

#include "nn/dims.h"

#include <math.h>

/* Of W_o and the second feed-forward map. */
static double std_of_outputs(const lam_config *cfg)
{
    return cfg->init_out == LAM_INIT_OUT_ZERO    ? 0.0
           : cfg->init_out == LAM_INIT_OUT_DEPTH ? cfg->init_std / sqrt(2.0 * cfg->n_layer)
                                                 : cfg->init_std;
}

void lam_layer_declare(lam_layer_params *ids, lam_params *p, const lam_config *cfg,
                       const lam_dev *dev, int layer)
{
    const lam_dims w = lam_dims_of(cfg, dev);
    const int H = cfg->n_head, e = cfg->d_head;
    const lam_dim D = {1, cfg->d_model, w.D}, F = {1, cfg->d_inner, w.F};
    const lam_dim one = {H, e, w.K}, two = {2 * H, e, w.K}, three = {3 * H, e, w.K};
    const double std = cfg->init_std, out_std = std_of_outputs(cfg);
    const lam_init linear = LAM_INIT_LINEAR;

    /* LaMemo's module and the absolute one have W_q apart; both stand side by side here, so that one
     * product serves. */
    const int absolute = cfg->attn_type == LAM_ATTN_ABSOLUTE;
    if (lam_attn_looks_ahead(cfg->attn_type) || absolute) {
        ids->qkv = lam_params_add(p, &(lam_spec){2, {one, D}, linear, std, 0},
                                  "layers.%d.dec_attn.q_net.weight", layer);
        const int kv = lam_params_add(p, &(lam_spec){2, {two, D}, linear, std, 1},
                                      "layers.%d.dec_attn.kv_net.weight", layer);
        lam_params_set_maps(p, ids->qkv, 1);
        lam_params_set_maps(p, kv, 2);
    } else {
        ids->qkv = lam_params_add(p, &(lam_spec){2, {three, D}, linear, std, 0},
                                  "layers.%d.dec_attn.qkv_net.weight", layer);
        lam_params_set_maps(p, ids->qkv, 3);
    }
    ids->r_net = -1;
    if (cfg->attn_type != LAM_ATTN_LEARNED && !absolute) {
        ids->r_net = lam_params_add(p, &(lam_spec){2, {one, D}, linear, std, 0},
                                    "layers.%d.dec_attn.r_net.weight", layer);
        lam_params_set_maps(p, ids->r_net, 1);
    }
    ids->o_net = lam_params_add(p, &(lam_spec){2, {D, one}, linear, out_std, 0},
                                "layers.%d.dec_attn.o_net.weight", layer);

    const lam_spec gain = {1, {D}, LAM_INIT_GAIN, std, 0}, shift = {1, {D}, LAM_INIT_ZERO, 0, 0};
    ids->norm1_gain = lam_params_add(p, &gain, "layers.%d.dec_attn.layer_norm.weight", layer);
    ids->norm1_shift = lam_params_add(p, &shift, "layers.%d.dec_attn.layer_norm.bias", layer);
    ids->w1 = lam_params_add(p, &(lam_spec){2, {F, D}, linear, std, 0},
                             "layers.%d.pos_ff.CoreNet.0.weight", layer);
    ids->b1 = lam_params_add(p, &(lam_spec){1, {F}, LAM_INIT_ZERO, 0, 0},
                             "layers.%d.pos_ff.CoreNet.0.bias", layer);
    ids->w2 = lam_params_add(p, &(lam_spec){2, {D, F}, linear, out_std, 0},
                             "layers.%d.pos_ff.CoreNet.3.weight", layer);
    ids->b2 = lam_params_add(p, &shift, "layers.%d.pos_ff.CoreNet.3.bias", layer);
    ids->norm2_gain = lam_params_add(p, &gain, "layers.%d.pos_ff.layer_norm.weight", layer);
    ids->norm2_shift = lam_params_add(p, &shift, "layers.%d.pos_ff.layer_norm.bias", layer);
    lam_params_set_maps(p, ids->o_net, 1);
    lam_params_set_maps(p, ids->w1, 1);
    lam_params_set_maps(p, ids->w2, 1);
}
