/* block.c -- one layer around its attention: W_o, residual, LayerNorm, feed-forward (Eq. 3).
 *
 *   post-norm (the paper)   y = LN1(x + drop(C W_o^T));  x' = LN2(y + drop(FFN(y)))
 *   pre-norm                s = x + drop(C W_o^T);       x' = s + drop(FFN(LN2(s))), C from LN1(x)
 * with FFN(y) = drop(relu(y W_1^T + b_1)) W_2^T + b_2.
 *
 * It works on rows from..T of every stream: current rows, and memory rows where they climb. */
#include "model/stack_int.h"

#include "nn/sites.h"

#include "core/rng.h"

/* First row per stream that `layer` computes in this call (G4). */
static int first_row(const lam_stack *st, int layer)
{
    const lam_segment *s = &st->seg;
    const int climbs = s->first == 0 && lam_mem_climbs(s, layer);
    return climbs ? 0 : s->ctx + s->first;
}

static lam_drop drop_at(const lam_stack *st, lam_site site, int layer)
{
    lam_drop drop = st->seg.drop;
    drop.site = lam_site_of(site, layer);
    return drop;
}

/* Rows from..end of a [B][T][D] buffer as a view. */
static lam_view rows_view(const lam_stack *st, void *p, int from)
{
    const size_t D = (size_t)st->model->dims.D;
    return (lam_view){lam_at(st->dev, LAM_ACT, p, (size_t)from * D), (size_t)st->seg.T * D};
}

/* What one call of a block works on. */
typedef struct work {
    const lam_layer_params *ids;
    const lam_params *p;
    lam_block_acts *acts;
    int from, rows; /* per stream */
    lam_linear out, w1, w2;
    lam_rows c; /* contexts */
    size_t D, F;
} work;

static work work_of(lam_stack *st, int layer)
{
    const lam_segment *s = &st->seg;
    const lam_dims d = st->model->dims;
    work w = {.ids = &st->model->layer[layer], .p = &st->model->params, .acts = &st->acts[layer]};
    w.from = first_row(st, layer);
    w.rows = s->ctx + s->first + s->n - w.from;
    w.D = (size_t)d.D;
    w.F = (size_t)d.F;
    w.out = (lam_linear){st->dev, s->B, w.rows, d.HK, d.D, (size_t)d.HK};
    w.w1 = (lam_linear){st->dev, 1, s->B * w.rows, d.D, d.F, w.D};
    w.w2 = (lam_linear){st->dev, 1, s->B * w.rows, d.F, d.D, w.F};
    w.c = lam_rows_from(st->dev, s->layer[layer].c, s->T, (size_t)d.HK, w.from);
    return w;
}

static lam_rows packed(void *p, int rows, size_t ld)
{
    return (lam_rows){p, (size_t)rows * ld, ld};
}

/* The residual around attention, as forward ran it; backward adds the gradient fields. */
static lam_norm norm1_of(lam_stack *st, const work *w, int layer)
{
    const int pre = st->model->cfg.pre_lnorm;
    return (lam_norm){.blocks = st->seg.B,
                      .rows = w->rows,
                      .width = st->model->cfg.d_model,
                      .ld = (int)w->D,
                      .eps = st->model->cfg.layer_norm_epsilon,
                      .drop = drop_at(st, LAM_SITE_ATTN_OUT, layer),
                      .x = rows_view(st, st->rows[layer].x, w->from),
                      .y = {w->acts->y1, (size_t)w->rows * w->D},
                      .add = st->attn_out,
                      .sum = w->acts->sum1,
                      .mean = w->acts->mean1,
                      .rstd = w->acts->rstd1,
                      .gain = lam_vector(w->p, pre ? w->ids->norm2_gain : w->ids->norm1_gain),
                      .shift = lam_vector(w->p, pre ? w->ids->norm2_shift : w->ids->norm1_shift)};
}

/* The residual around the feed-forward part. */
static lam_norm norm2_of(lam_stack *st, const work *w, int layer)
{
    const int pre = st->model->cfg.pre_lnorm;
    lam_norm a = {.blocks = st->seg.B,
                  .rows = w->rows,
                  .width = st->model->cfg.d_model,
                  .ld = (int)w->D,
                  .eps = st->model->cfg.layer_norm_epsilon,
                  .drop = drop_at(st, LAM_SITE_FFN_OUT, layer),
                  .x = {pre ? w->acts->sum1 : w->acts->y1, (size_t)w->rows * w->D},
                  .y = rows_view(st, st->rows[layer + 1].x, w->from),
                  .add = st->ffn_out,
                  .bias = lam_vector(w->p, w->ids->b2)};
    if (!pre) {
        a.sum = w->acts->sum2;
        a.mean = w->acts->mean2;
        a.rstd = w->acts->rstd2;
        a.gain = lam_vector(w->p, w->ids->norm2_gain);
        a.shift = lam_vector(w->p, w->ids->norm2_shift);
    }
    return a;
}

/* Pre-norm only: LN1 over every row attention reads, memory rows too. */
static lam_norm norm0_of(lam_stack *st, const work *w, int layer)
{
    const lam_segment *s = &st->seg;
    const int from = s->first == 0 ? 0 : s->ctx + s->first;
    return (lam_norm){.blocks = s->B,
                      .rows = s->ctx + s->first + s->n - from,
                      .width = st->model->cfg.d_model,
                      .ld = (int)w->D,
                      .eps = st->model->cfg.layer_norm_epsilon,
                      .x = rows_view(st, st->rows[layer].x, from),
                      .y = rows_view(st, st->rows[layer].xn, from),
                      .mean = w->acts->mean0,
                      .rstd = w->acts->rstd0,
                      .gain = lam_vector(w->p, w->ids->norm1_gain),
                      .shift = lam_vector(w->p, w->ids->norm1_shift)};
}

/* What is behind the attention, whose contexts are c, but the last residual: W_o, the first one, the feed-forward part. */
static void after_attention(lam_stack *st, int layer, const work *w, lam_rows c,
                            const lam_norm *norm1)
{
    lam_linear_fwd(&w->out, packed(st->attn_out, w->rows, w->D), c, lam_weight(w->p, w->ids->o_net),
                   NULL);
    if (st->model->mem->output)
        st->model->mem->output(&st->seg, layer);
    lam_linear_norm_fwd(&w->w1, packed(w->acts->inner, w->rows, w->F), norm1,
                        lam_weight(w->p, w->ids->w1),
                        &(lam_epilogue){.bias = lam_vector(w->p, w->ids->b1),
                                        .relu = 1,
                                        .drop = drop_at(st, LAM_SITE_INNER, layer)});
    lam_linear_fwd(&w->w2, packed(st->ffn_out, w->rows, w->D),
                   packed(w->acts->inner, w->rows, w->F), lam_weight(w->p, w->ids->w2), NULL);
}

void lam_block_fwd(lam_stack *st, int layer)
{
    const work w = work_of(st, layer);
    const lam_norm norm1 = norm1_of(st, &w, layer), norm2 = norm2_of(st, &w, layer);
    if (st->model->cfg.pre_lnorm) {
        const lam_norm norm0 = norm0_of(st, &w, layer);
        st->dev->ops->norm_fwd(st->dev, &norm0);
    }
    st->model->mem->attend_fwd(&st->seg, layer);
    after_attention(st, layer, &w, w.c, &norm1);
    st->dev->ops->norm_fwd(st->dev, &norm2);
}

/* q, k, v of one row per stream, and the row itself where it is still to be made. */
static void project_next(lam_stack *st, int layer, const work *w, const lam_next_row *row,
                         const lam_norm *enter, void *x)
{
    const lam_dims d = st->model->dims;
    const lam_linear project = {st->dev, 1, st->seg.B, d.D, 3 * d.HK, w->D};
    const lam_rows qkv = packed(row->qkv, 1, 3 * (size_t)d.HK);
    const lam_weights weight = lam_weight(w->p, w->ids->qkv);
    lam_norm norm0;
    if (st->model->cfg.pre_lnorm) { /* the row is what is normalised: enter's y is norm0's sum */
        norm0 = norm0_of(st, w, layer);
        norm0.x = enter ? enter->x : (lam_view){x, w->D};
        norm0.y = (lam_view){st->attn_out, w->D};
        norm0.add = enter ? enter->add : NULL;
        norm0.bias = enter ? enter->bias : NULL;
        norm0.sum = x;
        enter = &norm0;
    }
    if (enter)
        lam_linear_norm_fwd(&project, qkv, enter, weight, NULL);
    else
        lam_linear_fwd(&project, qkv, packed(x, 1, w->D), weight, NULL);
}

/* The same for one row per stream in buffers of its own (token.c). */
lam_norm lam_block_next(lam_stack *st, int layer, const lam_next_row *row, const lam_norm *enter,
                        void *x)
{
    const work w = work_of(st, layer);
    lam_norm norm1 = norm1_of(st, &w, layer);
    norm1.x = (lam_view){x, w.D};
    project_next(st, layer, &w, row, enter, x);
    lam_causal_next(&st->seg, layer, row);
    after_attention(st, layer, &w, packed(row->c, 1, (size_t)st->model->dims.HK), &norm1);
    return norm2_of(st, &w, layer);
}

/* forward was  inner = drop(relu(y W_1^T + b_1)),  f = inner W_2^T  (b_2 and the dropout of f are in norm2); so
 *   dW_2 += df^T inner,  dinner = df W_2 where inner > 0, scaled as dropout scaled it,  db_1 += sum of dinner,
 *   dW_1 += dinner^T y,  dy1 = beta dy1 + dinner W_1.
 * st->ffn_out holds df. */
static void ffn_bwd(lam_stack *st, const work *w, int layer, double beta)
{
    const lam_rows df = packed(st->ffn_out, w->rows, w->D);
    const lam_rows inner = packed(w->acts->inner, w->rows, w->F);
    const lam_rows dinner = packed(st->dinner, w->rows, w->F);
    const double p = drop_at(st, LAM_SITE_INNER, layer).p;

    lam_linear_bwd_w(&w->w2, lam_grad(w->p, w->ids->w2), df, inner);
    lam_linear_bwd_relu(
        &w->w2, dinner, df, lam_weight(w->p, w->ids->w2),
        &(lam_passed){inner.p, p > 0.0 ? lam_drop_scale(p) : 1.0, lam_grad(w->p, w->ids->b1)});
    lam_linear_bwd_w(&w->w1, lam_grad(w->p, w->ids->w1), dinner,
                     packed(w->acts->y1, w->rows, w->D));
    lam_linear_bwd_x(&w->w1, packed(st->dy1, w->rows, w->D), dinner, lam_weight(w->p, w->ids->w1),
                     beta);
}

/* Rows in front that this layer did not compute had no part in its output: their gradient is zero. */
static void clear_front(lam_stack *st, void *dx, int rows)
{
    const size_t D = (size_t)st->model->dims.D;
    if (rows > 0)
        st->dev->ops->copy(st->dev, &(lam_copy){.blocks = st->seg.B,
                                                .count = (size_t)rows * D,
                                                .type = LAM_ACT,
                                                .out = {dx, (size_t)st->seg.T * D}});
}

/* forward was  a = C W_o^T,  C = attend(xn);  so  dW_o += da^T C,  dC = da W_o,  and attend_bwd adds to dxn what reaches
 * xn through C.  st->attn_out holds da.  Post-norm: xn is x and dx already holds the residual's share. */
static void attend_bwd(lam_stack *st, const work *w, int layer, void *dx)
{
    lam_segment *s = &st->seg;
    const int pre = st->model->cfg.pre_lnorm;
    const int climbs = layer > 0 && lam_mem_climbs(s, layer - 1);

    lam_linear_bwd_w(&w->out, lam_grad(w->p, w->ids->o_net), packed(st->attn_out, w->rows, w->D),
                     w->c);
    lam_linear_bwd_x(&w->out,
                     lam_rows_from(st->dev, s->dc, s->T, (size_t)st->model->dims.HK, w->from),
                     packed(st->attn_out, w->rows, w->D), lam_weight(w->p, w->ids->o_net), 0.0);
    void *const dxn = s->dxn;
    if (pre)
        clear_front(st, dxn, s->T);
    else
        s->dxn = dx;
    s->dx_from = pre || climbs ? 0 : s->ctx;
    st->model->mem->attend_bwd(s, layer);
    s->dxn = dxn;
}

/* The forward lines from the last to the first:
 *   post-norm   x' = LN2(y + drop(f + b_2)),   f = FFN(y),       y = LN1(x + drop(a)),      a = attend(x)
 *   pre-norm    x' = s + drop(f + b_2),        f = FFN(LN2(s)),  s = x + drop(a),           a = attend(LN1(x)) */
void lam_block_bwd(lam_stack *st, int layer)
{
    lam_dev *dev = st->dev;
    const work w = work_of(st, layer);
    const int pre = st->model->cfg.pre_lnorm;
    void *dout = st->dx[(layer + 1) & 1], *dx = st->dx[layer & 1];
    const lam_view dy1 = {st->dy1, (size_t)w.rows * w.D};

    /* forward was  x' = LN2(y + drop(f + b_2)),  pre-norm  x' = s + drop(f + b_2) */
    lam_norm norm2 = norm2_of(st, &w, layer);
    norm2.dy = rows_view(st, dout, w.from);
    norm2.dx = dy1; /* pre-norm: the gradient of the sum, which also goes straight on */
    norm2.dadd = st->ffn_out;
    norm2.dbias = lam_grad(w.p, w.ids->b2);
    if (!pre) {
        norm2.dgain = lam_grad(w.p, w.ids->norm2_gain);
        norm2.dshift = lam_grad(w.p, w.ids->norm2_shift);
    } else {
        norm2.dx = (lam_view){rows_view(st, dx, w.from).p, (size_t)st->seg.T * w.D};
    }
    dev->ops->norm_bwd(dev, &norm2);
    ffn_bwd(st, &w, layer, pre ? 0.0 : 1.0);

    /* forward was  y = LN1(x + drop(a)),  pre-norm  LN2(s) with s = x + drop(a) */
    lam_norm norm1 = norm1_of(st, &w, layer);
    norm1.dy = dy1;
    norm1.dx = rows_view(st, dx, w.from);
    norm1.dadd = st->attn_out;
    norm1.dgain = lam_grad(w.p, pre ? w.ids->norm2_gain : w.ids->norm1_gain);
    norm1.dshift = lam_grad(w.p, pre ? w.ids->norm2_shift : w.ids->norm1_shift);
    if (pre)
        norm1.dsum = norm1.dx;
    dev->ops->norm_bwd(dev, &norm1);
    clear_front(st, dx, w.from);
    attend_bwd(st, &w, layer, dx);

    if (pre) { /* forward was  xn = LN1(x); x also went straight on, so dx is added to */
        lam_norm norm0 = norm0_of(st, &w, layer);
        norm0.dy = rows_view(st, st->seg.dxn, 0);
        norm0.dx = norm0.dsum = rows_view(st, dx, 0);
        norm0.dgain = lam_grad(w.p, w.ids->norm1_gain);
        norm0.dshift = lam_grad(w.p, w.ids->norm1_shift);
        dev->ops->norm_bwd(dev, &norm0);
    }
}
