/* dims.h -- stored widths: the model's, rounded up to what the device prefers. */
#ifndef LAM_NN_DIMS_H
#define LAM_NN_DIMS_H

#include "nn/config.h"
#include "ops/ops.h"

typedef struct lam_dims {
    int D, K, HK, F; /* stored widths; HK is all heads of one row */
} lam_dims;

static inline int lam_padded(const lam_dev *dev, int width)
{
    return (width + dev->pad - 1) / dev->pad * dev->pad;
}

static inline lam_dims lam_dims_of(const lam_config *cfg, const lam_dev *dev)
{
    const int K = lam_padded(dev, cfg->d_head);
    return (lam_dims){lam_padded(dev, cfg->d_model), K, cfg->n_head * K,
                      lam_padded(dev, cfg->d_inner)};
}

#endif
