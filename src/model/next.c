/* next.c -- decoding: one more token of every stream, with the same operations on the same addresses for
 * every token of a segment, so that a device that records work plays one recording (ops.h, repeat).
 *
 * What changes from token to token is in memory: the tokens and their row number.  The row lives in buffers of
 * its own while it climbs the layers; its keys and values join the segment's as they are needed, and
 * what the memory will keep of it is put in its place at the end, by one operation.
 * The numbers are those of lam_stack_forward, which takes this way whenever it can. */
#include "model/stack_int.h"

#include <string.h>

int lam_stack_can_next(const lam_stack *st, int n)
{
    const lam_segment *s = &st->seg;
    return n == 1 && s->first + s->n > 0 && !st->opt.train && !s->noisy && s->cache == LAM_ACT &&
           lam_mem_has(st->model->mem, LAM_CACHED) && !lam_pos_is_absolute(&st->pos) &&
           st->model->dims.K <= LAM_NEXT_WIDTH;
}

/* Layer l's stretch of a buffer of [L][B][width]. */
static void *of_layer(const lam_stack *st, lam_class type, void *p, int l, int width)
{
    return lam_at(st->dev, type, p, (size_t)l * (size_t)st->opt.B * (size_t)width);
}

/* The row that enters layer l; the last one leaves the stack. */
static void *row_of(const lam_stack *st, int l)
{
    return l == st->model->cfg.n_layer ? st->z
                                       : of_layer(st, LAM_ACT, st->next.x, l, st->model->dims.D);
}

/* What commit will look for in the segment's rows. */
static void place(lam_stack *st)
{
    const lam_mem *mem = &st->mem;
    int n = 0;
    for (int i = 0; i < mem->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        void *in = slot->source == LAM_FROM_X ? row_of(st, slot->layer)
                   : slot->source == LAM_FROM_C
                       ? of_layer(st, LAM_ACT, st->next.c, slot->layer, slot->width)
                       : of_layer(st, LAM_WIDE, st->next.lse, slot->layer, slot->width);
        if (i > 0 && slot[-1].source == slot->source && slot[-1].layer == slot->layer)
            continue; /* two slots of the same rows */
        st->next.items[n++] = (lam_place_item){
            slot->type,
            slot->width,
            in,
            {lam_slot_source_rows(&st->seg, slot), (size_t)st->seg.T * (size_t)slot->width}};
    }
    if (n > 0)
        st->dev->ops->place(st->dev, &(lam_place){st->opt.B, n, st->next.items, st->next.now});
}

static void work(void *arg)
{
    lam_stack *st = arg;
    const lam_dims d = st->model->dims;
    const int B = st->opt.B, L = st->model->cfg.n_layer;
    st->dev->ops->upload(st->dev, st->next.now, st->next.host,
                         (size_t)(B + 1) * sizeof *st->next.host);
    lam_embed_rows(&st->embed, row_of(st, 0), lam_at(st->dev, LAM_INT, st->next.now, 1), B);
    for (int l = 0; l < L; l++) {
        const lam_next_row row = {
            .at = st->next.now,
            .qkv = st->next.qkv,
            .c = of_layer(st, LAM_ACT, st->next.c, l, d.HK),
            .lse = of_layer(st, LAM_WIDE, st->next.lse, l, st->model->cfg.n_head)};
        lam_block_next(st, l, &row, row_of(st, l), row_of(st, l + 1));
    }
    place(st);
}

void lam_stack_next(lam_stack *st, const int32_t *tokens)
{
    lam_segment *s = &st->seg;
    s->first += s->n;
    s->n = 1;
    st->next.host[0] = s->ctx + s->first;
    memcpy(st->next.host + 1, tokens, (size_t)s->B * sizeof *tokens);
    /* All addresses and strides follow from T. */
    st->dev->ops->repeat(st->dev, &st->next.tape, (uint64_t)s->T, work, st);
}
