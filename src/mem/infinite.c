/* infinite.c -- the infinity-former: beyond Transformer-XL's memory, a long-term memory of fixed size in continuous
 * time (Martins et al., 2022).
 *
 * Rows that leave the newest M wait until there is a block of them.  A block, smoothed by a gate, is fitted by
 * Gaussian bumps (mem/basis.h): the memory is the coefficients B of a signal on [0, 1].  The next block contracts
 * the old signal to [0, tau], takes the rest for itself, and both are fitted again: the memory never grows, what
 * is old becomes coarse.  Every layer reads it before its rows do:
 *
 *   x~ = x * sigmoid(conv(x))                        the gate, kernel 3
 *   B  = G^T x~, or G_old^T Psi B_old + G_new^T x~   Psi samples the old signal, G fits
 *   K, V = B W_K^T, B W_V^T
 *   mu, var of a Gaussian on [0, 1] from the scores q . k_j (ops/continuous.h), r_j the mean of bump j under it
 *   a = (r V) W_out^T, added to the attention's output
 *
 * This file says what the memory declares and what it keeps; the first two lines are made in infinite_fit.c, the
 * others in infinite_read.c.  Constants: waiting rows and B_old. */
#include "mem/infinite_int.h"

#include <math.h>
#include <stdio.h>

enum { MOST_BASIS = 1 << 12 };

static const char *const sticky_names[] = {"off", "left", "uniform", NULL};

static const lam_mem_field fields[] = {
    {LAM_FIELD(lam_infinite, ltm_basis, INT), .min = 1, .max = MOST_BASIS,
     .follows = LAM_FOLLOWS_MEM_LEN, .weighs = 1, .option = "ltm-basis",
     .help = "Number of basis functions of the long-term memory, a continuous signal: its size "
             "does not depend on the length of the text."},
    {LAM_FIELD(lam_infinite, ltm_block, INT), .min = 2, .max = LAM_MAX_LEN,
     .follows = LAM_FOLLOWS_TGT_LEN, .option = "ltm-block",
     .help =
         "Rows that enter the long-term memory at once, after they have left the newest mem-len."},
    {LAM_FIELD(lam_infinite, ltm_samples, INT), .value = "512", .min = 1, .max = LAM_MAX_LEN,
     .option = "ltm-samples",
     .help = "Points at which the old signal is sampled when it is contracted and fitted again."},
    {LAM_WORD_FIELD(lam_infinite, ltm_sticky, sticky_names), .fresh = "left",
     /* Table 1 */ .option = "ltm-sticky",
     .help = "Sticky memories: draw those points where attention has been, at left edges of bins "
             "(left) or within bins "
             "(uniform); off spaces them evenly."},
    {LAM_FIELD(lam_infinite, ltm_tau, REAL), .value = "0.5", .max = 1, .rule = LAM_BETWEEN_0_AND_1,
     .option = "ltm-tau",
     .help = "Part of the new signal that the contracted old one takes (tau)."},
    {LAM_FIELD(lam_infinite, ltm_ridge, REAL), .value = "0.5", .max = 1e6, .rule = LAM_POSITIVE,
     .option = "ltm-ridge",
     .help = "Ridge penalty of the regression that fits the basis functions."},
    {LAM_FIELD(lam_infinite, ltm_sigma0, REAL), .value = "0.05", .max = 1e3, .rule = LAM_POSITIVE,
     .option = "ltm-sigma0", .help = "Standard deviation of the prior on the attention density."},
    {LAM_FIELD(lam_infinite, ltm_kl, REAL), .value = "1e-6", .max = 1e6, .option = "ltm-kl",
     .help = "Weight of the KL divergence between the attention density and its prior."},
    {LAM_FIELD(lam_infinite, ltm_var_min, REAL), .value = "1e-6", .max = 1e3, .rule = LAM_POSITIVE,
     .option = "ltm-var-min", .help = "Smallest variance of the attention density."},
    {LAM_FIELD(lam_infinite, ltm_reset, INT), .value = "0", .max = 1 << 30, .option = "ltm-reset",
     .help = "Empty the long-term memory every N tokens; 0: never."},
    {LAM_FIELD(lam_infinite, ltm_share_proj, FLAG), .option = "ltm-share-proj",
     .help = "Project the long-term memory to keys and values by the layer's own weights, not by "
             "matrices of its own."},
    {LAM_FIELD(lam_infinite, ltm_padding, FLAG), .value = "1"},
    {LAM_FIELD(lam_infinite, ltm_widths, REALS), .value = "0.01 0.05", .rule = LAM_POSITIVE},
    {.json = {0}}};

static lam_status resolve(lam_config *cfg)
{
    lam_infinite o;
    lam_fields_get(&o, sizeof o, cfg, &lam_mem_infinite);
    if (o.ltm_basis == 0)
        o.ltm_basis = cfg->mem_len - cfg->mem_len % o.ltm_widths.n;
    if (o.ltm_block == 0)
        o.ltm_block = cfg->tgt_len;
    if (o.ltm_basis == 0)
        return lam_fail(LAM_ERR_ARG,
                        "config: memory infinite needs ltm_basis or mem_len of %d or more",
                        o.ltm_widths.n);
    if (o.ltm_block == 1)
        return lam_fail(LAM_ERR_ARG,
                        "config: memory infinite needs ltm_block or tgt_len of 2 or more");
    if (o.ltm_basis % o.ltm_widths.n)
        return lam_fail(LAM_ERR_ARG, "config: ltm_basis is %d, must be a multiple of the %d widths",
                        o.ltm_basis, o.ltm_widths.n);
    lam_fields_put(cfg, &lam_mem_infinite, &o, sizeof o);
    return LAM_OK;
}

static int slots(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out)
{
    const int per = slots_per_layer(cfg);
    (void)full;
    for (int l = 0; l < cfg->n_layer; l++) {
        lam_slot *slot = out + l * per;
        slot[NEWEST] = (lam_slot){.name = "m", .source = LAM_FROM_X, .layer = l, .front = 1};
        slot[PENDING] = slot[SIGNAL] = (lam_slot){.source = LAM_FROM_X, .layer = l, .own = 1};
        slot[PENDING].name = "pend";
        slot[PENDING].cap = block_rows(cfg, mem->N) + mem->N - 1;
        slot[SIGNAL].name = "B";
        slot[SIGNAL].cap = fields_of(cfg).ltm_basis;
        if (!is_sticky(cfg))
            continue;
        slot[MEAN_WAS] = slot[VAR_WAS] =
            (lam_slot){.source = LAM_FROM_LSE, .layer = l, .own = 1, .cap = mem->N};
        slot[MEAN_WAS].name = "mu";
        slot[VAR_WAS].name = "var";
    }
    return cfg->n_layer * per;
}

static lam_status check(const lam_config *cfg, int N, int M)
{
    (void)cfg, (void)N;
    return M > 0 ? LAM_OK : lam_fail(LAM_ERR_ARG, "memory infinite needs a memory length above 0");
}

/* The signal is there from the first block on. */
static int reaches(const lam_config *cfg)
{
    return fields_of(cfg).ltm_block;
}

/* Rows wait only after they left the newest ones, of which there is at least one: fewer than `most` do. */
static void fit(lam_config *cfg, int64_t most)
{
    lam_infinite o;
    lam_fields_get(&o, sizeof o, cfg, &lam_mem_infinite);
    o.ltm_block = lam_length_fit(o.ltm_block, most);
    if (o.ltm_block >= most)
        o.ltm_samples = 1; /* there will be no signal */
    lam_fields_put(cfg, &lam_mem_infinite, &o, sizeof o);
}

static void declare(void *own, lam_params *p, const lam_config *cfg, const lam_dev *dev, int layer)
{
    ltm_params *ids = own;
    const lam_dims w = lam_dims_of(cfg, dev);
    const lam_dim D = {1, cfg->d_model, w.D}, heads = {cfg->n_head, cfg->d_head, w.K};
    const lam_dim taps = {1, LAM_LTM_TAPS, LAM_LTM_TAPS};
    const lam_dim N = {1, fields_of(cfg).ltm_basis, lam_padded(dev, fields_of(cfg).ltm_basis)};
    const lam_init linear = LAM_INIT_LINEAR, uniform = LAM_INIT_UNIFORM;
    const double std = cfg->init_std, range = 1.0 / sqrt((double)LAM_LTM_TAPS * cfg->d_model);
    if (!fields_of(cfg).ltm_share_proj) {
        ids->key = lam_params_add(p, &(lam_spec){2, {heads, D}, linear, std, 0},
                                  "layers.%d.ltm.key.weight", layer);
        ids->value = lam_params_add(p, &(lam_spec){2, {heads, D}, linear, std, 1},
                                    "layers.%d.ltm.value.weight", layer);
        ids->out = lam_params_add(p, &(lam_spec){2, {D, heads}, linear, std, 0},
                                  "layers.%d.ltm.out.weight", layer);
        lam_params_set_maps(p, ids->key, 1);
        lam_params_set_maps(p, ids->value, 1);
        lam_params_set_maps(p, ids->out, 1);
    }
    ids->conv = lam_params_add(p, &(lam_spec){3, {D, D, taps}, uniform, range, 0},
                               "layers.%d.ltm.conv.weight", layer);
    lam_params_turn(p, ids->conv);
    ids->conv_bias =
        lam_params_add(p, &(lam_spec){1, {D}, uniform, range, 0}, "layers.%d.ltm.conv.bias", layer);
    ids->mu =
        lam_params_add(p, &(lam_spec){1, {N}, linear, std, 0}, "layers.%d.ltm.mu.weight", layer);
    ids->sigma =
        lam_params_add(p, &(lam_spec){1, {N}, linear, std, 1}, "layers.%d.ltm.sigma.weight", layer);
}

static void layout_layer(lam_segment *s, lam_arena *arena, int layer)
{
    const size_t B = (size_t)s->B, D = (size_t)s->dims.D, HK = (size_t)s->dims.HK;
    const size_t H = (size_t)s->cfg->n_head, N = (size_t)fields_of(s->cfg).ltm_basis,
                 length = (size_t)s->N;
    const int same = layer > 0 && !s->train;
    ltm_rows *own = rows_of(s, layer), *first = rows_of(s, 0);
    const size_t block = (size_t)block_of(s);
    own->pre = same ? first->pre : lam_mem_take(s, arena, LAM_ACT, B * block * D);
    own->z = same ? first->z : lam_mem_take(s, arena, LAM_ACT, B * length * HK);
    own->coef = lam_mem_take(s, arena, LAM_ACT, B * N * D);
    own->kv = lam_mem_take(s, arena, LAM_ACT, B * N * 2 * HK);
    own->pull = lam_mem_take(s, arena, LAM_ACT, B * 2 * HK);
    own->mean = lam_mem_take(s, arena, LAM_WIDE, B * length * H);
    own->var = lam_mem_take(s, arena, LAM_WIDE, B * length * H);
}

static void *of_stream(const lam_segment *s, lam_class type, void *p, size_t count)
{
    return lam_at(s->dev, type, p, (size_t)s->stream * count);
}

ltm_rows lam_ltm_rows(const lam_segment *s, int layer)
{
    const ltm_rows *all = rows_of(s, layer);
    const size_t D = (size_t)s->dims.D, HK = (size_t)s->dims.HK, H = (size_t)s->cfg->n_head;
    const size_t N = (size_t)fields_of(s->cfg).ltm_basis, length = (size_t)s->N;
    return (ltm_rows){.pre = of_stream(s, LAM_ACT, all->pre, (size_t)block_of(s) * D),
                      .coef = of_stream(s, LAM_ACT, all->coef, N * D),
                      .kv = of_stream(s, LAM_ACT, all->kv, N * 2 * HK),
                      .pull = of_stream(s, LAM_ACT, all->pull, 2 * HK),
                      .mean = of_stream(s, LAM_WIDE, all->mean, length * H),
                      .var = of_stream(s, LAM_WIDE, all->var, length * H),
                      .z = of_stream(s, LAM_ACT, all->z, length * HK)};
}

static void layout(lam_segment *s, lam_arena *arena)
{
    const size_t B = (size_t)s->B, D = (size_t)s->dims.D, HK = (size_t)s->dims.HK;
    const size_t H = (size_t)s->cfg->n_head, N = (size_t)fields_of(s->cfg).ltm_basis,
                 ld = basis_ld(s);
    const size_t length = (size_t)s->N, block = (size_t)block_of(s);
    const size_t samples = is_sticky(s->cfg) ? (size_t)fields_of(s->cfg).ltm_samples : 0;
    const size_t train = s->train ? 1 : 0;
    ltm_work *work = work_of(s);
    for (int l = 0; l < s->cfg->n_layer; l++)
        layout_layer(s, arena, l);
    work->shifted = lam_mem_take(s, arena, LAM_ACT, LAM_LTM_TAPS * B * block * D);
    work->gated = lam_mem_take(s, arena, LAM_ACT, B * block * D);
    work->r = lam_mem_take(s, arena, LAM_ACT, B * H * length * ld);
    work->dr = lam_mem_take(s, arena, LAM_ACT, train * B * H * length * ld);
    work->dz = lam_mem_take(s, arena, LAM_ACT, train * B * length * HK);
    work->dkv = lam_mem_take(s, arena, LAM_ACT, train * B * N * 2 * HK);
    work->dpull = lam_mem_take(s, arena, LAM_ACT, train * B * 2 * HK);
    work->dcoef = lam_mem_take(s, arena, LAM_ACT, train * B * N * D);
    work->centre = lam_mem_take(s, arena, LAM_WIDE, N);
    work->width = lam_mem_take(s, arena, LAM_WIDE, N);
    work->first = lam_mem_take(s, arena, LAM_ACT, block * ld);
    work->fresh = lam_mem_take(s, arena, LAM_ACT, block * ld);
    work->old = lam_mem_take(s, arena, LAM_ACT, (samples > 0 ? samples : N) * ld);
    work->draws = lam_mem_take(s, arena, LAM_WIDE, samples);
    work->edges = lam_mem_take(s, arena, LAM_WIDE, samples > 0 ? B * (LAM_LTM_BINS + 1) : 0);
    work->psi = lam_mem_take(s, arena, LAM_ACT, B * samples * ld);
    work->samples = lam_mem_take(s, arena, LAM_ACT, B * samples * D);
    if (s->train)
        s->aux = lam_mem_take(s, arena, LAM_WIDE, (size_t)s->cfg->n_layer * B * length * H);
}

static void attend_fwd(const lam_segment *s, int layer)
{
    lam_causal_fwd(s, layer, 0);
    lam_mem_each(s, layer, lam_ltm_read);
}

static void output(const lam_segment *s, int layer)
{
    lam_mem_each(s, layer, lam_ltm_output);
}

/* forward was  [q k v] = x W^T,  C = causal attention,  and the long-term memory read with the same q: dqkv is complete, and
 * the projections can follow, once both have added to it. */
static void attend_bwd(const lam_segment *s, int layer)
{
    lam_causal_bwd(s, layer);
    lam_mem_each(s, layer, lam_ltm_read_bwd);
    lam_project_bwd(s, layer, s->ctx);
}

/* The waiting rows without the block that was taken, then those that leave the newest M now. */
static void keep_pending(const lam_segment *s, lam_slot *slot, lam_evicted gone, int taken)
{
    const int rest = slot->n - taken;
    /* At most one segment's rows stay, which is less than the block before them: no overlap. */
    if (taken > 0)
        lam_mem_copy(s, lam_packed_view(s, slot->rows, slot->cap, 0),
                     lam_packed_view(s, slot->rows, slot->cap, taken), rest);
    lam_mem_copy(s, lam_packed_view(s, slot->rows, slot->cap, rest),
                 lam_row_view(s, LAM_ACT, s->layer[slot->layer].x, s->dims.D, gone.first),
                 gone.rows);
    slot->n = rest + gone.rows;
}

static void keep_attention(const lam_segment *s, lam_slot *slot, const void *from, int done)
{
    const size_t H = (size_t)s->cfg->n_head;
    s->dev->ops->copy(s->dev, &(lam_copy){.blocks = s->B,
                                          .count = (size_t)done * H,
                                          .type = LAM_WIDE,
                                          .in = {(void *)(uintptr_t)from, (size_t)s->N * H},
                                          .out = {slot->rows, (size_t)slot->cap * H}});
    slot->n = done;
}

static void commit(lam_mem *mem, const lam_segment *s, int done)
{
    const lam_config *cfg = s->cfg;
    const int per = slots_per_layer(cfg), alive = is_alive(s), N = fields_of(cfg).ltm_basis;
    const int taken = takes_block(s) ? block_of(s) : 0;
    const lam_evicted gone = lam_mem_evicted(s, done);
    const int64_t period = fields_of(cfg).ltm_reset;
    const int forget = period > 0 && mem->seen / period != (mem->seen + done) / period;
    for (int l = 0; l < cfg->n_layer; l++) {
        lam_slot *slot = mem->slots + l * per;
        const ltm_rows own = lam_ltm_rows(s, l);
        keep_pending(s, &slot[PENDING], gone, taken);
        if (taken > 0) {
            lam_mem_copy(s, lam_packed_view(s, slot[SIGNAL].rows, N, 0),
                         lam_packed_view(s, own.coef, N, 0), N);
            slot[SIGNAL].n = N;
        }
        if (alive && is_sticky(cfg)) {
            keep_attention(s, &slot[MEAN_WAS], own.mean, done);
            keep_attention(s, &slot[VAR_WAS], own.var, done);
        }
        for (int k = PENDING; forget && k < per; k++)
            slot[k].n = 0;
    }
}

/* As the paper describes it: smoothing convolution, keys and values of the coefficients, their scores and context,
 * output, mu and sigma, resampling and regression.  In truth no scores are multiplied (infinite_read.c), and samples
 * only where they are drawn. */
static void cost(lam_mem_cost *out, const lam_config *cfg)
{
    const double D = cfg->d_model, HK = lam_cost_heads(cfg), N = cfg->tgt_len, L = cfg->n_layer;
    const lam_infinite o = fields_of(cfg);
    const int rows = o.ltm_basis > 0 ? o.ltm_basis : cfg->mem_len;
    const double basis = rows, block = o.ltm_block > 0 ? o.ltm_block : N;
    const double samples = o.ltm_samples, drawn = is_sticky(cfg) ? 2.0 * samples : basis;
    const double keys = 2.0 * D * HK * basis / N, moments = 2.0 * cfg->n_head * basis;
    const double resample = D * samples * basis / block;
    const double regress = D * (samples + block) * basis / block;
    const double read =
        L * ((2.0 * D * HK + 2.0 * HK) * basis / N + HK * basis + HK * D + 2.0 * HK);
    const double gate = L * 3.0 * D * D, refit = L * D * (drawn * basis / block + basis);
    lam_cost_keys(out, cfg);
    out->external =
        L * (3.0 * D * D + keys + D * HK + 2.0 * HK * basis + moments + resample + regress);
    out->external_rows = rows;
    out->forward = read + gate + refit;
    out->step =
        3.0 * read + 2.0 * gate + refit + L * D * basis; /* and from coefficients to the gate */
}

static void details(char *text, size_t size, const lam_config *cfg)
{
    const lam_infinite o = fields_of(cfg);
    snprintf(text, size, "%d basis functions, blocks of %d, sticky %s", o.ltm_basis, o.ltm_block,
             sticky_names[o.ltm_sticky]);
}

static void remark(char *text, size_t size, const lam_config *cfg)
{
    (void)cfg;
    snprintf(
        text, size,
        "its long-term memory is read by a density of its own, not by these weights; the figures "
        "show its short-term memory");
}

const lam_mem_ops lam_mem_infinite = {
    .name = "infinite",
    .title = "infinity-former",
    .paper = {.role = LAM_COMPARED,
              .parameters = 160,
              .macs = 235,
              .claim = "Table 1: and than the infinity-former"},
    .traits = LAM_REMEMBERS,
    .attn_types = (const int[]){LAM_ATTN_XL, -1},
    .cost = cost,
    .fields = fields,
    .options = "The infinite memory",
    .resolve = resolve,
    .slots = slots,
    .attend_fwd = attend_fwd,
    .attend_bwd = attend_bwd,
    .check = check,
    .reaches = reaches,
    .fit = fit,
    .params_size = sizeof(ltm_params),
    .layer_size = sizeof(ltm_rows),
    .shared_size = sizeof(ltm_work),
    .declare = declare,
    .layout = layout,
    .fill = lam_ltm_fill,
    .output = output,
    .commit = commit,
    .details = details,
    .remark = remark,
};
