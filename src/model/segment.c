/* segment.c -- see stack.h: one segment's way through a stack, forward, backward and into the memory. */
#include "model/stack_int.h"

#include "nn/sites.h"

#include <stdlib.h>

void lam_stack_reset(lam_stack *st)
{
    lam_mem_reset(&st->mem);
    st->positions_ready = 0;
}

void lam_stack_begin(lam_stack *st, int length, lam_noise noise)
{
    lam_segment *s = &st->seg;
    s->ctx = lam_mem_context(&st->mem);
    s->T = s->ctx + length;
    s->first = 0;
    s->n = 0;
    st->score = 0;
    s->noisy = noise.on;
    s->drop = (lam_drop){
        .p = noise.on ? st->model->cfg.dropout : 0.0, .seed = noise.seed, .more = st->count};
    if (noise.on) /* an argument would make every step another one */
        st->dev->ops->upload(st->dev, st->count, &noise.step, sizeof noise.step);
    lam_mem_load(s);
    /* Between weight updates and without dropout the positional keys stay what they are. */
    if (st->opt.train || !st->positions_ready)
        lam_pos_project(&st->pos, s->drop);
    st->positions_ready = 1;
}

void lam_stack_score(lam_stack *st, int n)
{
    st->score = n;
}

int lam_stack_scored(const lam_stack *st)
{
    return st->score > 0 && st->score < st->seg.n ? st->score : st->seg.n;
}

/* The last `rows` current rows of this call in a [B][T][D] buffer. */
static lam_view current(const lam_stack *st, void *p, int rows)
{
    const lam_segment *s = &st->seg;
    const size_t D = (size_t)st->model->dims.D;
    return (lam_view){lam_at(st->dev, LAM_ACT, p, (size_t)(s->ctx + s->first + s->n - rows) * D),
                      (size_t)s->T * D};
}

static lam_view packed(const lam_stack *st, void *p, int rows)
{
    return (lam_view){p, (size_t)rows * (size_t)st->model->dims.D};
}

/* Dropout between `rows` rows of each stream in the segment and packed ones [B*rows][D]; either way round. */
static void drop_rows(lam_stack *st, lam_site site, int rows, lam_view in, lam_view out)
{
    lam_dropout a = {.blocks = st->seg.B,
                     .rows = rows,
                     .width = st->model->cfg.d_model,
                     .ld = st->model->dims.D,
                     .drop = st->seg.drop,
                     .in = in,
                     .out = out};
    a.drop.site = site;
    st->dev->ops->dropout(st->dev, &a);
}

void lam_stack_forward(lam_stack *st, const int32_t *tokens, int n)
{
    lam_segment *s = &st->seg;
    lam_dev *dev = st->dev;
    if (lam_stack_can_next(st, n)) {
        lam_stack_next(st, tokens);
        return;
    }
    const int rows = s->B * n, L = st->model->cfg.n_layer;
    s->first += s->n; /* what earlier calls of this segment computed */
    s->n = n;

    dev->ops->upload(dev, st->tokens, tokens, (size_t)rows * sizeof *tokens);
    lam_embed_rows(&st->embed, st->wide1, st->tokens, rows);
    const int placed = lam_pos_is_absolute(&st->pos);
    if (placed)
        lam_pos_add(&st->pos, st->wide2, st->wide1, s->B, s->first, n);
    drop_rows(st, LAM_SITE_EMBED, n, packed(st, placed ? st->wide2 : st->wide1, n),
              current(st, st->rows[0].x, n));
    for (int l = 0; l < L; l++)
        lam_block_fwd(st, l);
    const int scored = lam_stack_scored(st);
    drop_rows(st, LAM_SITE_OUTPUT, scored, current(st, st->rows[L].x, scored),
              packed(st, st->z, scored));
}

void lam_stack_loss(lam_stack *st, const int32_t *targets, double grad_scale)
{
    st->seg.grad_scale = grad_scale;
    lam_head_loss(&st->head, st->nll, st->z, targets, st->seg.B * lam_stack_scored(st), grad_scale,
                  st->dz);
}

static size_t aux_count(const lam_stack *st)
{
    return (size_t)st->model->cfg.n_layer * (size_t)st->opt.B * (size_t)st->opt.N *
           (size_t)st->model->cfg.n_head;
}

void lam_stack_backward(lam_stack *st)
{
    lam_segment *s = &st->seg;
    const int L = st->model->cfg.n_layer, scored = lam_stack_scored(st);
    const size_t rows = (size_t)s->B * (size_t)s->T * (size_t)st->model->dims.D;
    if (s->aux)
        st->dev->ops->zero(st->dev, s->aux, aux_count(st) * lam_class_size(st->dev, LAM_WIDE));
    if (scored < s->n) /* rows that are not scored: no gradient comes from above */
        st->dev->ops->zero(st->dev, st->dx[L & 1], rows * lam_class_size(st->dev, LAM_ACT));
    /* z = drop(x_L): dropout is linear, its gradient is itself. */
    drop_rows(st, LAM_SITE_OUTPUT, scored, packed(st, st->dz, scored),
              current(st, st->dx[L & 1], scored));
    for (int l = L - 1; l >= 0; l--)
        lam_block_bwd(st, l);
    drop_rows(st, LAM_SITE_EMBED, s->n, current(st, st->dx[0], s->n), packed(st, st->wide1, s->n));
    lam_embed_rows_bwd(&st->embed, st->wide1, st->tokens, s->B * s->n);
}

void lam_stack_commit(lam_stack *st)
{
    const int done = st->seg.first + st->seg.n - st->opt.E; /* the next segment computes E again */
    lam_mem_commit(&st->mem, &st->seg, done > 0 ? done : 0);
}

void lam_stack_tally(lam_stack *st, void *totals)
{
    const lam_ops *ops = st->dev->ops;
    ops->tally(st->dev,
               &(lam_tally){.n = st->seg.B * lam_stack_scored(st), .x = st->nll, .totals = totals});
    const size_t parts = st->seg.aux ? aux_count(st) : 0, most = 1 << 30; /* n is an int */
    for (size_t at = 0; at < parts; at += most)
        ops->tally(st->dev, &(lam_tally){.n = (int)(parts - at < most ? parts - at : most),
                                         .x = lam_at(st->dev, LAM_WIDE, st->seg.aux, at),
                                         .totals = lam_at(st->dev, LAM_WIDE, totals, 4)});
}

/* n WIDE numbers of the device as doubles. */
static lam_status fetch(lam_stack *st, double *out, const void *from, size_t n)
{
    lam_dev *dev = st->dev;
    void *raw = malloc((n + 1) * sizeof(double));
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "loss: no memory for %zu rows", n);
    const lam_status status = dev->ops->download(dev, raw, from, n * lam_class_size(dev, LAM_WIDE));
    if (status == LAM_OK)
        lam_convert(out, LAM_F64, raw, dev->wide, n);
    free(raw);
    return status;
}

lam_status lam_stack_nll(lam_stack *st, double *nll)
{
    return fetch(st, nll, st->nll, (size_t)st->seg.B * (size_t)lam_stack_scored(st));
}

int lam_stack_has_aux(const lam_stack *st)
{
    return st->seg.aux != NULL;
}

lam_status lam_stack_aux(lam_stack *st, double *sum)
{
    const size_t n = st->seg.aux ? aux_count(st) : 0;
    double *parts = malloc((n + 1) * sizeof *parts);
    *sum = 0.0;
    const lam_status status =
        parts ? fetch(st, parts, st->seg.aux, n) : lam_fail(LAM_ERR_MEMORY, "loss: no memory");
    for (size_t i = 0; i < n && status == LAM_OK; i++)
        *sum += parts[i];
    free(parts);
    return status;
}
