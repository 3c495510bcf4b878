/* none.c -- no memory: Transformer with relative positions ("Transformer+RPE" in the paper).
 *
 * Every segment starts from nothing; a row sees the rows of its own segment up to itself. */
#include "mem/causal.h"

static int slots(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out)
{
    (void)mem, (void)cfg, (void)full, (void)out;
    return 0;
}

static int implied(const lam_config *cfg)
{
    return !lam_attn_looks_ahead(cfg->attn_type) && cfg->mem_len == 0;
}

static void cost(lam_mem_cost *out, const lam_config *cfg)
{
    (void)out, (void)cfg;
}

const lam_mem_ops lam_mem_none = {
    .name = "none",
    .title = "Transformer+RPE",
    .paper = {.role = LAM_COMPARED,
              .parameters = 151,
              .macs = 148,
              .claim = "Tables 1, 2: and than Transformer+RPE, which has no memory"},
    .traits = LAM_EXTENDS | LAM_CACHED | LAM_REPEATS | LAM_IN_INTEGERS | LAM_IN_TORCH,
    .attn_types = (const int[]){LAM_ATTN_XL, LAM_ATTN_LEARNED, LAM_ATTN_ABSOLUTE, -1},
    .cost = cost,
    .implied = implied,
    .slots = slots,
    .attend_fwd = lam_causal_attend_fwd,
    .attend_bwd = lam_causal_attend_bwd,
};
