/* positions.c -- see positions.h. */
#include "nn/positions.h"

#include "core/exact.h"
#include "nn/linear.h"
#include "nn/sites.h"

#include <math.h>
#include <stdlib.h>

static int is_learned(const lam_config *cfg)
{
    return cfg->attn_type == LAM_ATTN_LEARNED;
}

int lam_pos_is_absolute(const lam_positions *pos)
{
    return pos->cfg->attn_type == LAM_ATTN_ABSOLUTE;
}

/* Under the names of Hugging Face's layers. */
static void declare_untied(lam_pos_params *ids, lam_params *p, const lam_config *cfg,
                           const lam_spec *bias)
{
    for (int l = 0; l < cfg->n_layer; l++) {
        ids->own_u[l] = lam_params_add(p, bias, "layers.%d.dec_attn.r_w_bias", l);
        ids->own_v[l] = lam_params_add(p, bias, "layers.%d.dec_attn.r_r_bias", l);
        lam_params_set_vector(p, ids->own_u[l]);
        lam_params_set_vector(p, ids->own_v[l]);
    }
}

void lam_pos_declare(lam_pos_params *ids, lam_params *p, const lam_config *cfg, const lam_dev *dev)
{
    const int K = lam_padded(dev, cfg->d_head), H = cfg->n_head;
    const lam_dim heads = {1, H, H}, width = {1, cfg->d_head, K},
                  layers = {1, cfg->n_layer, cfg->n_layer};
    const lam_dim rows = {1, lam_config_span(cfg), lam_config_span(cfg)};
    const lam_init normal = LAM_INIT_NORMAL;
    const double std = cfg->init_std;

    *ids = (lam_pos_params){-1, -1, -1, -1, -1, -1, {0}, {0}, {0}};
    if (is_learned(cfg)) {
        ids->r_emb = lam_params_add(p, &(lam_spec){4, {layers, rows, heads, width}, normal, std, 0},
                                    "r_emb");
        ids->u =
            lam_params_add(p, &(lam_spec){3, {layers, heads, width}, normal, std, 0}, "r_w_bias");
        ids->r_bias =
            lam_params_add(p, &(lam_spec){3, {layers, rows, heads}, LAM_INIT_ZERO, 0, 0}, "r_bias");
        lam_params_set_vector(p, ids->u);
        lam_params_set_vector(p, ids->r_bias);
        return;
    }
    if (cfg->attn_type == LAM_ATTN_ABSOLUTE)
        return;
    const lam_spec bias = {2, {heads, width}, normal, std, 0};
    if (cfg->untie_r) {
        declare_untied(ids, p, cfg, &bias);
        return;
    }
    ids->u = lam_params_add(p, &bias, "r_w_bias");
    ids->v = lam_params_add(p, &bias, "r_r_bias");
    /* The authors' initialisation never touches v- and u-: PyTorch's Xavier-uniform stays. */
    const double xavier = sqrt(6.0 / (H + cfg->d_head));
    const lam_spec future = {2, {heads, width}, LAM_INIT_UNIFORM, xavier, 0};
    const int type = cfg->attn_type;
    if (type == LAM_ATTN_LAMEMO || type == LAM_ATTN_LAMEMO_BOTH || type == LAM_ATTN_LAMEMO_FULL)
        ids->v_ahead = lam_params_add(p, &future, "r_r_bias_future");
    if (type == LAM_ATTN_LAMEMO_BOTH)
        ids->u_ahead = lam_params_add(p, &future, "r_w_bias_future");
    const int all[] = {ids->u, ids->v, ids->v_ahead, ids->u_ahead};
    for (int i = 0; i < 4; i++)
        if (all[i] >= 0)
            lam_params_set_vector(p, all[i]);
}

void lam_pos_layout(lam_positions *pos, lam_arena *arena, int train)
{
    const size_t size = lam_class_size(pos->dev, LAM_ACT);
    const size_t D = (size_t)pos->dims.D, HK = (size_t)pos->dims.HK;
    const int L = pos->cfg->n_layer, type = pos->cfg->attn_type;
    const int learned = is_learned(pos->cfg), absolute = lam_pos_is_absolute(pos);

    pos->past_rows = learned ? lam_config_span(pos->cfg) : pos->M + pos->N;
    pos->ahead_rows = type < LAM_ATTN_LAMEMO         ? 0
                      : type == LAM_ATTN_LAMEMO_FULL ? 2 * pos->M
                                                     : pos->M;
    const size_t past = learned ? 0 : (size_t)pos->past_rows, ahead = (size_t)pos->ahead_rows;
    pos->past = lam_arena_take(arena, past * D * size);
    pos->ahead = lam_arena_take(arena, ahead * D * size);
    pos->past_used = train && !absolute ? lam_arena_take(arena, past * D * size) : pos->past;
    pos->ahead_used = train ? lam_arena_take(arena, ahead * D * size) : pos->ahead;
    for (int l = 0; l < L; l++) {
        pos->r_past[l] =
            lam_arena_take(arena, absolute ? 0 : past * HK * lam_class_size(pos->dev, pos->cache));
        pos->r_scale[l] = lam_arena_take(arena, absolute || pos->cache != LAM_BYTE
                                                    ? 0
                                                    : past * (size_t)pos->cfg->n_head *
                                                          lam_class_size(pos->dev, LAM_WIDE));
        pos->r_ahead[l] = lam_arena_take(arena, ahead * HK * size);
    }
    const size_t widest = (size_t)pos->past_rows > ahead ? (size_t)pos->past_rows : ahead;
    pos->dr = train ? lam_arena_take(arena, widest * HK * size) : NULL;
}

/* The position that row i of a table encodes. */
static double past_position(const lam_positions *pos, int i)
{
    const int clamp = pos->cfg->clamp_len;
    return clamp > 0 && i > clamp ? clamp : i;
}

static double absolute_position(const lam_positions *pos, int i)
{
    const int clamp = pos->cfg->clamp_len, place = pos->cfg->tgt_len - 1 - i;
    return clamp > 0 && place > clamp ? clamp : place;
}

static double ahead_position(const lam_positions *pos, int i)
{
    const int type = pos->cfg->attn_type, clamp = pos->cfg->clamp_len;
    const int d = type == LAM_ATTN_LAMEMO_FULL ? abs(i - (pos->M - 1)) : i + 1;
    if (type == LAM_ATTN_LAMEMO_XL)
        return -d;
    return clamp > 0 && d > clamp ? clamp : d;
}

/* What libm computes differs in the last bits between machines. */
static lam_exact_angle angle_of(const lam_positions *pos, double position, int t, int D)
{
    if (pos->dev->exact)
        return lam_exact_position(position, t, D);
    const double angle = position * pow(10000.0, -2.0 * t / D);
    return (lam_exact_angle){sin(angle), cos(angle)};
}

static lam_status fill(const lam_positions *pos, void *table, int rows,
                       double (*position)(const lam_positions *, int))
{
    const int D = pos->cfg->d_model, ld = pos->dims.D;
    if (rows == 0)
        return LAM_OK;
    const size_t n = (size_t)rows * (size_t)ld;
    double *host = calloc(n, sizeof *host);
    void *raw = malloc(n * sizeof(double));
    lam_status status = LAM_OK;
    if (!host || !raw) {
        status = lam_fail(LAM_ERR_MEMORY, "positions: no memory for %d rows", rows);
        goto done;
    }
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < D / 2; t++) {
            const lam_exact_angle at = angle_of(pos, position(pos, i), t, D);
            host[(size_t)i * (size_t)ld + (size_t)t] = at.sin;
            host[(size_t)i * (size_t)ld + (size_t)(D / 2 + t)] = at.cos;
        }
    lam_to_class(pos->dev, LAM_ACT, raw, host, LAM_F64, n);
    pos->dev->ops->upload(pos->dev, table, raw, n * lam_class_size(pos->dev, LAM_ACT));
    status = pos->dev->ops->sync(pos->dev);
done:
    free(host);
    free(raw);
    return status;
}

lam_status lam_pos_fill(lam_positions *pos)
{
    if (is_learned(pos->cfg))
        return LAM_OK;
    LAM_TRY(fill(pos, pos->past, pos->past_rows,
                 lam_pos_is_absolute(pos) ? absolute_position : past_position));
    return fill(pos, pos->ahead, pos->ahead_rows, ahead_position);
}

static void drop_table(const lam_positions *pos, void *out, void *in, int rows, lam_drop drop)
{
    if (rows == 0 || out == in)
        return;
    pos->dev->ops->dropout(pos->dev, &(lam_dropout){.blocks = 1,
                                                    .rows = rows,
                                                    .width = pos->cfg->d_model,
                                                    .ld = pos->dims.D,
                                                    .drop = drop,
                                                    .in = {in, 0},
                                                    .out = {out, 0}});
}

static lam_linear r_net(const lam_positions *pos, int rows)
{
    return (lam_linear){pos->dev, 1, rows, pos->dims.D, pos->dims.HK, (size_t)pos->dims.D};
}

void lam_pos_add(const lam_positions *pos, void *out, const void *rows, int B, int first, int n)
{
    const size_t D = (size_t)pos->dims.D;
    pos->dev->ops->norm_fwd(
        pos->dev, &(lam_norm){.blocks = B,
                              .rows = n,
                              .width = pos->cfg->d_model,
                              .ld = pos->dims.D,
                              .x = {lam_at(pos->dev, LAM_ACT, pos->past, (size_t)first * D),
                                    0}, /* the same for every stream */
                              .y = {out, (size_t)n * D},
                              .add = rows});
}

void lam_pos_project(lam_positions *pos, lam_drop drop)
{
    if (is_learned(pos->cfg) || lam_pos_is_absolute(pos))
        return;
    const size_t D = (size_t)pos->dims.D, HK = (size_t)pos->dims.HK;
    drop.site = LAM_SITE_PAST;
    drop_table(pos, pos->past_used, pos->past, pos->past_rows, drop);
    drop.site = LAM_SITE_AHEAD;
    drop_table(pos, pos->ahead_used, pos->ahead, pos->ahead_rows, drop);
    const lam_linear past = r_net(pos, pos->past_rows), ahead = r_net(pos, pos->ahead_rows);
    for (int l = 0; l < pos->cfg->n_layer; l++) {
        const lam_weights w = lam_weight(pos->params, pos->ids->r_net[l]);
        lam_linear_fwd(
            &past, (lam_rows){pos->r_past[l], 0, HK}, (lam_rows){pos->past_used, 0, D}, w,
            &(lam_epilogue){.type = pos->cache, .scale = pos->r_scale[l], .group = pos->dims.K});
        lam_linear_fwd(&ahead, (lam_rows){pos->r_ahead[l], 0, HK},
                       (lam_rows){pos->ahead_used, 0, D}, w, NULL);
    }
}

/* Layer l's stretch of a parameter that has one stretch per layer. */
static size_t slice(const lam_positions *pos, int id, int layer)
{
    return pos->params->list[id].stored / (size_t)pos->cfg->n_layer * (size_t)layer;
}

/* The parameters u and v of a layer. */
static int u_of(const lam_positions *pos, int layer)
{
    return pos->cfg->untie_r ? pos->ids->own_u[layer] : pos->ids->u;
}

static int v_of(const lam_positions *pos, int layer)
{
    return pos->cfg->untie_r ? pos->ids->own_v[layer] : pos->ids->v;
}

void lam_pos_past(const lam_positions *pos, int layer, lam_attn *a)
{
    const lam_params *p = pos->params;
    const lam_pos_params *ids = pos->ids;
    if (lam_pos_is_absolute(pos))
        return;
    a->r_rows = pos->past_rows;
    a->ldr = (size_t)pos->dims.HK;
    if (is_learned(pos->cfg)) {
        a->u = lam_at(pos->dev, LAM_WIDE, lam_vector(p, ids->u), slice(pos, ids->u, layer));
        a->r =
            lam_at(pos->dev, LAM_ACT, lam_weight(p, ids->r_emb).p, slice(pos, ids->r_emb, layer));
        a->rbias =
            lam_at(pos->dev, LAM_WIDE, lam_vector(p, ids->r_bias), slice(pos, ids->r_bias, layer));
        a->r_zero = pos->past_rows - 1;
        a->r_sign = 1;
        return;
    }
    a->u = lam_vector(p, u_of(pos, layer));
    a->v = lam_vector(p, v_of(pos, layer));
    a->r = pos->r_past[layer];
    a->r_class = pos->cache;
    a->r_scale = pos->r_scale[layer];
    a->r_zero = 0;
    a->r_sign = -1;
}

void lam_pos_ahead(const lam_positions *pos, int layer, lam_attn *a)
{
    const lam_params *p = pos->params;
    const lam_pos_params *ids = pos->ids;
    a->u = lam_vector(p, ids->u_ahead >= 0 ? ids->u_ahead : ids->u);
    a->v = lam_vector(p, ids->v_ahead >= 0 ? ids->v_ahead : ids->v);
    a->r = pos->r_ahead[layer];
    a->r_rows = pos->ahead_rows;
    a->ldr = (size_t)pos->dims.HK;
    a->r_zero = pos->cfg->attn_type == LAM_ATTN_LAMEMO_FULL ? pos->M - 1 : -1;
    a->r_sign = 1;
}

void lam_pos_past_grad(const lam_positions *pos, int layer, lam_attn *a)
{
    const lam_params *p = pos->params;
    const lam_pos_params *ids = pos->ids;
    if (lam_pos_is_absolute(pos))
        return;
    a->dr = pos->dr;
    if (is_learned(pos->cfg)) {
        a->du = lam_at(pos->dev, LAM_WIDE, lam_grad(p, ids->u), slice(pos, ids->u, layer));
        a->drbias =
            lam_at(pos->dev, LAM_WIDE, lam_grad(p, ids->r_bias), slice(pos, ids->r_bias, layer));
        return;
    }
    a->du = lam_grad(p, u_of(pos, layer));
    a->dv = lam_grad(p, v_of(pos, layer));
}

void lam_pos_ahead_grad(const lam_positions *pos, int layer, lam_attn *a)
{
    const lam_params *p = pos->params;
    const lam_pos_params *ids = pos->ids;
    (void)layer;
    a->dr = pos->dr;
    a->du = lam_grad(p, ids->u_ahead >= 0 ? ids->u_ahead : ids->u);
    a->dv = lam_grad(p, ids->v_ahead >= 0 ? ids->v_ahead : ids->v);
}

/* forward was r = drop(R) W_r^T, so dW_r += dr^T drop(R); R itself is constant. */
static void r_net_grad(const lam_positions *pos, int layer, void *used, int rows)
{
    const lam_linear l = r_net(pos, rows);
    lam_linear_bwd_w(&l, lam_grad(pos->params, pos->ids->r_net[layer]),
                     (lam_rows){pos->dr, 0, (size_t)pos->dims.HK},
                     (lam_rows){used, 0, (size_t)pos->dims.D});
}

/* forward was  r = drop(R) W_r^T,  or r the layer's rows of a learned table, whose gradient is dr itself. */
void lam_pos_past_done(const lam_positions *pos, int layer)
{
    if (lam_pos_is_absolute(pos))
        return;
    if (!is_learned(pos->cfg)) {
        r_net_grad(pos, layer, pos->past_used, pos->past_rows);
        return;
    }
    const int id = pos->ids->r_emb, HK = pos->dims.HK;
    void *out = lam_at(pos->dev, LAM_WIDE, lam_grad(pos->params, id), slice(pos, id, layer));
    const int most = (1 << 30) / HK; /* rows at a time: a width is an int */
    for (int first = 0; first < pos->past_rows; first += most) {
        const int rows = pos->past_rows - first < most ? pos->past_rows - first : most;
        const size_t at = (size_t)first * (size_t)HK;
        pos->dev->ops->colsum(pos->dev, &(lam_colsum){1, rows * HK, rows * HK,
                                                      lam_at(pos->dev, LAM_ACT, pos->dr, at),
                                                      lam_at(pos->dev, LAM_WIDE, out, at)});
    }
}

void lam_pos_ahead_done(const lam_positions *pos, int layer)
{
    r_net_grad(pos, layer, pos->ahead_used, pos->ahead_rows);
}
