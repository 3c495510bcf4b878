/* sink.c -- attention sinks: the first rows of the text stay for ever in front of the newest M.
 *
 * They are constants like those of Transformer-XL; what lies between them and the newest rows is forgotten. */
#include "mem/causal.h"
#include "mem/fields.h"

enum { SINK, NEWEST, SLOTS }; /* slots of a layer, in the order in which rows stand in front */

typedef struct sink {
    int sink_len; /* rows that stay */
} sink;

static const lam_mem_field fields[] = {{LAM_FIELD(sink, sink_len, INT), .value = "4", .min = 1,
                                        .max = LAM_MAX_LEN, .option = "sink-len",
                                        .help = "First rows of the text, which stay."},
                                       {.json = {0}}};

extern const lam_mem_ops lam_mem_sink;

static int sink_len(const lam_config *cfg)
{
    sink own;
    lam_fields_get(&own, sizeof own, cfg, &lam_mem_sink);
    return own.sink_len;
}

static int slots(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out)
{
    (void)mem, (void)full;
    for (int l = 0; l < cfg->n_layer; l++) {
        lam_slot *slot = out + l * SLOTS;
        slot[SINK] = slot[NEWEST] = (lam_slot){.source = LAM_FROM_X, .layer = l, .front = 1};
        slot[SINK].name = "sink";
        slot[SINK].own = 1; /* commit below writes it */
        slot[SINK].cap = sink_len(cfg);
        slot[NEWEST].name = "m";
    }
    return cfg->n_layer * SLOTS;
}

/* The first rows that ever leave the newest M go to the sink, until it is full. */
static void commit(lam_mem *mem, const lam_segment *s, int done)
{
    const lam_evicted gone = lam_mem_evicted(s, done);
    for (int l = 0; l < s->cfg->n_layer; l++) {
        lam_slot *slot = &mem->slots[l * SLOTS + SINK];
        const int room = slot->cap - slot->n, rows = gone.rows < room ? gone.rows : room;
        lam_mem_copy(s, lam_packed_view(s, slot->rows, slot->cap, slot->n),
                     lam_row_view(s, LAM_ACT, s->layer[l].x, s->dims.D, gone.first), rows);
        slot->n += rows;
    }
}

/* The newest rows as in Transformer-XL, and as much for every row of the sink. */
static void cost(lam_mem_cost *out, const lam_config *cfg)
{
    const double L = cfg->n_layer, HK = lam_cost_heads(cfg), rows = sink_len(cfg);
    lam_cost_keys(out, cfg);
    out->forward = L * 2.0 * cfg->d_model * HK * rows / cfg->tgt_len;
    out->step = 2.0 * out->forward; /* the rows are constants */
    out->attention = L * 3.0 * HK * rows;
    out->external = out->forward + out->attention;
    out->external_rows = sink_len(cfg);
    out->positions = rows;
}

const lam_mem_ops lam_mem_sink = {
    .name = "sink",
    .title = "attention sinks",
    .traits = LAM_REMEMBERS | LAM_CACHED | LAM_REPEATS,
    .attn_types = (const int[]){LAM_ATTN_XL, -1},
    .cost = cost,
    .fields = fields,
    .options = "Attention sinks",
    .slots = slots,
    .attend_fwd = lam_causal_attend_fwd,
    .attend_bwd = lam_causal_attend_bwd,
    .beyond = sink_len,
    .beyond_name = "sink",
    .commit = commit,
};
