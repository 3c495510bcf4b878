/* token.c -- decoding: the segment's path for one more token of every stream.
 *
 * Every token of a segment is the same operations on the same addresses, so that a device may capture them once and
 * replay them (R1).  What changes is in memory: the tokens and their row number (R2).  The row lives in buffers of its
 * own while it climbs the layers; its keys and values join the segment's as they are needed, and what commit
 * will look for is put in its place at the end, by one operation.  The numbers are those of lam_stack_forward, which
 * takes this path whenever it can. */
#include "model/stack_int.h"

#include <string.h>

int lam_stack_can_next(const lam_stack *st, int n)
{
    const lam_segment *s = &st->seg;
    return n == 1 && s->first + s->n > 0 && !s->dropout && !st->seat && lam_stack_can_batch(st);
}

/* Layer l's stretch of a buffer of [L][B][width]. */
static void *of_layer(const lam_stack *st, lam_class type, void *p, int l, int width)
{
    return lam_at(st->dev, type, p, (size_t)l * (size_t)st->seg.B * (size_t)width);
}

/* The row that enters layer l; the last one leaves the stack. */
static void *row_of(const lam_stack *st, int l)
{
    return l == st->model->cfg.n_layer ? st->z
                                       : of_layer(st, LAM_ACT, st->next.x, l, st->model->dims.D);
}

/* What commit will look for in the segment's rows. */
static void put_rows(lam_stack *st)
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
        st->next.items[n++] = (lam_put_item){
            slot->type,
            slot->width,
            in,
            {lam_slot_source_rows(&st->seg, slot), (size_t)st->seg.T * (size_t)slot->width}};
    }
    if (n > 0)
        st->dev->ops->put_rows(st->dev,
                               &(lam_put_rows){st->seg.B, n, st->next.items, st->next.now});
}

static void work(void *arg)
{
    lam_stack *st = arg;
    const lam_dims d = st->model->dims;
    const int B = st->seg.B, L = st->model->cfg.n_layer;
    lam_embed_rows(&st->embed, row_of(st, 0), lam_at(st->dev, LAM_INT, st->next.now, (size_t)B), B);
    lam_norm enter = {0};
    for (int l = 0; l < L; l++) {
        const lam_next_row row = {
            .at = st->next.now,
            .valid = st->next.batch ? lam_at(st->dev, LAM_INT, st->next.now, 2 * (size_t)B) : NULL,
            .qkv = st->next.qkv,
            .c = of_layer(st, LAM_ACT, st->next.c, l, d.HK),
            .lse = of_layer(st, LAM_WIDE, st->next.lse, l, st->model->cfg.n_head)};
        const lam_norm next = lam_block_next(st, l, &row, l > 0 ? &enter : NULL, row_of(st, l));
        enter = next;
        enter.y = (lam_view){row_of(st, l + 1), (size_t)d.D};
    }
    st->dev->ops->norm_fwd(st->dev, &enter);
    put_rows(st);
}

void lam_stack_next(lam_stack *st, const int32_t *tokens)
{
    lam_segment *s = &st->seg;
    s->first += s->n; /* G3 */
    s->n = 1;
    for (int b = 0; b < s->B; b++)
        st->next.host[b] = s->ctx + s->first;
    memcpy(st->next.host + s->B, tokens, (size_t)s->B * sizeof *tokens);
    lam_stack_next_rows(st);
}

void lam_stack_next_rows(lam_stack *st)
{
    /* R1, G1: all addresses and strides follow from T and, in a batch, from how many streams it has now. */
    const uint64_t key =
        2 * ((uint64_t)st->seg.T << 32 | (uint64_t)st->seg.B) + (uint64_t)st->next.batch;
    lam_dev *dev = st->dev;
    dev->ops->upload(dev, st->next.now, st->next.host,
                     3 * (size_t)st->seg.B * sizeof *st->next.host);
    if (!dev->ops->replay(dev, st->next.graphs, key))
        dev->ops->repeat(dev, &st->next.graphs, key, work, st);
}
