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
 * Constants: waiting rows and B_old.  The divergence of each Gaussian from a narrow prior is an auxiliary loss.
 *
 * Two products of the specification are taken apart here.  A score meets its bump's weight at once, sum_j w_j
 * (q . k_j) = q . sum_j w_j k_j, so scores are never computed ("pull" below).  And G_old^T Psi is a constant
 * [N][N] matrix unless samples are drawn where attention was (sticky). */
#include "mem/heads.h"
#include "mem/infinite_int.h"

#include <math.h>

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
        slot[SIGNAL].cap = cfg->ltm_basis;
        if (per == 3)
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
    return cfg->ltm_block;
}

static void declare(int *ids, lam_params *p, const lam_config *cfg, const lam_dev *dev, int layer)
{
    const lam_dims w = lam_dims_of(cfg, dev);
    const lam_dim D = {1, cfg->d_model, w.D}, heads = {cfg->n_head, cfg->d_head, w.K};
    const lam_dim taps = {1, LAM_LTM_TAPS, LAM_LTM_TAPS};
    const lam_dim N = {1, cfg->ltm_basis, lam_padded(dev, cfg->ltm_basis)};
    const lam_init linear = LAM_INIT_LINEAR, uniform = LAM_INIT_UNIFORM;
    const double std = cfg->init_std, range = 1.0 / sqrt((double)LAM_LTM_TAPS * cfg->d_model);
    if (!cfg->ltm_share_proj) {
        ids[KEY] = lam_params_add(p, &(lam_spec){2, {heads, D}, linear, std, 0},
                                  "layers.%d.ltm.key.weight", layer);
        ids[VALUE] = lam_params_add(p, &(lam_spec){2, {heads, D}, linear, std, 1},
                                    "layers.%d.ltm.value.weight", layer);
        ids[OUT] = lam_params_add(p, &(lam_spec){2, {D, heads}, linear, std, 0},
                                  "layers.%d.ltm.out.weight", layer);
        lam_params_set_maps(p, ids[KEY], 1);
        lam_params_set_maps(p, ids[VALUE], 1);
        lam_params_set_maps(p, ids[OUT], 1);
    }
    ids[CONV] = lam_params_add(p, &(lam_spec){3, {D, D, taps}, uniform, range, 0},
                               "layers.%d.ltm.conv.weight", layer);
    lam_params_turn(p, ids[CONV]);
    ids[CONV_BIAS] =
        lam_params_add(p, &(lam_spec){1, {D}, uniform, range, 0}, "layers.%d.ltm.conv.bias", layer);
    ids[MU] =
        lam_params_add(p, &(lam_spec){1, {N}, linear, std, 0}, "layers.%d.ltm.mu.weight", layer);
    ids[SIGMA] =
        lam_params_add(p, &(lam_spec){1, {N}, linear, std, 1}, "layers.%d.ltm.sigma.weight", layer);
}

static void layout_layer(lam_segment *s, lam_arena *arena, int layer)
{
    const size_t B = (size_t)s->B, D = (size_t)s->dims.D, HK = (size_t)s->dims.HK;
    const size_t H = (size_t)s->cfg->n_head, N = (size_t)s->cfg->ltm_basis, length = (size_t)s->N;
    const int same = layer > 0 && !s->train;
    void **own = s->layer[layer].own, **first = s->layer[0].own;
    const size_t block = (size_t)block_of(s);
    own[PRE] = same ? first[PRE] : lam_mem_take(s, arena, LAM_ACT, B * block * D);
    own[Z] = same ? first[Z] : lam_mem_take(s, arena, LAM_ACT, B * length * HK);
    own[COEF] = lam_mem_take(s, arena, LAM_ACT, B * N * D);
    own[KV] = lam_mem_take(s, arena, LAM_ACT, B * N * 2 * HK);
    own[PULL] = lam_mem_take(s, arena, LAM_ACT, B * 2 * HK);
    own[MEAN] = lam_mem_take(s, arena, LAM_WIDE, B * length * H);
    own[VAR] = lam_mem_take(s, arena, LAM_WIDE, B * length * H);
}

static void layout(lam_segment *s, lam_arena *arena)
{
    const size_t B = (size_t)s->B, D = (size_t)s->dims.D, HK = (size_t)s->dims.HK;
    const size_t H = (size_t)s->cfg->n_head, N = (size_t)s->cfg->ltm_basis, ld = basis_ld(s);
    const size_t length = (size_t)s->N, block = (size_t)block_of(s);
    const size_t samples = is_sticky(s->cfg) ? (size_t)s->cfg->ltm_samples : 0;
    const size_t train = s->train ? 1 : 0;
    for (int l = 0; l < s->cfg->n_layer; l++)
        layout_layer(s, arena, l);
    s->own[SHIFTED] = lam_mem_take(s, arena, LAM_ACT, LAM_LTM_TAPS * B * block * D);
    s->own[GATED] = lam_mem_take(s, arena, LAM_ACT, B * block * D);
    s->own[R] = lam_mem_take(s, arena, LAM_ACT, B * H * length * ld);
    s->own[DR] = lam_mem_take(s, arena, LAM_ACT, train * B * H * length * ld);
    s->own[DZ] = lam_mem_take(s, arena, LAM_ACT, train * B * length * HK);
    s->own[DKV] = lam_mem_take(s, arena, LAM_ACT, train * B * N * 2 * HK);
    s->own[DPULL] = lam_mem_take(s, arena, LAM_ACT, train * B * 2 * HK);
    s->own[DCOEF] = lam_mem_take(s, arena, LAM_ACT, train * B * N * D);
    s->own[CENTRE] = lam_mem_take(s, arena, LAM_WIDE, N);
    s->own[WIDTH] = lam_mem_take(s, arena, LAM_WIDE, N);
    s->own[FIRST] = lam_mem_take(s, arena, LAM_ACT, block * ld);
    s->own[FRESH] = lam_mem_take(s, arena, LAM_ACT, block * ld);
    s->own[OLD] = lam_mem_take(s, arena, LAM_ACT, (samples > 0 ? samples : N) * ld);
    s->own[DRAWS] = lam_mem_take(s, arena, LAM_WIDE, samples);
    s->own[EDGES] = lam_mem_take(s, arena, LAM_WIDE, samples > 0 ? B * (LAM_LTM_BINS + 1) : 0);
    s->own[PSI] = lam_mem_take(s, arena, LAM_ACT, B * samples * ld);
    s->own[SAMPLES] = lam_mem_take(s, arena, LAM_ACT, B * samples * D);
    if (s->train)
        s->aux = lam_mem_take(s, arena, LAM_WIDE, (size_t)s->cfg->n_layer * B * length * H);
}

/* [W_K; W_V], own or the layer's; the gradient likewise, marked as used. */
static lam_weights kv_weight(const lam_segment *s, int layer)
{
    return s->cfg->ltm_share_proj ? lam_kv_weight(s, layer)
                                  : lam_weight(s->params, s->ids[layer].own[KEY]);
}

static void *kv_grad(const lam_segment *s, int layer)
{
    const size_t third = (size_t)s->dims.HK * (size_t)s->dims.D;
    if (s->cfg->ltm_share_proj)
        return lam_at(s->dev, LAM_WIDE, lam_grad(s->params, s->ids[layer].qkv), third);
    lam_grad(s->params, s->ids[layer].own[VALUE]); /* stands right behind */
    return lam_grad(s->params, s->ids[layer].own[KEY]);
}

static int out_param(const lam_segment *s, int layer)
{
    return s->cfg->ltm_share_proj ? s->ids[layer].o_net : s->ids[layer].own[OUT];
}

/* pull = [w_mu; w_sigma] K of every stream. */
static lam_gemm pull_gemm(const lam_segment *s, int layer)
{
    const size_t HK = (size_t)s->dims.HK, N = (size_t)s->cfg->ltm_basis;
    return (lam_gemm){.m = 2,
                      .n = s->dims.HK,
                      .k = s->cfg->ltm_basis,
                      .batch = s->B,
                      .a = lam_weight(s->params, s->ids[layer].own[MU]).p,
                      .lda = basis_ld(s),
                      .b = s->layer[layer].own[KV],
                      .ldb = 2 * HK,
                      .step_b = N * 2 * HK,
                      .c = s->layer[layer].own[PULL],
                      .c_class = LAM_ACT,
                      .ldc = HK,
                      .step_c = 2 * HK};
}

/* What all rows of the segment will read; settled before the first of them. */
static void recall(const lam_segment *s, int layer)
{
    void **own = s->layer[layer].own;
    const lam_linear kv = lam_kv_map(s, s->B * s->cfg->ltm_basis);
    lam_ltm_fit(s, layer);
    lam_linear_fwd(&kv, (lam_rows){own[KV], 0, 2 * (size_t)s->dims.HK},
                   (lam_rows){own[COEF], 0, (size_t)s->dims.D}, kv_weight(s, layer), NULL);
    const lam_gemm pull = pull_gemm(s, layer);
    s->dev->ops->gemm(s->dev, &pull);
}

static lam_density density_of(const lam_segment *s, int layer)
{
    const lam_config *cfg = s->cfg;
    const size_t HK = (size_t)s->dims.HK, H = (size_t)cfg->n_head, step = (size_t)s->N * H;
    const size_t first = (size_t)s->first * H;
    void *const *own = s->layer[layer].own;
    return (lam_density){.B = s->B,
                         .H = cfg->n_head,
                         .K = s->dims.K,
                         .queries = s->n,
                         .basis = cfg->ltm_basis,
                         .scale = 1.0 / sqrt((double)cfg->d_head),
                         .var_min = cfg->ltm_var_min,
                         .centre = s->own[CENTRE],
                         .width = s->own[WIDTH],
                         .q = lam_qkv_view(s, layer, LAM_Q, s->ctx + s->first),
                         .ldq = lam_q_ld(s),
                         .pull = {own[PULL], 2 * HK},
                         .mu = {lam_at(s->dev, LAM_WIDE, own[MEAN], first), step},
                         .var = {lam_at(s->dev, LAM_WIDE, own[VAR], first), step},
                         .r = s->own[R],
                         .ldr = basis_ld(s)};
}

static lam_heads r_heads(const lam_segment *s, void *r)
{
    const size_t ld = basis_ld(s), one = (size_t)s->n * ld;
    return (lam_heads){r, ld, one, (size_t)s->cfg->n_head * one};
}

/* V in a [B][N][2HK] buffer. */
static lam_heads v_heads(const lam_segment *s, void *kv)
{
    const size_t HK = (size_t)s->dims.HK;
    return (lam_heads){lam_at(s->dev, LAM_ACT, kv, HK), 2 * HK, (size_t)s->dims.K,
                       (size_t)s->cfg->ltm_basis * 2 * HK};
}

static lam_heads z_heads(const lam_segment *s, void *z)
{
    const size_t HK = (size_t)s->dims.HK;
    return (lam_heads){z, HK, (size_t)s->dims.K, (size_t)s->n * HK};
}

static void attend_fwd(const lam_segment *s, int layer)
{
    lam_causal_fwd(s, layer, 0);
    if (!is_alive(s))
        return;
    if (s->first == 0)
        recall(s, layer);
    void **own = s->layer[layer].own;
    const lam_density a = density_of(s, layer);
    s->dev->ops->density_fwd(s->dev, &a);
    lam_heads_gemm(s, (lam_gemm){.m = s->n, .n = s->dims.K, .k = s->cfg->ltm_basis},
                   r_heads(s, a.r), v_heads(s, own[KV]), z_heads(s, own[Z]));
}

static lam_linear out_map(const lam_segment *s)
{
    return (lam_linear){s->dev, 1, s->B * s->n, s->dims.HK, s->dims.D, (size_t)s->dims.HK};
}

static lam_rows z_rows(const lam_segment *s, void *z)
{
    return (lam_rows){z, 0, (size_t)s->dims.HK};
}

static lam_rows out_rows(const lam_segment *s)
{
    return (lam_rows){s->out, 0, (size_t)s->dims.D};
}

static void output(const lam_segment *s, int layer)
{
    const lam_linear l = out_map(s);
    if (is_alive(s))
        lam_linear_fwd(&l, out_rows(s), z_rows(s, s->layer[layer].own[Z]),
                       lam_weight(s->params, out_param(s, layer)), &(lam_epilogue){.add = 1});
}

/* forward was z = r V, r = r(q, pull): dV, dq (added), dpull, and the divergence's share of both. */
static void density_bwd(const lam_segment *s, int layer)
{
    const lam_config *cfg = s->cfg;
    const size_t H = (size_t)cfg->n_head, HK = (size_t)s->dims.HK;
    const size_t aux = (size_t)layer * (size_t)s->B * (size_t)s->N * H;
    lam_density a = density_of(s, layer);
    s->dev->ops->density_fwd(s->dev, &a); /* R serves all layers: make it again */
    lam_heads_gemm(s, (lam_gemm){.m = s->n, .n = cfg->ltm_basis, .k = s->dims.K, .tb = LAM_FLIP},
                   z_heads(s, s->own[DZ]), v_heads(s, s->layer[layer].own[KV]),
                   r_heads(s, s->own[DR]));
    lam_heads_gemm(s, (lam_gemm){.m = cfg->ltm_basis, .n = s->dims.K, .k = s->n, .ta = LAM_FLIP},
                   r_heads(s, a.r), z_heads(s, s->own[DZ]), v_heads(s, s->own[DKV]));
    a.dr = s->own[DR];
    a.dq = lam_dqkv_view(s, LAM_Q, s->ctx);
    a.dpull = (lam_view){s->own[DPULL], 2 * HK};
    a.prior = cfg->ltm_sigma0 * cfg->ltm_sigma0;
    a.weight = cfg->ltm_kl / cfg->n_head;
    a.grad_scale = s->grad_scale;
    a.kl = (lam_view){lam_at(s->dev, LAM_WIDE, s->aux, aux), (size_t)s->n * H};
    s->dev->ops->density_bwd(s->dev, &a);
}

/* forward was pull = W K with W = [w_mu; w_sigma]: dW += dpull K^T, dK = W^T dpull. */
static void pull_bwd(const lam_segment *s, int layer)
{
    const size_t HK = (size_t)s->dims.HK, N = (size_t)s->cfg->ltm_basis;
    const int mu = s->ids[layer].own[MU];
    lam_gemm g = pull_gemm(s, layer);
    const void *weight = g.a, *keys = g.b;
    g.n = s->cfg->ltm_basis;
    g.k = s->dims.HK;
    g.a = s->own[DPULL];
    g.lda = HK;
    g.step_a = 2 * HK;
    g.tb = LAM_FLIP;
    g.c = lam_grad(s->params, mu);
    lam_grad(s->params, s->ids[layer].own[SIGMA]); /* stands right behind */
    g.c_class = LAM_WIDE;
    g.ldc = basis_ld(s);
    g.step_c = 0; /* summed over the streams */
    g.beta = 1.0;
    g.b = keys;
    s->dev->ops->gemm(s->dev, &g);

    s->dev->ops->gemm(s->dev, &(lam_gemm){.m = s->cfg->ltm_basis,
                                          .n = s->dims.HK,
                                          .k = 2,
                                          .batch = s->B,
                                          .ta = LAM_FLIP,
                                          .a = weight,
                                          .lda = basis_ld(s),
                                          .b = s->own[DPULL],
                                          .ldb = HK,
                                          .step_b = 2 * HK,
                                          .c = s->own[DKV],
                                          .c_class = LAM_ACT,
                                          .ldc = 2 * HK,
                                          .step_c = N * 2 * HK});
}

/* From the gradient of s->out to everything that is no constant; dq is added to what attention left. */
static void recall_bwd(const lam_segment *s, int layer)
{
    void **own = s->layer[layer].own;
    const size_t HK = (size_t)s->dims.HK, D = (size_t)s->dims.D;
    const lam_linear out = out_map(s), kv = lam_kv_map(s, s->B * s->cfg->ltm_basis);
    const int id = out_param(s, layer);
    lam_linear_bwd_w(&out, lam_grad(s->params, id), out_rows(s), z_rows(s, own[Z]));
    lam_linear_bwd_x(&out, z_rows(s, s->own[DZ]), out_rows(s), lam_weight(s->params, id), 0.0);
    density_bwd(s, layer);
    pull_bwd(s, layer);
    const lam_rows dkv = {s->own[DKV], 0, 2 * HK}, coef = {own[COEF], 0, D};
    lam_linear_bwd_w(&kv, kv_grad(s, layer), dkv, coef);
    if (!takes_block(s))
        return;
    lam_linear_bwd_x(&kv, (lam_rows){s->own[DCOEF], 0, D}, dkv, kv_weight(s, layer), 0.0);
    lam_ltm_fit_bwd(s, layer);
}

static void attend_bwd(const lam_segment *s, int layer)
{
    lam_causal_bwd(s, layer);
    if (is_alive(s))
        recall_bwd(s, layer);
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
    const int per = slots_per_layer(cfg), alive = is_alive(s), N = cfg->ltm_basis;
    const int taken = takes_block(s) ? block_of(s) : 0;
    const lam_evicted gone = lam_mem_evicted(s, done);
    const int64_t period = cfg->ltm_reset;
    const int forget = period > 0 && mem->seen / period != (mem->seen + done) / period;
    for (int l = 0; l < cfg->n_layer; l++) {
        lam_slot *slot = mem->slots + l * per;
        void **own = s->layer[l].own;
        keep_pending(s, &slot[PENDING], gone, taken);
        if (taken > 0) {
            lam_mem_copy(s, lam_packed_view(s, slot[SIGNAL].rows, N, 0),
                         lam_packed_view(s, own[COEF], N, 0), N);
            slot[SIGNAL].n = N;
        }
        if (alive && per == 5) {
            keep_attention(s, &slot[MEAN_WAS], own[MEAN], done);
            keep_attention(s, &slot[VAR_WAS], own[VAR], done);
        }
        for (int k = PENDING; forget && k < per; k++)
            slot[k].n = 0;
    }
}

const lam_mem_ops lam_mem_infinite = {
    .name = "infinite",
    .slots = slots,
    .attend_fwd = attend_fwd,
    .attend_bwd = attend_bwd,
    .check = check,
    .reaches = reaches,
    .declare = declare,
    .layout = layout,
    .fill = lam_ltm_fill,
    .output = output,
    .commit = commit,
};
