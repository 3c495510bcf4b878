/* compressive.c -- the Compressive Transformer: rows that leave the memory are not lost, groups of `rate` of them
 * become one row of a second, coarser memory (Rae et al., 2020).
 *
 * A layer sees [compressed ; memory ; current], each row one position, oldest first; both memories hold constants.
 * Compression is a convolution with kernel and stride `rate`, one per layer, or pooling.  The loss of
 * the language model never reaches it: it learns to keep what attention would have found.  With
 * the layer's own projections, content only and no gradient but the convolution's,
 *
 *   O = softmax(Q K(E)^T / sqrt(K)) V(E),   O' the same with Z = conv(E),   loss = |O' - O|^2
 *
 * meaned over rows, heads and columns, and over layers.  E, the evicted rows, and Z are made twice in training, by
 * backward and by commit: that costs less than keeping them for every layer. */
#include "mem/causal.h"

#include <math.h>

enum { WEIGHT, BIAS }; /* parameters */

/* Buffers the layers use in turn. */
enum {
    EVICTED,    /* ACT [B][groups * rate][D] */
    COMPRESSED, /* ACT [B][groups][D] */
    EVICTED_NORM,
    COMPRESSED_NORM, /* pre-norm: what attention reads instead */
    MEAN,
    RSTD,          /* WIDE [B * rows] of either */
    EVICTED_KV,    /* ACT [B][groups * rate][2HK] */
    COMPRESSED_KV, /* ACT [B][groups][2HK] */
    TARGET,        /* ACT [B][N][HK]: O, then the gradient of O' */
    REBUILT,       /* ACT [B][N][HK]: O' */
    LSE,           /* WIDE [B][N][H] */
    DKV,           /* ACT [B][groups][2HK] */
    DCOMPRESSED,   /* ACT [B][groups][D] */
    UNWANTED       /* WIDE [2][D]: gradients of the norm's parameters, which are constants here */
};

enum { COARSE, NEWEST, PENDING }; /* slots of a layer */

static int slots_per_layer(const lam_config *cfg)
{
    return cfg->remainder == LAM_REMAINDER_CARRY && cfg->rate > 1 ? 3 : 2;
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
        slot[COARSE].cap = cfg->cmem_len;
        slot[NEWEST].name = "m";
        slot[NEWEST].front = 1;
        slot[NEWEST].own = 0;
        if (per == 3) {
            slot[PENDING] = like;
            slot[PENDING].name = "pend";
            slot[PENDING].cap = cfg->rate - 1;
        }
    }
    return cfg->n_layer * per;
}

static const lam_slot *slot_of(const lam_segment *s, int layer, int which)
{
    return &s->mem->slots[layer * slots_per_layer(s->cfg) + which];
}

/* A group waiting in front of a segment must not be longer than what attention is made for. */
static lam_status check(const lam_config *cfg, int N, int M)
{
    (void)N;
    return cfg->rate <= M + cfg->cmem_len + 1
               ? LAM_OK
               : lam_fail(LAM_ERR_ARG,
                          "memory compressive: compression rate %d, at most %d with a memory of %d "
                          "rows and %d compressed ones",
                          cfg->rate, M + cfg->cmem_len + 1, M, cfg->cmem_len);
}

static int beyond(const lam_config *cfg)
{
    return cfg->cmem_len;
}

static int reaches(const lam_config *cfg)
{
    return cfg->cmem_len * cfg->rate;
}

static int is_learned(const lam_config *cfg)
{
    return cfg->pooling == LAM_POOL_CONV;
}

/* Nothing initialises the convolution in the authors' way: PyTorch's uniform start stays. */
static void declare(int *ids, lam_params *p, const lam_config *cfg, const lam_dev *dev, int layer)
{
    const lam_dim D = {1, cfg->d_model, lam_padded(dev, cfg->d_model)};
    const lam_dim taps = {1, cfg->rate, cfg->rate};
    const double range = 1.0 / sqrt((double)cfg->rate * cfg->d_model);
    if (!is_learned(cfg))
        return;
    ids[WEIGHT] = lam_params_add(p, &(lam_spec){3, {D, D, taps}, LAM_INIT_UNIFORM, range, 0},
                                 "layers.%d.compress.weight", layer);
    lam_params_turn(p, ids[WEIGHT]);
    ids[BIAS] = lam_params_add(p, &(lam_spec){1, {D}, LAM_INIT_UNIFORM, range, 0},
                               "layers.%d.compress.bias", layer);
    lam_params_set_apart(p, ids[WEIGHT]);
    lam_params_set_apart(p, ids[BIAS]);
}

static int reconstructs(const lam_segment *s)
{
    return is_learned(s->cfg) && s->cfg->aux_weight > 0.0;
}

static void layout(lam_segment *s, lam_arena *arena)
{
    const size_t B = (size_t)s->B, N = (size_t)s->N, c = (size_t)s->cfg->rate;
    const size_t D = (size_t)s->dims.D, HK = (size_t)s->dims.HK, H = (size_t)s->cfg->n_head;
    const size_t groups = B * ((N + c - 1) / c), rows = groups * c;
    s->own[EVICTED] = lam_mem_take(s, arena, LAM_ACT, rows * D);
    s->own[COMPRESSED] = lam_mem_take(s, arena, LAM_ACT, groups * D);
    if (!s->train || !reconstructs(s))
        return;
    const int pre = s->cfg->pre_lnorm, fresh = s->cfg->remainder == LAM_REMAINDER_DROP;
    s->own[EVICTED_NORM] = lam_mem_take(s, arena, LAM_ACT, pre && !fresh ? rows * D : 0);
    s->own[COMPRESSED_NORM] = lam_mem_take(s, arena, LAM_ACT, pre ? groups * D : 0);
    s->own[MEAN] = lam_mem_take(s, arena, LAM_WIDE, pre ? rows : 0);
    s->own[RSTD] = lam_mem_take(s, arena, LAM_WIDE, pre ? rows : 0);
    s->own[EVICTED_KV] = lam_mem_take(s, arena, LAM_ACT, fresh ? 0 : rows * 2 * HK);
    s->own[COMPRESSED_KV] = lam_mem_take(s, arena, LAM_ACT, groups * 2 * HK);
    s->own[TARGET] = lam_mem_take(s, arena, LAM_ACT, B * N * HK);
    s->own[REBUILT] = lam_mem_take(s, arena, LAM_ACT, B * N * HK);
    s->own[LSE] = lam_mem_take(s, arena, LAM_WIDE, B * N * H);
    s->own[DKV] = lam_mem_take(s, arena, LAM_ACT, groups * 2 * HK);
    s->own[DCOMPRESSED] = lam_mem_take(s, arena, LAM_ACT, groups * D);
    s->own[UNWANTED] = lam_mem_take(s, arena, LAM_WIDE, pre ? 2 * D : 0);
    s->aux = lam_mem_take(s, arena, LAM_WIDE, (size_t)s->cfg->n_layer * B * N * H);
}

/* What a segment of `done` tokens pushes out of the memory of every layer. */
typedef struct eviction {
    int first, fresh; /* rows of the segment */
    int front;        /* rows before them: pending ones, or zeros */
    int groups;       /* whole groups; they take front + fresh rows but for a rest below `rate` */
} eviction;

static eviction eviction_of(const lam_segment *s, int done)
{
    const lam_evicted rows = lam_mem_evicted(s, done);
    const int c = s->cfg->rate;
    eviction e = {.first = rows.first, .fresh = rows.rows};
    if (slots_per_layer(s->cfg) == 3)
        e.front = slot_of(s, 0, PENDING)->n;
    if (s->cfg->remainder == LAM_REMAINDER_PAD)
        e.front = (c - e.fresh % c) % c;
    e.groups = (e.front + e.fresh) / c;
    return e;
}

static lam_linear convolution(const lam_segment *s, const eviction *e)
{
    const int in = s->cfg->rate * s->dims.D;
    return (lam_linear){s->dev, 1, s->B * e->groups, in, s->dims.D, (size_t)in};
}

/* A group of rows side by side is one row of the convolution. */
static lam_rows group_rows(const lam_segment *s)
{
    return (lam_rows){s->own[EVICTED], 0, (size_t)s->cfg->rate * (size_t)s->dims.D};
}

/* E and Z of a layer. */
static void compress(const lam_segment *s, int layer, const eviction *e)
{
    const int rows = e->groups * s->cfg->rate;
    const size_t D = (size_t)s->dims.D;
    if (e->front > 0) {
        lam_view pending = {NULL, 0}; /* zeros */
        if (s->cfg->remainder == LAM_REMAINDER_CARRY) {
            const lam_slot *slot = slot_of(s, layer, PENDING);
            pending = (lam_view){slot->rows, (size_t)slot->cap * D};
        }
        lam_mem_copy(s, lam_packed_view(s, s->own[EVICTED], rows, 0), pending, e->front);
    }
    lam_mem_copy(s, lam_packed_view(s, s->own[EVICTED], rows, e->front),
                 lam_row_view(s, LAM_ACT, s->layer[layer].x, s->dims.D, e->first), rows - e->front);
    if (is_learned(s->cfg)) {
        const int *ids = s->ids[layer].own;
        const lam_linear l = convolution(s, e);
        lam_linear_fwd(&l, (lam_rows){s->own[COMPRESSED], 0, D}, group_rows(s),
                       lam_weight(s->params, ids[WEIGHT]),
                       &(lam_epilogue){.bias = lam_vector(s->params, ids[BIAS])});
        return;
    }
    s->dev->ops->pool(s->dev,
                      &(lam_pool){.kind = s->cfg->pooling == LAM_POOL_MEAN ? LAM_MEAN : LAM_MAXIMUM,
                                  .rows = s->B * e->groups,
                                  .group = s->cfg->rate,
                                  .width = s->cfg->d_model,
                                  .ld = s->dims.D,
                                  .in = s->own[EVICTED],
                                  .out = s->own[COMPRESSED]});
}

/* LN1 of a pre-norm layer, on rows of ours. */
static lam_norm norm_of(const lam_segment *s, int layer, int rows, void *in, void *out)
{
    return (lam_norm){.blocks = 1,
                      .rows = rows,
                      .width = s->cfg->d_model,
                      .ld = s->dims.D,
                      .eps = s->cfg->layer_norm_epsilon,
                      .x = {in, 0},
                      .y = {out, 0},
                      .mean = s->own[MEAN],
                      .rstd = s->own[RSTD],
                      .gain = lam_vector(s->params, s->ids[layer].norm1_gain),
                      .shift = lam_vector(s->params, s->ids[layer].norm1_shift)};
}

/* Keys and values of `rows` packed rows, side by side. */
static void project_keys(const lam_segment *s, int layer, int rows, void *kv, void *in, void *norm)
{
    const lam_linear l = lam_kv_map(s, rows);
    if (s->cfg->pre_lnorm) {
        const lam_norm a = norm_of(s, layer, rows, in, norm);
        s->dev->ops->norm_fwd(s->dev, &a);
        in = norm;
    }
    lam_linear_fwd(&l, (lam_rows){kv, 0, 2 * (size_t)s->dims.HK},
                   (lam_rows){in, 0, (size_t)s->dims.D}, lam_kv_weight(s, layer), NULL);
}

/* Attention by content alone: the current rows' queries on `keys` keys, all visible. */
static lam_attn content_attn(const lam_segment *s, int layer, int keys, void *out)
{
    const size_t n = (size_t)s->n;
    lam_attn a = lam_attn_base(s, LAM_SITE_ATTN, layer);
    a.drop = (lam_drop){0};
    a.mode = LAM_FULL;
    a.queries = s->n;
    a.keys = keys;
    a.q = lam_qkv_view(s, layer, LAM_Q, s->ctx);
    a.o = (lam_view){out, n * (size_t)s->dims.HK};
    a.lse = (lam_view){s->own[LSE], n * (size_t)s->cfg->n_head};
    return a;
}

/* ... whose keys and values are the rows of a packed buffer. */
static lam_attn packed_attn(const lam_segment *s, int layer, int keys, void *kv, void *out)
{
    const size_t HK = (size_t)s->dims.HK;
    lam_attn a = content_attn(s, layer, keys, out);
    a.kv_class = LAM_ACT;
    a.ldk = 2 * HK;
    a.k = (lam_view){kv, (size_t)keys * 2 * HK};
    a.value = (lam_view){lam_at(s->dev, LAM_ACT, kv, HK), a.k.step};
    return a;
}

/* O: what the evicted rows gave.  Unless rows stand before them, their keys are still there. */
static void attend_evicted(const lam_segment *s, int layer, const eviction *e)
{
    const int keys = e->groups * s->cfg->rate;
    lam_attn a;
    if (s->cfg->remainder == LAM_REMAINDER_DROP) {
        a = content_attn(s, layer, keys, s->own[TARGET]);
        a.k = lam_qkv_view(s, layer, LAM_K, e->first);
        a.value = lam_qkv_view(s, layer, LAM_V, e->first);
    } else {
        project_keys(s, layer, s->B * keys, s->own[EVICTED_KV], s->own[EVICTED],
                     s->own[EVICTED_NORM]);
        a = packed_attn(s, layer, keys, s->own[EVICTED_KV], s->own[TARGET]);
    }
    s->dev->ops->attn_fwd(s->dev, &a);
}

/* The loss, and in TARGET the gradient of O'. */
static void compare(const lam_segment *s, int layer)
{
    const lam_config *cfg = s->cfg;
    const size_t at = (size_t)layer * (size_t)s->B * (size_t)s->N * (size_t)cfg->n_head;
    const double parts = (double)cfg->n_layer * cfg->n_head * cfg->d_head;
    s->dev->ops->distance(s->dev, &(lam_distance){.rows = s->B * s->n,
                                                  .width = s->dims.HK,
                                                  .ld = s->dims.HK,
                                                  .weight = cfg->aux_weight / parts,
                                                  .scale = s->grad_scale,
                                                  .a = s->own[REBUILT],
                                                  .b = s->own[TARGET],
                                                  .sum = lam_at(s->dev, LAM_WIDE, s->aux, at),
                                                  .d = s->own[TARGET]});
}

/* forward was [K V](Z) = norm(Z) W_kv^T: dZ = norm'(dkv W_kv); the norm's parameters are constants. */
static void keys_bwd(const lam_segment *s, int layer, int rows)
{
    const lam_linear l = lam_kv_map(s, rows);
    const lam_rows dz = {s->own[DCOMPRESSED], 0, (size_t)s->dims.D};
    lam_linear_bwd_x(&l, dz, (lam_rows){s->own[DKV], 0, 2 * (size_t)s->dims.HK},
                     lam_kv_weight(s, layer), 0.0);
    if (!s->cfg->pre_lnorm)
        return;
    const size_t D = (size_t)s->dims.D;
    lam_norm a = norm_of(s, layer, rows, s->own[COMPRESSED], s->own[COMPRESSED_NORM]);
    a.dy = a.dx = (lam_view){s->own[DCOMPRESSED], 0};
    a.dgain = s->own[UNWANTED];
    a.dshift = lam_at(s->dev, LAM_WIDE, s->own[UNWANTED], D);
    s->dev->ops->zero(s->dev, s->own[UNWANTED], 2 * D * lam_class_size(s->dev, LAM_WIDE));
    s->dev->ops->norm_bwd(s->dev, &a);
}

/* forward was Z = E W^T + b. */
static void compress_bwd(const lam_segment *s, int layer, const eviction *e)
{
    const int *ids = s->ids[layer].own;
    const lam_linear l = convolution(s, e);
    lam_linear_bwd_w(&l, lam_grad(s->params, ids[WEIGHT]),
                     (lam_rows){s->own[DCOMPRESSED], 0, (size_t)s->dims.D}, group_rows(s));
    s->dev->ops->colsum(s->dev, &(lam_colsum){s->B * e->groups, s->cfg->d_model, s->dims.D,
                                              s->own[DCOMPRESSED], lam_grad(s->params, ids[BIAS])});
}

/* The auxiliary loss of one layer, forward and backward; dqkv is free by now. */
static void reconstruct(const lam_segment *s, int layer, const eviction *e)
{
    const size_t HK = (size_t)s->dims.HK;
    compress(s, layer, e);
    attend_evicted(s, layer, e);
    project_keys(s, layer, s->B * e->groups, s->own[COMPRESSED_KV], s->own[COMPRESSED],
                 s->own[COMPRESSED_NORM]);
    lam_attn a = packed_attn(s, layer, e->groups, s->own[COMPRESSED_KV], s->own[REBUILT]);
    s->dev->ops->attn_fwd(s->dev, &a);
    compare(s, layer);

    a.d_o = (lam_view){s->own[TARGET], a.o.step};
    a.dq = lam_dqkv_view(s, LAM_Q, s->ctx); /* nobody reads it: queries are constants */
    a.dk = (lam_view){s->own[DKV], a.k.step};
    a.dvalue = (lam_view){lam_at(s->dev, LAM_ACT, s->own[DKV], HK), a.k.step};
    s->dev->ops->attn_bwd(s->dev, &a);
    keys_bwd(s, layer, s->B * e->groups);
    compress_bwd(s, layer, e);
}

static void attend_bwd(const lam_segment *s, int layer)
{
    const eviction e = eviction_of(s, s->n);
    lam_causal_attend_bwd(s, layer);
    if (reconstructs(s) && e.groups > 0)
        reconstruct(s, layer, &e);
}

/* The newest of compressed rows, old and new ones; the old ones still stand in front of the segment. */
static void keep_coarse(const lam_segment *s, lam_slot *slot, const eviction *e)
{
    const int fresh = e->groups < slot->cap ? e->groups : slot->cap;
    const int room = slot->cap - fresh, old = slot->n < room ? slot->n : room;
    void *x = s->layer[slot->layer].x;
    lam_mem_copy(s, lam_packed_view(s, slot->rows, slot->cap, 0),
                 lam_row_view(s, LAM_ACT, x, s->dims.D, slot->n - old), old);
    lam_mem_copy(s, lam_packed_view(s, slot->rows, slot->cap, old),
                 lam_packed_view(s, s->own[COMPRESSED], e->groups, e->groups - fresh), fresh);
    slot->n = old + fresh;
}

/* The rest below `rate` rows; without a group it joins those that wait. */
static void keep_pending(const lam_segment *s, lam_slot *slot, const eviction *e)
{
    const int rest = e->front + e->fresh - e->groups * s->cfg->rate;
    const int old = e->groups > 0 ? 0 : slot->n, fresh = rest - old;
    lam_mem_copy(
        s, lam_packed_view(s, slot->rows, slot->cap, old),
        lam_row_view(s, LAM_ACT, s->layer[slot->layer].x, s->dims.D, e->first + e->fresh - fresh),
        fresh);
    slot->n = rest;
}

static void commit(lam_mem *mem, const lam_segment *s, int done)
{
    const eviction e = eviction_of(s, done);
    const int per = slots_per_layer(s->cfg);
    for (int l = 0; l < s->cfg->n_layer; l++) {
        lam_slot *slot = mem->slots + l * per;
        if (e.groups > 0) {
            compress(s, l, &e);
            keep_coarse(s, &slot[COARSE], &e);
        }
        if (per == 3)
            keep_pending(s, &slot[PENDING], &e);
    }
}

const lam_mem_ops lam_mem_compressive = {
    .name = "compressive",
    .slots = slots,
    .attend_fwd = lam_causal_attend_fwd,
    .attend_bwd = attend_bwd,
    .cached = 1,
    .repeats = 1,
    .check = check,
    .beyond = beyond,
    .reaches = reaches,
    .declare = declare,
    .layout = layout,
    .commit = commit,
};
