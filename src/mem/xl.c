/* xl.c -- Transformer-XL: the last M inputs of every layer are kept and serve as keys and values (Eq. 5).
 *
 * They are constants: gradients reach W_k and W_v through them, never the rows themselves. */
#include "mem/causal.h"

static int slots(const lam_config *cfg, int full, lam_slot *out)
{
    /* The last layer's output is kept by the authors' code but nothing reads it. */
    const int n = cfg->mem_len == 0 ? 0 : cfg->n_layer + (full ? 1 : 0);
    for (int l = 0; l < n; l++)
        out[l] = (lam_slot){.source = LAM_FROM_X, .layer = l};
    return n;
}

static int leads(const lam_config *cfg, int layer)
{
    (void)cfg, (void)layer;
    return 0;
}

static void attend_fwd(const lam_segment *s, int layer)
{
    lam_causal_fwd(s, layer, 0);
}

static void attend_bwd(const lam_segment *s, int layer)
{
    lam_causal_bwd(s, layer);
    lam_project_bwd(s, layer, s->ctx);
}

const lam_mem_ops lam_mem_xl = {"xl", slots, leads, attend_fwd, attend_bwd};
