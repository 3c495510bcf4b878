/* layer.h -- the parameters every layer has, whatever its memory: projections, W_o, FFN, two norms. */
#ifndef LAM_NN_LAYER_H
#define LAM_NN_LAYER_H

#include "nn/config.h"
#include "nn/params.h"

typedef struct lam_layer_params {
    int qkv; /* W_q, W_k, W_v below one another, [3HK][D]; some files name q_net and kv_net */
    int r_net, o_net;
    int norm1_gain, norm1_shift, norm2_gain, norm2_shift;
    int w1, b1, w2, b2;
    void *own; /* numbers of the memory's own parameters, in the memory's struct */
} lam_layer_params;

void lam_layer_declare(lam_layer_params *ids, lam_params *p, const lam_config *cfg,
                       const lam_dev *dev, int layer);

#endif
