/* compressive.c -- the Compressive Transformer: rows that leave the memory are not lost, groups of `rate` of them
 * become one row of a second, coarser memory (Rae et al., 2020).
 *
 * A layer sees [compressed ; memory ; current], each row one position, oldest first; both memories hold constants.
 * Compression is a convolution with kernel and stride `rate`, one per layer, or pooling.  The loss of
 * the language model never reaches it; what it learns from is in compressive_loss.c.  E, the evicted rows, and Z,
 * what they become, are made twice in training, by that loss and by commit: that costs less than keeping
 * them for every layer. */
#include "mem/compressive_int.h"

#include <math.h>
#include <stdio.h>

enum { MOST_RATE = LAM_FIT_LEAST }; /* a group fits into a memory that was made shorter */

static const char *const pooling_names[] = {"conv", "mean", "max", NULL};
static const char *const remainder_names[] = {"drop", "pad", "carry", NULL};

static const lam_mem_field fields[] = {
    {LAM_FIELD(lam_compressive, cmem_len, INT), .min = 1, .max = LAM_MAX_LEN,
     .follows = LAM_FOLLOWS_MEM_LEN, .option = "cmem-len",
     .help = "Length of the compressed memory, in compressed rows."},
    {LAM_FIELD(lam_compressive, rate, INT), .value = "4", .min = 1, .max = MOST_RATE,
     .option = "rate", .aliases = "compression-rate",
     .help = "Compression rate: number of evicted rows that become one."},
    {LAM_WORD_FIELD(lam_compressive, pooling, pooling_names), .value = "conv", .option = "pooling",
     .help = "Compression function: conv (a learned convolution), mean or max pooling."},
    {LAM_WORD_FIELD(lam_compressive, remainder, remainder_names), .value = "drop",
     .option = "remainder",
     .help = "Evicted rows that do not fill a group of --rate: drop the newest of them, pad the "
             "group with zeros, or "
             "carry them over to the next segment."},
    {LAM_FIELD(lam_compressive, aux_weight, REAL), .value = "1", .max = 1e6, .option = "aux-weight",
     .help = "Weight of the attention-reconstruction loss, which trains the compression."},
    {.json = {0}}};

static lam_status resolve(lam_config *cfg)
{
    lam_compressive o;
    lam_fields_get(&o, sizeof o, cfg, &lam_mem_compressive);
    if (o.cmem_len == 0)
        o.cmem_len = cfg->mem_len;
    if (o.cmem_len == 0)
        return lam_fail(LAM_ERR_ARG,
                        "config: memory compressive needs cmem_len or mem_len above 0");
    lam_fields_put(cfg, &lam_mem_compressive, &o, sizeof o);
    return LAM_OK;
}

static int slots(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out)
{
    const int per = slots_per_layer(cfg);
    (void)mem, (void)full;
    for (int l = 0; l < cfg->n_layer; l++) {
        const lam_slot like = {.source = LAM_FROM_X, .layer = l, .own = 1};
        lam_slot *slot = out + l * per;
        slot[COARSE] = slot[NEWEST] = like;
        slot[COARSE].name = "cm";
        slot[COARSE].front = 1;
        slot[COARSE].cap = fields_of(cfg).cmem_len;
        slot[NEWEST].name = "m";
        slot[NEWEST].front = 1;
        slot[NEWEST].own = 0;
        if (has_pending(cfg)) {
            slot[PENDING] = like;
            slot[PENDING].name = "pend";
            slot[PENDING].cap = fields_of(cfg).rate - 1;
        }
    }
    return cfg->n_layer * per;
}

/* A group waiting in front of a segment must not be longer than what attention is made for. */
static lam_status check(const lam_config *cfg, int N, int M)
{
    const lam_compressive o = fields_of(cfg);
    (void)N;
    return o.rate <= M + o.cmem_len + 1
               ? LAM_OK
               : lam_fail(LAM_ERR_ARG,
                          "memory compressive: compression rate %d, at most %d with a memory of %d "
                          "rows and %d compressed ones",
                          o.rate, M + o.cmem_len + 1, M, o.cmem_len);
}

static int beyond(const lam_config *cfg)
{
    return fields_of(cfg).cmem_len;
}

static int reaches(const lam_config *cfg)
{
    return fields_of(cfg).cmem_len * fields_of(cfg).rate;
}

static void fit(lam_config *cfg, int64_t most)
{
    lam_compressive o;
    lam_fields_get(&o, sizeof o, cfg, &lam_mem_compressive);
    o.cmem_len = lam_length_fit(o.cmem_len, most);
    lam_fields_put(cfg, &lam_mem_compressive, &o, sizeof o);
}

/* Nothing initialises the convolution in the authors' way: PyTorch's uniform start stays. */
static void declare(void *own, lam_params *p, const lam_config *cfg, const lam_dev *dev, int layer)
{
    const lam_dim D = {1, cfg->d_model, lam_padded(dev, cfg->d_model)};
    const int rate = fields_of(cfg).rate;
    const lam_dim taps = {1, rate, rate};
    const double range = 1.0 / sqrt((double)rate * cfg->d_model);
    compressor *ids = own;
    if (!is_learned(cfg))
        return;
    ids->weight = lam_params_add(p, &(lam_spec){3, {D, D, taps}, LAM_INIT_UNIFORM, range, 0},
                                 "layers.%d.compress.weight", layer);
    lam_params_turn(p, ids->weight);
    ids->bias = lam_params_add(p, &(lam_spec){1, {D}, LAM_INIT_UNIFORM, range, 0},
                               "layers.%d.compress.bias", layer);
    lam_params_set_apart(p, ids->weight);
    lam_params_set_apart(p, ids->bias);
}

static void layout(lam_segment *s, lam_arena *arena)
{
    const size_t B = (size_t)s->B, N = (size_t)s->N, c = (size_t)fields_of(s->cfg).rate;
    const size_t D = (size_t)s->dims.D, HK = (size_t)s->dims.HK, H = (size_t)s->cfg->n_head;
    workspace *work = work_of(s);
    const size_t groups = B * ((N + c - 1) / c), rows = groups * c;
    work->evicted = lam_mem_take(s, arena, LAM_ACT, rows * D);
    work->compressed = lam_mem_take(s, arena, LAM_ACT, groups * D);
    if (!s->train || !reconstructs(s->cfg))
        return;
    const int pre = s->cfg->pre_lnorm, fresh = fields_of(s->cfg).remainder == DROP;
    work->evicted_norm = lam_mem_take(s, arena, LAM_ACT, pre && !fresh ? rows * D : 0);
    work->compressed_norm = lam_mem_take(s, arena, LAM_ACT, pre ? groups * D : 0);
    work->mean = lam_mem_take(s, arena, LAM_WIDE, pre ? rows : 0);
    work->rstd = lam_mem_take(s, arena, LAM_WIDE, pre ? rows : 0);
    work->evicted_kv = lam_mem_take(s, arena, LAM_ACT, fresh ? 0 : rows * 2 * HK);
    work->compressed_kv = lam_mem_take(s, arena, LAM_ACT, groups * 2 * HK);
    work->target = lam_mem_take(s, arena, LAM_ACT, B * N * HK);
    work->rebuilt = lam_mem_take(s, arena, LAM_ACT, B * N * HK);
    work->lse = lam_mem_take(s, arena, LAM_WIDE, B * N * H);
    work->dkv = lam_mem_take(s, arena, LAM_ACT, groups * 2 * HK);
    work->dcompressed = lam_mem_take(s, arena, LAM_ACT, groups * D);
    work->unwanted = lam_mem_take(s, arena, LAM_WIDE, pre ? 2 * D : 0);
    s->aux = lam_mem_take(s, arena, LAM_WIDE, (size_t)s->cfg->n_layer * B * N * H);
}

static lam_eviction eviction_of(const lam_segment *s, int done)
{
    const lam_evicted rows = lam_mem_evicted(s, done);
    const int c = fields_of(s->cfg).rate;
    lam_eviction e = {.first = rows.first, .fresh = rows.rows};
    if (has_pending(s->cfg))
        e.front = slot_of(s, 0, PENDING)->n;
    if (fields_of(s->cfg).remainder == PAD)
        e.front = (c - e.fresh % c) % c;
    e.groups = (e.front + e.fresh) / c;
    return e;
}

void lam_compress(const lam_segment *s, int layer, const lam_eviction *e)
{
    const int rows = e->groups * fields_of(s->cfg).rate;
    const size_t D = (size_t)s->dims.D;
    if (e->front > 0) {
        lam_view pending = {NULL, 0}; /* zeros */
        if (fields_of(s->cfg).remainder == CARRY) {
            const lam_slot *slot = slot_of(s, layer, PENDING);
            pending = (lam_view){slot->rows, (size_t)slot->cap * D};
        }
        lam_mem_copy(s, lam_packed_view(s, work_of(s)->evicted, rows, 0), pending, e->front);
    }
    lam_mem_copy(s, lam_packed_view(s, work_of(s)->evicted, rows, e->front),
                 lam_row_view(s, LAM_ACT, s->layer[layer].x, s->dims.D, e->first), rows - e->front);
    if (is_learned(s->cfg)) {
        const compressor *ids = params_of(s, layer);
        const lam_linear l = convolution(s, e);
        lam_linear_fwd(&l, (lam_rows){work_of(s)->compressed, 0, D}, group_rows(s),
                       lam_weight(s->params, ids->weight),
                       &(lam_epilogue){.bias = lam_vector(s->params, ids->bias)});
        return;
    }
    s->dev->ops->pool(
        s->dev, &(lam_pool){.kind = fields_of(s->cfg).pooling == MEAN_POOL ? LAM_MEAN : LAM_MAXIMUM,
                            .rows = s->B * e->groups,
                            .group = fields_of(s->cfg).rate,
                            .width = s->cfg->d_model,
                            .ld = s->dims.D,
                            .in = work_of(s)->evicted,
                            .out = work_of(s)->compressed});
}

static void reconstruct(const lam_segment *s, int layer)
{
    const lam_eviction e = eviction_of(s, s->n);
    if (e.groups > 0)
        lam_compress_loss(s, layer, &e);
}

/* forward was  C = causal attention over compressed, remembered and current rows;  the loss of the compression, which has
 * no forward of its own, is computed here with its gradient. */
static void attend_bwd(const lam_segment *s, int layer)
{
    lam_causal_attend_bwd(s, layer);
    if (reconstructs(s->cfg))
        lam_mem_each(s, layer, reconstruct);
}

/* The newest of compressed rows, old and new ones; the old ones still stand in front of the segment. */
static void keep_coarse(const lam_segment *s, lam_slot *slot, const lam_eviction *e)
{
    const int fresh = e->groups < slot->cap ? e->groups : slot->cap;
    const int room = slot->cap - fresh, old = slot->n < room ? slot->n : room;
    void *x = s->layer[slot->layer].x;
    lam_mem_copy(s, lam_packed_view(s, slot->rows, slot->cap, 0),
                 lam_row_view(s, LAM_ACT, x, s->dims.D, s->ctx - s->mem->m - old), old);
    lam_mem_copy(s, lam_packed_view(s, slot->rows, slot->cap, old),
                 lam_packed_view(s, work_of(s)->compressed, e->groups, e->groups - fresh), fresh);
    slot->n = old + fresh;
}

/* The rest below `rate` rows; without a group it joins those that wait. */
static void keep_pending(const lam_segment *s, lam_slot *slot, const lam_eviction *e)
{
    const int rest = e->front + e->fresh - e->groups * fields_of(s->cfg).rate;
    const int old = e->groups > 0 ? 0 : slot->n, fresh = rest - old;
    lam_mem_copy(
        s, lam_packed_view(s, slot->rows, slot->cap, old),
        lam_row_view(s, LAM_ACT, s->layer[slot->layer].x, s->dims.D, e->first + e->fresh - fresh),
        fresh);
    slot->n = rest;
}

static void commit(lam_mem *mem, const lam_segment *s, int done)
{
    const lam_eviction e = eviction_of(s, done);
    const int per = slots_per_layer(s->cfg);
    for (int l = 0; l < s->cfg->n_layer; l++) {
        lam_slot *slot = mem->slots + l * per;
        if (e.groups > 0) {
            lam_compress(s, l, &e);
            keep_coarse(s, &slot[COARSE], &e);
        }
        if (has_pending(s->cfg))
            keep_pending(s, &slot[PENDING], &e);
    }
}

/* Besides the newest rows: keys and values of the compressed ones, attention to them, one strided convolution per
 * evicted row, made again by commit in training. */
static void cost(lam_mem_cost *out, const lam_config *cfg)
{
    const double D = cfg->d_model, HK = lam_cost_heads(cfg), L = cfg->n_layer;
    const int rows = fields_of(cfg).cmem_len > 0 ? fields_of(cfg).cmem_len : cfg->mem_len;
    const double keys = L * 2.0 * D * HK * rows / cfg->tgt_len;
    const double convolution = is_learned(cfg) ? L * D * D : 0.0;
    lam_cost_keys(out, cfg);
    out->attention = L * 3.0 * HK * rows;
    out->external = keys + out->attention + convolution;
    out->external_rows = rows;
    out->forward = keys + convolution;
    out->step = 2.0 * keys + 3.0 * convolution + lam_compress_loss_macs(cfg);
    out->positions = rows;
}

static void details(char *text, size_t size, const lam_config *cfg)
{
    const lam_compressive o = fields_of(cfg);
    snprintf(text, size, "%d rows at a rate of %d, %s", o.cmem_len, o.rate,
             pooling_names[o.pooling]);
}

static void remark(char *text, size_t size, const lam_config *cfg)
{
    snprintf(
        text, size,
        "each of its %d compressed rows stands for %d tokens but has one position, so distances "
        "beyond the memory are counted in rows",
        fields_of(cfg).cmem_len, fields_of(cfg).rate);
}

const lam_mem_ops lam_mem_compressive = {
    .name = "compressive",
    .title = "Compressive Transformer",
    .paper = {.role = LAM_COMPARED,
              .parameters = 161,
              .macs = 169,
              .claim = "Tables 1, 2: and than the Compressive Transformer"},
    .traits = LAM_REMEMBERS | LAM_CACHED | LAM_REPEATS | LAM_CLIPS_APART,
    .attn_types = (const int[]){LAM_ATTN_XL, -1},
    .cost = cost,
    .fields = fields,
    .options = "The compressive memory",
    .resolve = resolve,
    .slots = slots,
    .attend_fwd = lam_causal_attend_fwd,
    .attend_bwd = attend_bwd,
    .check = check,
    .beyond = beyond,
    .beyond_name = "compressed",
    .reaches = reaches,
    .fit = fit,
    .params_size = sizeof(compressor),
    .shared_size = sizeof(workspace),
    .declare = declare,
    .layout = layout,
    .commit = commit,
    .details = details,
    .remark = remark,
};
