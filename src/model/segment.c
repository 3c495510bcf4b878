/* segment.c -- a segment's path through a stack, from top to bottom: begin, forward, loss, backward, commit, tally.
 *
 * lam_stack_pass runs all of it in one call.  Once the memory is full every segment is the same work on other
 * numbers, which a device may capture and replay (R1 - R5).  The numbered rules are in mem/segment.h. */
#include "model/stack_int.h"

#include "nn/sites.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

/* ---- running a pass ---- */

typedef struct job {
    lam_stack *st;
    const lam_pass *pass;
    int runs;
    /* What a pass changes on the host, as it was (with noted_streams and noted_rows of the stack): */
    lam_mem mem;
    int positions_ready;
} job;

/* Notes it, for a pass that may be captured. */
static void note(job *j)
{
    const lam_mem *mem = &j->st->mem;
    j->mem = *mem;
    j->positions_ready = j->st->positions_ready;
    memcpy(j->st->noted_streams, mem->streams, (size_t)mem->B * sizeof *mem->streams);
    for (int i = 0; i < mem->n_slots; i++)
        j->st->noted_rows[i] = mem->slots[i].n;
}

/* A pass that could not be captured has run without its operations, and runs again from where it began (R5). */
static void go_back(const job *j)
{
    lam_mem *mem = &j->st->mem;
    *mem = j->mem;
    j->st->positions_ready = j->positions_ready;
    memcpy(mem->streams, j->st->noted_streams, (size_t)mem->B * sizeof *mem->streams);
    for (int i = 0; i < mem->n_slots; i++)
        mem->slots[i].n = j->st->noted_rows[i];
}

static void work(void *arg)
{
    job *j = arg;
    const lam_pass *p = j->pass;
    if (j->runs++ > 0)
        go_back(j);
    lam_stack_begin(j->st, p->n, p->dropout);
    j->st->seg.rows = p->rows;
    lam_stack_set_scored(j->st, p->scored);
    lam_stack_forward(j->st, p->inputs, p->n);
    lam_stack_loss(j->st, p->targets, p->grad_scale);
    j->st->pass = p;
    if (p->grad_scale != 0.0)
        lam_stack_backward(j->st);
    j->st->pass = NULL;
    if (!p->open)
        lam_stack_commit(j->st);
}

/* D4: what the mechanism does depends on each stream. */
static int goes_apart(const lam_stack *st, const lam_pass *p)
{
    int apart = st->mem.apart;
    for (int b = 0; p->rows && b < st->opt.B; b++)
        apart |= p->rows[b] != p->n;
    return apart && st->model->mem->commit != NULL;
}

/* What the state contributes to a key (R1): its lengths, and its addresses, since parts of a batch and lanes of a
 * scheduler have memories of their own. */
static uint64_t key_of_state(const lam_stack *st, uint64_t hash)
{
    const lam_mem *mem = &st->mem;
    const int prev = lam_mem_rests(mem, st->cfg) ? -1 : mem->prev; /* then nothing looks ahead */
    const int numbers[] = {mem->m, prev, st->positions_ready, mem->apart};
    hash = XXH64(numbers, sizeof numbers, hash);
    for (int i = 0; i < mem->n_slots; i++) {
        hash = XXH64(&mem->slots[i].rows, sizeof mem->slots[i].rows, hash);
        hash = XXH64(&mem->slots[i].n, sizeof mem->slots[i].n, hash);
    }
    return hash != 0 ? hash : 1;
}

/* R1.  0, never repeated: an adaptive softmax divides its rows by their targets, so that its work is never the
 * same. */
static uint64_t key_of(const lam_stack *st, const lam_pass *p)
{
    if (st->model->cfg.n_cutoffs > 0 || !lam_mem_has(st->model->mem, LAM_REPEATS) ||
        goes_apart(st, p))
        return 0;
    const int numbers[] = {p->n, p->scored, p->open, p->dropout.on, p->final != NULL};
    const uint64_t hash = XXH64(numbers, sizeof numbers, p->dropout.seed);
    return key_of_state(st, XXH64(&p->grad_scale, sizeof p->grad_scale, hash));
}

void lam_stack_pass(lam_stack *st, const lam_pass *pass)
{
    job j = {.st = st, .pass = pass};
    const uint64_t key = key_of(st, pass);
    if (key != 0)
        note(&j);
    st->dev->ops->repeat(st->dev, &st->graphs, key, work, &j);
}

/* ---- a segment's first token, of a text in a batch ---- */

typedef struct opening {
    lam_stack *st;
    int length, positions_ready;
    const int32_t *tokens;
} opening;

static void begin_with_token(void *arg)
{
    const opening *o = arg;
    o->st->positions_ready = o->positions_ready; /* R5; the rest follows from the memory */
    lam_stack_begin(o->st, o->length, (lam_stack_dropout){0});
    lam_stack_forward(o->st, o->tokens, 1);
}

void lam_stack_begin_token(lam_stack *st, int length, const int32_t *tokens, lam_graphs **graphs)
{
    opening o = {st, length, st->positions_ready, tokens};
    /* A seat's rows have the same addresses whenever its memory has (lam_stack_sit). */
    const uint64_t hash = XXH64(&length, sizeof length, (uint64_t)st->seat_stream);
    const int repeats = lam_mem_has(st->model->mem, LAM_REPEATS) && !st->mem.apart;
    st->dev->ops->repeat(st->dev, graphs, repeats ? key_of_state(st, hash) : 0, begin_with_token,
                         &o);
}

/* ---- begin ---- */

void lam_stack_reset(lam_stack *st)
{
    lam_mem_reset(&st->mem);
    st->positions_ready = 0;
}

void lam_stack_forget(lam_stack *st, int stream)
{
    lam_mem_forget(&st->mem, stream);
}

/* A segment of which `done` rows are computed. */
static void set_lengths(lam_stack *st, int length, int done)
{
    lam_segment *s = &st->seg;
    s->ctx = lam_mem_context(&st->mem); /* G2 */
    s->T = s->ctx + length;             /* G1 */
    s->first = 0;
    s->n = done;
    s->rows = NULL;
    s->valid = NULL;
    st->scored = 0;
    st->next.batch = 0;
    lam_stack_take_seat(st);
}

void lam_stack_begin(lam_stack *st, int length, lam_stack_dropout dropout)
{
    lam_segment *s = &st->seg;
    set_lengths(st, length, 0);
    s->dropout = dropout.on;
    s->drop = (lam_drop){.p = dropout.on ? st->model->cfg.dropout : 0.0,
                         .seed = dropout.seed,
                         .more = st->drop_step};
    if (dropout.on) /* R2: as an argument it would make every step other work */
        st->dev->ops->upload(st->dev, st->drop_step, &dropout.step, sizeof dropout.step);
    if (st->mem.apart) { /* R2 */
        for (int b = 0; b < s->B; b++)
            st->valid_host[b] = lam_mem_valid(&st->mem, b);
        st->dev->ops->upload(st->dev, st->valid, st->valid_host,
                             (size_t)s->B * sizeof *st->valid_host);
        s->valid = st->valid;
    }
    lam_mem_load(s);
    /* Between weight updates and without dropout the positional keys stay what they are. */
    if (st->opt.train || !st->positions_ready)
        lam_pos_project(&st->pos, s->drop);
    st->positions_ready = 1;
}

void lam_stack_resume(lam_stack *st, int length, int done)
{
    assert(st->seat && !st->mem.apart);
    set_lengths(st, length, done);
    st->seg.dropout = 0;
    st->seg.drop = (lam_drop){.more = st->drop_step};
}

void lam_stack_set_scored(lam_stack *st, int n)
{
    st->scored = n;
}

int lam_stack_scored_rows(const lam_stack *st)
{
    return st->scored > 0 && st->scored < st->seg.n ? st->scored : st->seg.n;
}

/* ---- forward ---- */

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
    s->first += s->n; /* G3 */
    s->n = n;

    dev->ops->upload(dev, st->tokens, tokens, (size_t)rows * sizeof *tokens);
    lam_embed_rows(&st->embed, st->attn_out, st->tokens, rows);
    const int placed = lam_pos_is_absolute(&st->pos);
    if (placed)
        lam_pos_add(&st->pos, st->ffn_out, st->attn_out, s->B, s->first, n);
    drop_rows(st, LAM_SITE_EMBED, n, packed(st, placed ? st->ffn_out : st->attn_out, n),
              current(st, st->rows[0].x, n));
    for (int l = 0; l < L; l++)
        lam_block_fwd(st, l);
    const int scored = lam_stack_scored_rows(st);
    drop_rows(st, LAM_SITE_OUTPUT, scored, current(st, st->rows[L].x, scored),
              packed(st, st->z, scored));
}

/* ---- loss ---- */

void lam_stack_loss(lam_stack *st, const int32_t *targets, double grad_scale)
{
    st->seg.grad_scale = grad_scale;
    lam_head_loss(&st->head, st->nll, st->z, targets, st->seg.B * lam_stack_scored_rows(st),
                  grad_scale, st->dz);
}

/* ---- backward: what forward did, line by line from the last to the first (G7) ---- */

static size_t matrices_of(const lam_stack *st, int layer)
{
    return st->model->params.list[st->model->layer[layer].qkv].offset;
}

/* Matrices lie behind everything else, layer by layer (lam_params_arrange), those of the memory too: each gets its
 * gradient from its own layer alone. */
static void tell_final(const lam_stack *st, int layer)
{
    const int last = layer + 1 == st->model->cfg.n_layer;
    if (st->pass && st->pass->final)
        st->pass->final(st->pass->user, matrices_of(st, layer),
                        last ? st->model->params.total : matrices_of(st, layer + 1));
}

void lam_stack_backward(lam_stack *st)
{
    lam_segment *s = &st->seg;
    const int L = st->model->cfg.n_layer, scored = lam_stack_scored_rows(st);
    const size_t rows = (size_t)s->B * (size_t)s->T * (size_t)st->model->dims.D;
    if (s->aux)
        st->dev->ops->zero(st->dev, s->aux,
                           lam_stack_aux_count(st) * lam_class_size(st->dev, LAM_WIDE));
    if (scored < s->n) /* rows that are not scored: no gradient comes from above */
        st->dev->ops->zero(st->dev, st->dx[L & 1], rows * lam_class_size(st->dev, LAM_ACT));
    /* forward was z = drop(x_L): dropout is linear, its gradient is itself. */
    drop_rows(st, LAM_SITE_OUTPUT, scored, packed(st, st->dz, scored),
              current(st, st->dx[L & 1], scored));
    /* forward was x_{l+1} = block(x_l) */
    for (int l = L - 1; l >= 0; l--) {
        lam_block_bwd(st, l);
        tell_final(st, l);
    }
    /* forward was x_0 = drop(embed(tokens) + constant positions) */
    drop_rows(st, LAM_SITE_EMBED, s->n, current(st, st->dx[0], s->n),
              packed(st, st->attn_out, s->n));
    lam_embed_rows_bwd(&st->embed, st->attn_out, st->tokens, s->B * s->n);
}

/* ---- commit ---- */

void lam_stack_commit(lam_stack *st)
{
    const int done = st->seg.first + st->seg.n - st->opt.E; /* C2 */
    lam_mem_commit(&st->mem, &st->seg, done > 0 ? done : 0);
}

/* ---- results ---- */

void lam_stack_tally(lam_stack *st, void *totals)
{
    const lam_ops *ops = st->dev->ops;
    ops->tally(
        st->dev,
        &(lam_tally){.n = st->seg.B * lam_stack_scored_rows(st), .x = st->nll, .totals = totals});
    const size_t parts = st->seg.aux ? lam_stack_aux_count(st) : 0,
                 most = 1 << 30; /* n is an int */
    for (size_t at = 0; at < parts; at += most)
        ops->tally(st->dev, &(lam_tally){.n = (int)(parts - at < most ? parts - at : most),
                                         .x = lam_at(st->dev, LAM_WIDE, st->seg.aux, at),
                                         .totals = lam_at(st->dev, LAM_WIDE, totals, 4)});
}
