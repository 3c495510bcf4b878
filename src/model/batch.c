/* batch.c -- texts of different age in one batch: their segments move in and out of it (stack.h; G8).
 *
 * What moves is the rows that later tokens and commit read: cached keys and values of every layer, and the sources of
 * the memory's slots.  In the batch a text with fewer remembered rows than M has them right before its segment, so that
 * all streams have their current rows at the same places. */
#include "model/stack_int.h"

#include <assert.h>

int lam_stack_can_batch(const lam_stack *st)
{
    return !st->opt.train && lam_mem_has(st->model->mem, LAM_CACHED) &&
           !lam_pos_is_absolute(&st->pos) && st->model->dims.K <= LAM_NEXT_WIDTH;
}

void lam_stack_open_batch(lam_stack *st, int length)
{
    lam_segment *s = &st->seg;
    assert(lam_stack_can_batch(st) && length >= 1 && length <= st->opt.N);
    s->ctx = s->M;
    s->T = s->ctx + length;
    s->first = 1; /* G4: remembered rows come computed */
    s->n = 1;     /* one row per stream has logits */
    s->dropout = 0;
    s->drop = (lam_drop){.more = st->drop_step};
    st->scored = 0;
    st->next.batch = 1;
    s->B = st->opt.B;
    for (int b = 0; b < s->B; b++) {
        st->next.age[b] = -1;
        st->next.past[b] = 0;
    }
    if (!st->positions_ready)
        lam_pos_project(&st->pos, s->drop);
    st->positions_ready = 1;
}

void lam_stack_set_width(lam_stack *batch, int streams)
{
    assert(batch->next.batch && streams >= 1 && streams <= batch->opt.B);
    batch->seg.B = streams;
}

/* Where a text lies: its stream, and how many rows in front of it hold nothing. */
typedef struct seat {
    const lam_stack *st;
    int stream, empty;
} seat;

/* The text's first rows in a buffer of either stack, `width` elements each. */
static void move_rows(seat to, void *out, seat from, const void *in, lam_class type, size_t width,
                      int rows)
{
    lam_dev *dev = to.st->dev;
    const size_t at = (size_t)to.stream * (size_t)to.st->seg.T + (size_t)to.empty;
    const size_t was = (size_t)from.stream * (size_t)from.st->seg.T + (size_t)from.empty;
    dev->ops->copy(dev, &(lam_copy){.blocks = 1,
                                    .count = (size_t)rows * width,
                                    .type = type,
                                    .in = {lam_at(dev, type, in, was * width), 0},
                                    .out = {lam_at(dev, type, out, at * width), 0}});
}

/* Keys and values in int8, and their scales. */
static void move_bytes(seat to, seat from, int layer, int rows)
{
    const lam_model *model = to.st->model;
    const lam_layer_rows *out = &to.st->rows[layer], *in = &from.st->rows[layer];
    move_rows(to, out->kv, from, in->kv, LAM_BYTE, 2 * (size_t)model->dims.HK, rows);
    move_rows(to, out->kv_scale, from, in->kv_scale, LAM_WIDE, 2 * (size_t)model->cfg.n_head, rows);
}

/* What later tokens read. */
static void move_keys(seat to, seat from, int rows)
{
    const lam_model *model = to.st->model;
    const size_t HK = (size_t)model->dims.HK;
    for (int l = 0; l < model->cfg.n_layer; l++) {
        if (to.st->seg.cache == LAM_ACT)
            move_rows(to, to.st->rows[l].qkv, from, from.st->rows[l].qkv, LAM_ACT, 3 * HK, rows);
        else if (to.st->seg.cache == LAM_HALF) /* 2HK numbers of 16 bits are HK words */
            move_rows(to, to.st->rows[l].kv, from, from.st->rows[l].kv, LAM_INT, HK, rows);
        else
            move_bytes(to, from, l, rows);
    }
}

/* What commit reads. */
static void move_sources(seat to, seat from, int rows)
{
    const lam_mem *mem = &to.st->mem;
    for (int i = 0; i < mem->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        if (i > 0 && slot[-1].source == slot->source && slot[-1].layer == slot->layer)
            continue; /* two slots of the same rows */
        move_rows(to, lam_slot_source_rows(&to.st->seg, slot), from,
                  lam_slot_source_rows(&from.st->seg, slot), slot->type, (size_t)slot->width, rows);
    }
}

void lam_stack_join(lam_stack *batch, int b, const lam_stack *one)
{
    const lam_segment *s = &one->seg;
    const int age = s->first + s->n;
    assert(batch->next.batch && s->B == 1 && one->model == batch->model && s->M == batch->seg.M);
    assert(age > 0 && age <= batch->seg.T - batch->seg.ctx);
    const seat to = {batch, b, batch->seg.ctx - s->ctx}, from = {one, 0, 0};
    move_keys(to, from, s->ctx + age);
    move_sources(to, from, s->ctx + age);
    batch->next.age[b] = age;
    batch->next.past[b] = s->ctx;
}

void lam_stack_forward_batch(lam_stack *batch, const int32_t *tokens, const unsigned char *go)
{
    lam_segment *s = &batch->seg;
    assert(batch->next.batch);
    for (int b = 0; b < s->B; b++) {
        int *age = &batch->next.age[b];
        const int goes = *age >= 0 && (!go || go[b]), at = *age < 0 ? 0 : *age;
        assert(at < s->T - s->ctx);
        /* Who stays computes a row too, which the stream's next token overwrites. */
        batch->next.host[b] = s->ctx + at;
        batch->next.host[s->B + b] = goes ? tokens[b] : 0;
        batch->next.host[2 * s->B + b] = batch->next.past[b];
        *age += goes;
    }
    lam_stack_next_rows(batch);
}

void lam_stack_leave(lam_stack *one, lam_stack *batch, int b)
{
    lam_segment *s = &one->seg;
    const int age = batch->next.age[b], ctx = batch->next.past[b];
    assert(batch->next.batch && s->B == 1 && s->ctx == ctx && age > 0 && age <= s->T - s->ctx);
    move_sources((seat){one, 0, 0}, (seat){batch, b, batch->seg.ctx - ctx}, ctx + age);
    s->first = age - 1;
    s->n = 1;
    lam_stack_drop(batch, b);
}

void lam_stack_drop(lam_stack *batch, int b)
{
    batch->next.age[b] = -1;
    batch->next.past[b] = 0;
}

int lam_stack_age(const lam_stack *batch, int b)
{
    return batch->next.age[b];
}
