/* causal.c -- see causal.h. */
#include "mem/causal.h"

#include <assert.h>
#include <math.h>

/* Row `row` of the segment's first stream. */
static size_t row_at(const lam_segment *s, int row)
{
    return (size_t)s->stream * (size_t)s->T + (size_t)row;
}

lam_view lam_row_view(const lam_segment *s, lam_class type, void *p, int width, int row)
{
    return (lam_view){lam_at(s->dev, type, p, row_at(s, row) * (size_t)width),
                      (size_t)s->T * (size_t)width};
}

lam_linear lam_kv_map(const lam_segment *s, int rows)
{
    return (lam_linear){s->dev, 1, rows, s->dims.D, 2 * s->dims.HK, (size_t)s->dims.D};
}

lam_view lam_packed_view(const lam_segment *s, void *p, int rows, int row)
{
    const size_t D = (size_t)s->dims.D;
    return (lam_view){lam_at(s->dev, LAM_ACT, p, (size_t)row * D), (size_t)rows * D};
}

static lam_view third_of(const lam_segment *s, void *qkv, lam_third third, int row)
{
    const size_t HK = (size_t)s->dims.HK;
    return (lam_view){lam_at(s->dev, LAM_ACT, qkv, row_at(s, row) * 3 * HK + (size_t)third * HK),
                      (size_t)s->T * 3 * HK};
}

lam_view lam_qkv_view(const lam_segment *s, int layer, lam_third third, int row)
{
    const lam_layer_rows *rows = &s->layer[layer];
    const size_t HK = (size_t)s->dims.HK, T = (size_t)s->T, at = row_at(s, row);
    if (s->cache == LAM_ACT)
        return third_of(s, rows->qkv, third, row);
    if (third == LAM_Q)
        return (lam_view){lam_at(s->dev, LAM_ACT, rows->qkv, at * HK), T * HK};
    const size_t half = third == LAM_K ? 0 : HK;
    return (lam_view){lam_at(s->dev, s->cache, rows->kv, at * 2 * HK + half), T * 2 * HK};
}

void *lam_kv_scale(const lam_segment *s, int layer, lam_third third, int row)
{
    const size_t H = (size_t)s->cfg->n_head, half = third == LAM_K ? 0 : H;
    if (s->cache != LAM_BYTE || third == LAM_Q)
        return NULL;
    return lam_at(s->dev, LAM_WIDE, s->layer[layer].kv_scale, row_at(s, row) * 2 * H + half);
}

size_t lam_q_ld(const lam_segment *s)
{
    return (s->cache == LAM_ACT ? 3 : 1) * (size_t)s->dims.HK;
}

static size_t kv_ld(const lam_segment *s)
{
    return (s->cache == LAM_ACT ? 3 : 2) * (size_t)s->dims.HK;
}

lam_view lam_dqkv_view(const lam_segment *s, lam_third third, int row)
{
    return third_of(s, s->dqkv, third, row);
}

static lam_rows dqkv_rows(const lam_segment *s, lam_third third, int row)
{
    const lam_view view = lam_dqkv_view(s, third, row);
    return (lam_rows){view.p, view.step, 3 * (size_t)s->dims.HK};
}

/* W_qkv from `third` on. */
static lam_weights third_weight(const lam_segment *s, int layer, lam_third third)
{
    const size_t row = (size_t)third * (size_t)s->dims.HK;
    return lam_weights_from(s->dev, lam_weight(s->params, s->ids[layer].qkv), row,
                            row * (size_t)s->dims.D);
}

lam_weights lam_kv_weight(const lam_segment *s, int layer)
{
    return third_weight(s, layer, LAM_K);
}

/* Rows from..to of W_qkv starting at `third` applied to the layer's input. */
static void project_part(const lam_segment *s, int layer, lam_third third, int thirds, int from,
                         int to)
{
    const lam_linear l = {s->dev,           s->B, to - from, s->dims.D, thirds * s->dims.HK,
                          (size_t)s->dims.D};
    const lam_view out = lam_qkv_view(s, layer, third, from);
    lam_linear_fwd(&l, (lam_rows){out.p, out.step, third == LAM_Q ? lam_q_ld(s) : kv_ld(s)},
                   lam_rows_from(s->dev, s->layer[layer].xn, s->T, (size_t)s->dims.D, from),
                   third_weight(s, layer, third),
                   &(lam_epilogue){.type = third == LAM_Q ? LAM_ACT : s->cache,
                                   .scale = lam_kv_scale(s, layer, third, from),
                                   .group = s->dims.K});
}

/* Queries are activations, keys and values may be cached in another type: then they go apart. */
static void project(const lam_segment *s, int layer, lam_third third, int thirds, int from, int to)
{
    if (third == LAM_Q && thirds == 3 && s->cache != LAM_ACT) {
        project_part(s, layer, LAM_Q, 1, from, to);
        project_part(s, layer, LAM_K, 2, from, to);
    } else {
        project_part(s, layer, third, thirds, from, to);
    }
}

lam_attn lam_attn_base(const lam_segment *s, lam_site site, int layer)
{
    lam_drop drop = s->drop;
    drop.p = s->dropout ? s->cfg->dropatt : 0.0;
    drop.site = lam_site_of(site, layer);
    return (lam_attn){.B = s->B,
                      .H = s->cfg->n_head,
                      .K = s->dims.K,
                      .scale = 1.0 / sqrt((double)s->cfg->d_head),
                      .drop = drop,
                      .ldq = lam_q_ld(s),
                      .ldk = kv_ld(s),
                      .kv_class = s->cache,
                      .ldo = (size_t)s->dims.HK};
}

static lam_attn causal_attn(const lam_segment *s, int layer)
{
    const lam_layer_rows *rows = &s->layer[layer];
    const int at = s->ctx + s->first;
    lam_attn a = lam_attn_base(s, LAM_SITE_ATTN, layer);
    a.mode = LAM_CAUSAL;
    a.queries = s->n;
    a.keys = at + s->n;
    a.shift = at;
    a.reach = s->cfg->same_length ? s->M : 0; /* every query sees equally many keys */
    a.valid = s->valid;
    a.past = s->ctx;
    a.q = lam_qkv_view(s, layer, LAM_Q, at);
    a.k = lam_qkv_view(s, layer, LAM_K, 0);
    a.value = lam_qkv_view(s, layer, LAM_V, 0);
    a.k_scale = lam_kv_scale(s, layer, LAM_K, 0);
    a.value_scale = lam_kv_scale(s, layer, LAM_V, 0);
    a.o = lam_row_view(s, LAM_ACT, rows->c, s->dims.HK, at);
    a.lse = lam_row_view(s, LAM_WIDE, rows->lse, s->cfg->n_head, at);
    lam_pos_past(s->pos, layer, &a);
    return a;
}

void lam_causal_fwd(const lam_segment *s, int layer, int leads)
{
    const int now = s->ctx + s->first, end = now + s->n;
    const int from = s->first == 0 ? 0 : now; /* memory rows come with the first call */
    if (leads || from == now) {
        project(s, layer, LAM_Q, 3, from, end);
    } else {
        project(s, layer, LAM_K, 2, from, end);
        project(s, layer, LAM_Q, 1, now, end);
    }
    const lam_attn a = causal_attn(s, layer);
    s->dev->ops->attn_fwd(s->dev, &a);
}

void lam_causal_attn_stats(const lam_segment *s, int layer, lam_attn_stats *p)
{
    assert(s->cache == LAM_ACT); /* analysis runs with `full` */
    p->attn = causal_attn(s, layer);
    p->cut[0] = s->ctx - s->mem->m;
    p->cut[1] = s->ctx;
    s->dev->ops->attn_stats(s->dev, p);
}

void lam_causal_next(const lam_segment *s, int layer, const lam_next_row *row)
{
    const size_t HK = (size_t)s->dims.HK;
    lam_attn_next x = {.a = causal_attn(s, layer), .at = row->at};
    x.a.keys = s->T;
    if (row->valid) {
        x.a.valid = row->valid;
        x.a.past = s->ctx;
    }
    x.a.q = (lam_view){row->qkv, 3 * HK};
    x.k = (lam_view){lam_at(s->dev, LAM_ACT, row->qkv, HK), 3 * HK};
    x.value = (lam_view){lam_at(s->dev, LAM_ACT, row->qkv, 2 * HK), 3 * HK};
    x.a.o = (lam_view){row->c, HK};
    x.a.lse = (lam_view){row->lse, (size_t)s->cfg->n_head};
    s->dev->ops->attn_next(s->dev, &x);
}

/* forward was  C = softmax((q + u) k^T + (q + v) r^T) value  on the current rows, over all rows before them. */
void lam_causal_bwd(const lam_segment *s, int layer)
{
    lam_attn a = causal_attn(s, layer);
    const int at = s->ctx;
    a.d_o = lam_row_view(s, LAM_ACT, s->dc, s->dims.HK, at);
    a.dq = lam_dqkv_view(s, LAM_Q, at);
    a.dk = lam_dqkv_view(s, LAM_K, 0);
    a.dvalue = lam_dqkv_view(s, LAM_V, 0);
    lam_pos_past_grad(s->pos, layer, &a);
    s->dev->ops->attn_bwd(s->dev, &a);
    lam_pos_past_done(s->pos, layer);
}

/* forward was [q k v] = x W^T on rows from..T for the given thirds: dW += dqkv^T x. */
static void project_bwd_w(const lam_segment *s, int layer, lam_third third, int thirds, int from)
{
    const size_t D = (size_t)s->dims.D, HK = (size_t)s->dims.HK;
    const lam_linear l = {s->dev, s->B, s->T - from, s->dims.D, thirds * s->dims.HK, D};
    void *dweight =
        lam_at(s->dev, LAM_WIDE, lam_grad(s->params, s->ids[layer].qkv), (size_t)third * HK * D);
    lam_linear_bwd_w(&l, dweight, dqkv_rows(s, third, from),
                     lam_rows_from(s->dev, s->layer[layer].xn, s->T, D, from));
}

/* ... and dx += dqkv W on rows from..to. */
static void project_bwd_x(const lam_segment *s, int layer, lam_third third, int from, int to)
{
    const size_t D = (size_t)s->dims.D;
    if (from >= to)
        return;
    const lam_linear l = {s->dev, s->B, to - from, s->dims.D, (3 - (int)third) * s->dims.HK, D};
    lam_linear_bwd_x(&l, lam_rows_from(s->dev, s->dxn, s->T, D, from), dqkv_rows(s, third, from),
                     third_weight(s, layer, third), 1.0);
}

/* forward was  q = x W_q^T  on rows q_from..T,  [k v] = x W_kv^T  on all rows;  dx counts from row dx_from on. */
void lam_project_bwd(const lam_segment *s, int layer, int q_from)
{
    if (q_from == 0) {
        project_bwd_w(s, layer, LAM_Q, 3, 0);
    } else {
        project_bwd_w(s, layer, LAM_Q, 1, q_from);
        project_bwd_w(s, layer, LAM_K, 2, 0);
    }
    /* LaMemo's W_kv is a parameter of its own, directly behind W_q. */
    if (s->params->list[s->ids[layer].qkv + 1].joined)
        s->params->list[s->ids[layer].qkv + 1].used = 1;
    const int all_from = q_from > s->dx_from ? q_from : s->dx_from;
    project_bwd_x(s, layer, LAM_Q, all_from, s->T);
    project_bwd_x(s, layer, LAM_K, s->dx_from, q_from);
}

void lam_causal_attend_fwd(const lam_segment *s, int layer)
{
    lam_causal_fwd(s, layer, 0);
}

/* forward was  [q k v] = x W^T,  C = causal attention of the current rows;  memory rows had no queries. */
void lam_causal_attend_bwd(const lam_segment *s, int layer)
{
    lam_causal_bwd(s, layer);
    lam_project_bwd(s, layer, s->ctx);
}
