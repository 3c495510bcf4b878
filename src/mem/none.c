/* none.c -- no memory: Transformer with relative positions ("Transformer+RPE" in the paper).
 *
 * Every segment starts from nothing; a row sees the rows of its own segment up to itself. */
#include "mem/causal.h"

static int slots(const lam_config *cfg, int full, lam_slot *out)
{
    (void)cfg, (void)full, (void)out;
    return 0;
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

const lam_mem_ops lam_mem_none = {"none", slots, leads, attend_fwd, attend_bwd};
