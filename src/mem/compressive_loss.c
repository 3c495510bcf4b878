/* compressive_loss.c -- attention reconstruction: how the Compressive Transformer learns to compress.
 *
 * The convolution shall keep what attention would have found.  With the layer's own projections, content
 * only and no gradient but the convolution's,
 *
 *   O = softmax(Q K(E)^T / sqrt(K)) V(E),   O' the same with Z = conv(E),   loss = |O' - O|^2
 *
 * meaned over rows, heads and columns, and over layers. */
#include "mem/compressive_int.h"

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
                      .mean = work_of(s)->mean,
                      .rstd = work_of(s)->rstd,
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
    a.lse = (lam_view){work_of(s)->lse, n * (size_t)s->cfg->n_head};
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
static void attend_evicted(const lam_segment *s, int layer, const lam_eviction *e)
{
    const int keys = e->groups * fields_of(s->cfg).rate;
    lam_attn a;
    if (fields_of(s->cfg).remainder == DROP) {
        a = content_attn(s, layer, keys, work_of(s)->target);
        a.k = lam_qkv_view(s, layer, LAM_K, e->first);
        a.value = lam_qkv_view(s, layer, LAM_V, e->first);
    } else {
        project_keys(s, layer, s->B * keys, work_of(s)->evicted_kv, work_of(s)->evicted,
                     work_of(s)->evicted_norm);
        a = packed_attn(s, layer, keys, work_of(s)->evicted_kv, work_of(s)->target);
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
                                                  .weight = fields_of(cfg).aux_weight / parts,
                                                  .scale = s->grad_scale,
                                                  .a = work_of(s)->rebuilt,
                                                  .b = work_of(s)->target,
                                                  .sum = lam_at(s->dev, LAM_WIDE, s->aux, at),
                                                  .d = work_of(s)->target});
}

/* forward was [K V](Z) = norm(Z) W_kv^T: dZ = norm'(dkv W_kv); the norm's parameters are constants. */
static void keys_bwd(const lam_segment *s, int layer, int rows)
{
    const lam_linear l = lam_kv_map(s, rows);
    const lam_rows dz = {work_of(s)->dcompressed, 0, (size_t)s->dims.D};
    lam_linear_bwd_x(&l, dz, (lam_rows){work_of(s)->dkv, 0, 2 * (size_t)s->dims.HK},
                     lam_kv_weight(s, layer), 0.0);
    if (!s->cfg->pre_lnorm)
        return;
    const size_t D = (size_t)s->dims.D;
    lam_norm a = norm_of(s, layer, rows, work_of(s)->compressed, work_of(s)->compressed_norm);
    a.dy = a.dx = (lam_view){work_of(s)->dcompressed, 0};
    a.dgain = work_of(s)->unwanted;
    a.dshift = lam_at(s->dev, LAM_WIDE, work_of(s)->unwanted, D);
    s->dev->ops->zero(s->dev, work_of(s)->unwanted, 2 * D * lam_class_size(s->dev, LAM_WIDE));
    s->dev->ops->norm_bwd(s->dev, &a);
}

/* forward was Z = E W^T + b. */
static void compress_bwd(const lam_segment *s, int layer, const lam_eviction *e)
{
    const compressor *ids = params_of(s, layer);
    const lam_linear l = convolution(s, e);
    lam_linear_bwd_w(&l, lam_grad(s->params, ids->weight),
                     (lam_rows){work_of(s)->dcompressed, 0, (size_t)s->dims.D}, group_rows(s));
    s->dev->ops->colsum(s->dev,
                        &(lam_colsum){s->B * e->groups, s->cfg->d_model, s->dims.D,
                                      work_of(s)->dcompressed, lam_grad(s->params, ids->bias)});
}

void lam_compress_loss(const lam_segment *s, int layer, const lam_eviction *e)
{
    const size_t HK = (size_t)s->dims.HK;
    lam_compress(s, layer, e);
    attend_evicted(s, layer, e);
    project_keys(s, layer, s->B * e->groups, work_of(s)->compressed_kv, work_of(s)->compressed,
                 work_of(s)->compressed_norm);
    lam_attn a = packed_attn(s, layer, e->groups, work_of(s)->compressed_kv, work_of(s)->rebuilt);
    s->dev->ops->attn_fwd(s->dev, &a);
    compare(s, layer);

    a.d_o = (lam_view){work_of(s)->target, a.o.step};
    a.dq = lam_dqkv_view(s, LAM_Q, s->ctx); /* nobody reads it: queries are constants */
    a.dk = (lam_view){work_of(s)->dkv, a.k.step};
    a.dvalue = (lam_view){lam_at(s->dev, LAM_ACT, work_of(s)->dkv, HK), a.k.step};
    s->dev->ops->attn_bwd(s->dev, &a);
    keys_bwd(s, layer, s->B * e->groups);
    compress_bwd(s, layer, e);
}

/* Keys and values of the new rows and the way back; O and O' by content; the gradient of O' (scores, dP, dV, dK, dQ). */
double lam_compress_loss_macs(const lam_config *cfg)
{
    const double HK = lam_cost_heads(cfg), c = fields_of(cfg).rate;
    if (!reconstructs(cfg))
        return 0.0;
    return cfg->n_layer *
           (4.0 * cfg->d_model * HK / c + HK * cfg->tgt_len * (2.0 + (2.0 + 5.0) / c));
}
