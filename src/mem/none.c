/* none.c -- no memory: Transformer with relative positions ("Transformer+RPE" in the paper).
 *
 * Every segment starts from nothing; a row sees the rows of its own segment up to itself. */
#include "mem/causal.h"

static int slots(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out)
{
    (void)mem, (void)cfg, (void)full, (void)out;
    return 0;
}

const lam_mem_ops lam_mem_none = {
    .name = "none",
    .slots = slots,
    .attend_fwd = lam_causal_attend_fwd,
    .attend_bwd = lam_causal_attend_bwd,
    .cached = 1,
    .repeats = 1,
    .forgets = 1,
};
