/* plan.c -- where every buffer of a stack lies: one function, run once to measure and once for real.
 *
 * When training, each layer keeps its own activations for backward.  Otherwise layers take turns in
 * one set, except the rows that commit or later calls of the same segment read. */
#include "model/stack_int.h"

static void *act(lam_stack *st, lam_arena *arena, size_t rows, int width)
{
    return lam_arena_take(arena, rows * (size_t)width * lam_class_size(st->dev, LAM_ACT));
}

static void *wide(lam_stack *st, lam_arena *arena, size_t n)
{
    return lam_arena_take(arena, n * lam_class_size(st->dev, LAM_WIDE));
}

/* Rows that go through a block in one call: all of a segment, or one of every stream. */
static size_t rows_at_once(const lam_stack *st)
{
    return (size_t)st->opt.B * (st->opt.batch ? 1 : (size_t)(st->seg.M + st->opt.N));
}

/* Does commit read this buffer of a layer? */
static int commits(const lam_stack *st, lam_slot_source source, int layer)
{
    int found = 0;
    for (int i = 0; i < st->mem.n_slots; i++)
        found |= st->mem.slots[i].source == source && st->mem.slots[i].layer == layer;
    return found;
}

/* Nothing else reads it in a batch. */
static int is_source(const lam_stack *st, lam_slot_source source, int layer)
{
    return !st->opt.batch || commits(st, source, layer);
}

/* What enters a layer.  Without a backward pass only the call itself reads it, and the layer before and behind. */
static void *layout_x(lam_stack *st, lam_arena *arena, size_t rows, int layer)
{
    const int kept = st->opt.train || st->opt.full || commits(st, LAM_FROM_X, layer);
    if (!is_source(st, LAM_FROM_X, layer))
        return NULL;
    if (!kept && layer >= 2 && !commits(st, LAM_FROM_X, layer - 2))
        return st->rows[layer - 2].x;
    return act(st, arena, rows, st->model->dims.D);
}

static void layout_block(lam_stack *st, lam_arena *arena, lam_block_acts *a)
{
    const lam_dims d = st->model->dims;
    const size_t rows = rows_at_once(st);
    const int pre = st->model->cfg.pre_lnorm;
    a->sum1 = act(st, arena, rows, d.D);
    a->mean1 = wide(st, arena, rows);
    a->rstd1 = wide(st, arena, rows);
    a->y1 = act(st, arena, rows, d.D);
    a->inner = act(st, arena, rows, d.F);
    a->sum2 = pre ? NULL : act(st, arena, rows, d.D);
    a->mean2 = pre ? NULL : wide(st, arena, rows);
    a->rstd2 = pre ? NULL : wide(st, arena, rows);
    a->mean0 = pre ? wide(st, arena, rows) : NULL;
    a->rstd0 = pre ? wide(st, arena, rows) : NULL;
}

static void layout_rows(lam_stack *st, lam_arena *arena, int layer)
{
    const lam_dims d = st->model->dims;
    const lam_config *cfg = &st->model->cfg;
    const size_t rows = (size_t)st->opt.B * (size_t)(st->seg.M + st->opt.N);
    lam_layer_rows *r = &st->rows[layer];

    r->x = layout_x(st, arena, rows, layer);
    if (layer == cfg->n_layer)
        return;
    r->xn = cfg->pre_lnorm && !st->opt.batch ? act(st, arena, rows, d.D) : r->x;
    if (st->seg.cache == LAM_ACT) {
        r->qkv = act(st, arena, rows, 3 * d.HK);
    } else { /* queries are gone with the call, keys and values stay */
        r->qkv = layer == 0 ? act(st, arena, rows_at_once(st), d.HK) : st->rows[0].qkv;
        r->kv =
            lam_arena_take(arena, rows * 2 * (size_t)d.HK * lam_class_size(st->dev, st->seg.cache));
        r->kv_scale =
            st->seg.cache == LAM_BYTE ? wide(st, arena, rows * 2 * (size_t)cfg->n_head) : NULL;
    }
    if (is_source(st, LAM_FROM_C, layer))
        r->c = act(st, arena, rows, d.HK);
    if (is_source(st, LAM_FROM_LSE, layer))
        r->lse = wide(st, arena, rows * (size_t)cfg->n_head);
}

static void layout_backward(lam_stack *st, lam_arena *arena)
{
    const lam_dims d = st->model->dims;
    const size_t rows = (size_t)st->opt.B * (size_t)(st->seg.M + st->opt.N);
    lam_segment *s = &st->seg;
    s->dqkv = act(st, arena, rows, 3 * d.HK);
    s->dc = act(st, arena, rows, d.HK);
    s->dxn = st->model->cfg.pre_lnorm ? act(st, arena, rows, d.D) : NULL;
    st->dx[0] = act(st, arena, rows, d.D);
    st->dx[1] = act(st, arena, rows, d.D);
    st->dinner = act(st, arena, rows, d.F);
    st->dy1 = act(st, arena, rows, d.D);
    st->dz = act(st, arena, (size_t)st->opt.B * (size_t)st->opt.N, d.D);
}

static void layout_next(lam_stack *st, lam_arena *arena)
{
    const lam_dims d = st->model->dims;
    const size_t B = (size_t)st->opt.B, rows = B * (size_t)st->model->cfg.n_layer;
    st->next.now = lam_arena_take(arena, 3 * B * sizeof(int32_t));
    st->next.x = act(st, arena, rows, d.D);
    st->next.c = act(st, arena, rows, d.HK);
    st->next.lse = wide(st, arena, rows * (size_t)st->model->cfg.n_head);
    st->next.qkv = act(st, arena, B, 3 * d.HK);
}

void lam_stack_layout(lam_stack *st, lam_arena *arena)
{
    const lam_config *cfg = &st->model->cfg;
    const lam_dims d = st->model->dims;
    const size_t rows = rows_at_once(st);
    const size_t now = (size_t)st->opt.B * (st->opt.batch ? 1 : (size_t)st->opt.N);
    const int L = cfg->n_layer;

    const size_t before = arena->used;
    lam_mem_layout(&st->mem, st->cfg, st->opt.full, st->opt.batch ? &(lam_arena){0} : arena);
    st->state_bytes = arena->used - before;

    lam_pos_layout(&st->pos, arena, st->opt.train);
    lam_embed_layout(&st->embed, arena, st->opt.train);
    lam_head_layout(&st->head, arena, st->opt.train);
    for (int l = 0; l <= L; l++)
        layout_rows(st, arena, l);
    for (int l = 0; l < L; l++) {
        if (l == 0 || st->opt.train)
            layout_block(st, arena, &st->acts[l]);
        else
            st->acts[l] = st->acts[0];
    }
    st->tokens = lam_arena_take(arena, now * sizeof(int32_t));
    st->valid = lam_arena_take(arena, (size_t)st->opt.B * sizeof(int32_t));
    st->drop_step = lam_arena_take(arena, sizeof(int32_t));
    st->attn_out = st->seg.out = act(st, arena, rows, d.D);
    st->ffn_out = act(st, arena, rows, d.D);
    st->z = act(st, arena, now, d.D);
    st->nll = wide(st, arena, now);
    if (st->opt.train)
        layout_backward(st, arena);
    else
        layout_next(st, arena);
    if (st->model->mem->layout && !st->opt.batch)
        st->model->mem->layout(&st->seg, arena);
}
