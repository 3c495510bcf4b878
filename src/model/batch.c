/* batch.c -- texts of different age in one batch: their segments begin in its rows and end there (stack.h; G8).
 *
 * A stack of one stream begins and commits the segments of a text in the rows of the text's stream, its seat: cached keys
 * and values of every layer, and the sources of the memory's slots.  So nothing moves.  A text with fewer remembered rows
 * than M has them right before its segment, so that all streams have their current rows at the same places. */
#include "model/stack_int.h"

#include <assert.h>
#include <string.h>

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

/* ---- seats ---- */

void lam_stack_sit(lam_stack *one, const lam_stack *batch, int b)
{
    const size_t rows = (size_t)one->model->cfg.n_layer + 1;
    assert(one->opt.B == 1 && !one->opt.train && !one->opt.wide && !one->opt.full);
    assert(!batch || (batch->next.batch && batch->model == one->model &&
                      batch->seg.M == one->seg.M && b >= 0 && b < batch->opt.B));
    if (!one->seat)
        memcpy(one->home, one->rows, rows * sizeof *one->rows);
    memcpy(one->rows, one->home, rows * sizeof *one->rows);
    one->seat = batch;
    one->seat_stream = b;
}

/* The seat's place in a buffer of the batch; NULL, which the batch does not have: the stack's own. */
static void *seated(const lam_stack *one, void *own, void *p, lam_class type, size_t width)
{
    const lam_segment *s = &one->seat->seg;
    const size_t empty = (size_t)(s->ctx - one->seg.ctx);
    return p ? lam_at(one->dev, type, p, ((size_t)one->seat_stream * (size_t)s->T + empty) * width)
             : own;
}

void lam_stack_take_seat(lam_stack *one)
{
    const lam_model *model = one->model;
    const size_t D = (size_t)model->dims.D, HK = (size_t)model->dims.HK;
    const size_t H = (size_t)model->cfg.n_head;
    const int apart = one->seg.cache != LAM_ACT; /* keys and values */
    for (int l = 0; one->seat && l <= model->cfg.n_layer; l++) {
        const lam_layer_rows *own = &one->home[l], *in = &one->seat->rows[l];
        lam_layer_rows *r = &one->rows[l];
        r->x = seated(one, own->x, in->x, LAM_ACT, D);
        if (own->xn == own->x) /* post-norm */
            r->xn = r->x;
        if (!apart)
            r->qkv = seated(one, own->qkv, in->qkv, LAM_ACT, 3 * HK);
        r->kv = seated(one, own->kv, in->kv, one->seg.cache, 2 * HK);
        r->kv_scale = seated(one, own->kv_scale, in->kv_scale, LAM_WIDE, 2 * H);
        r->c = seated(one, own->c, in->c, LAM_ACT, HK);
        r->lse = seated(one, own->lse, in->lse, LAM_WIDE, H);
    }
}

void lam_stack_join(lam_stack *batch, const lam_stack *one)
{
    const lam_segment *s = &one->seg;
    const int age = s->first + s->n, b = one->seat_stream;
    assert(one->seat == batch && age > 0 && age <= batch->seg.T - batch->seg.ctx);
    batch->next.age[b] = age;
    batch->next.past[b] = s->ctx;
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

/* ---- decoding ---- */

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
