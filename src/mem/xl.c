/* xl.c -- Transformer-XL: the last M inputs of every layer are kept and serve as keys and values (Eq. 5).
 *
 * They are constants: gradients reach W_k and W_v through them, never the rows themselves. */
#include "mem/causal.h"

static int slots(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out)
{
    /* The last layer's output is kept by the authors' code but nothing reads it. */
    const int n = mem->M == 0 ? 0 : cfg->n_layer + (full ? 1 : 0);
    for (int l = 0; l < n; l++)
        out[l] = (lam_slot){.name = "x", .source = LAM_FROM_X, .layer = l, .front = 1};
    return n;
}

static int implied(const lam_config *cfg)
{
    return !lam_attn_looks_ahead(cfg->attn_type) && cfg->mem_len > 0;
}

const lam_mem_ops lam_mem_xl = {
    .name = "xl",
    .title = "Transformer-XL",
    .paper = {.role = LAM_BASELINE,
              .parameters = 151,
              .macs = 157,
              .claim = "Tables 1, 2: LaMemo predicts better than Transformer-XL"},
    .traits =
        LAM_REMEMBERS | LAM_EXTENDS | LAM_CACHED | LAM_REPEATS | LAM_IN_INTEGERS | LAM_IN_TORCH,
    .attn_types = (const int[]){LAM_ATTN_XL, LAM_ATTN_LEARNED, -1},
    .cost = lam_cost_keys,
    .implied = implied,
    .slots = slots,
    .attend_fwd = lam_causal_attend_fwd,
    .attend_bwd = lam_causal_attend_bwd,
};
