/* stack.c -- see stack.h: creating a stack, and one segment's way through it. */
#include "model/stack_int.h"

#include "nn/sites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

static lam_work largest(const lam_stack *st)
{
    const lam_model *m = st->model;
    const int T = st->seg.M + st->opt.N;
    return (lam_work){.B = st->opt.B,
                      .H = m->cfg.n_head,
                      .K = m->dims.K,
                      .queries = max_of(st->opt.N, st->pos.ahead_rows > 0 ? st->seg.M : 0),
                      .keys = T,
                      .r_rows = max_of(st->pos.past_rows, st->pos.ahead_rows),
                      .rows = st->opt.B * T,
                      .width = max_of(max_of(m->dims.D, m->dims.F), m->cfg.n_token + 64),
                      .narrow = m->params.store != LAM_ACT || st->seg.cache != LAM_ACT};
}

/* Remembered rows in front of a segment, at most. */
static int front_rows(const lam_model *model, int M)
{
    return M + (model->mem->beyond ? model->mem->beyond(&model->cfg) : 0);
}

/* Host-side arrays and the pointers between the parts; no device memory yet. */
static lam_status wire(lam_stack *st, lam_model *model, const lam_stack_options *opt)
{
    const size_t L = (size_t)model->cfg.n_layer;
    const int rows = opt->B * opt->N, front = front_rows(model, opt->M);
    const lam_class cache = opt->train || opt->full ? LAM_ACT : model->cache;
    st->model = model;
    st->opt = *opt;
    st->dev = opt->dev ? opt->dev : model->dev;
    st->rows = calloc(L + 1, sizeof *st->rows);
    st->acts = calloc(L, sizeof *st->acts);
    st->slots = calloc(lam_mem_max_slots(&model->cfg), sizeof *st->slots);
    st->r = calloc(2 * L, sizeof *st->r);
    st->next.host = calloc((size_t)opt->B + 1, sizeof *st->next.host);
    st->next.items = calloc(lam_mem_max_slots(&model->cfg), sizeof *st->next.items);
    int32_t *host = calloc(2 * (size_t)rows, sizeof *host);
    if (!st->rows || !st->acts || !st->slots || !st->r || !st->next.host || !st->next.items ||
        !host) {
        free(host);
        return lam_fail(LAM_ERR_MEMORY, "stack: no memory for %zu layers", L);
    }
    st->mem = (lam_mem){.ops = model->mem,
                        .dev = st->dev,
                        .B = opt->B,
                        .M = opt->M,
                        .N = opt->N,
                        .slots = st->slots};
    st->pos = (lam_positions){.dev = st->dev,
                              .cfg = &model->cfg,
                              .params = &model->params,
                              .ids = &model->pos,
                              .dims = model->dims,
                              .M = front,
                              .N = opt->N,
                              .cache = cache,
                              .r_past = st->r,
                              .r_ahead = st->r + L};
    st->embed = (lam_embedding){.dev = st->dev,
                                .cfg = &model->cfg,
                                .params = &model->params,
                                .ids = &model->embed,
                                .dims = model->dims,
                                .rows = rows};
    st->head = (lam_head){.dev = st->dev,
                          .cfg = &model->cfg,
                          .params = &model->params,
                          .ids = &model->head,
                          .dims = model->dims,
                          .rows = rows,
                          .host = host};
    st->seg = (lam_segment){.dev = st->dev,
                            .cfg = &model->cfg,
                            .dims = model->dims,
                            .params = &model->params,
                            .ids = model->layer,
                            .pos = &st->pos,
                            .mem = &st->mem,
                            .layer = st->rows,
                            .B = opt->B,
                            .M = front,
                            .N = opt->N,
                            .cache = cache,
                            .full = opt->full,
                            .train = opt->train};
    return LAM_OK;
}

static void unwire(lam_stack *st)
{
    free(st->rows);
    free(st->acts);
    free(st->slots);
    free(st->r);
    free(st->next.host);
    free(st->next.items);
    free(st->head.host);
}

lam_stack_sizes lam_stack_measure(lam_model *model, const lam_stack_options *opt)
{
    lam_stack st = {0};
    lam_stack_sizes sizes = {0};
    lam_arena arena = {0};
    if (wire(&st, model, opt) == LAM_OK) {
        lam_stack_layout(&st, &arena);
        const lam_work work = largest(&st);
        sizes.state = st.state_bytes;
        sizes.activations = arena.used - st.state_bytes;
        sizes.scratch = st.dev->ops ? st.dev->ops->reserve_bytes(st.dev, &work) : 0;
    }
    unwire(&st);
    return sizes;
}

static lam_status place(lam_stack *st)
{
    lam_dev *dev = st->dev;
    lam_arena measure = {0};
    lam_stack_layout(st, &measure);
    const lam_work work = largest(st);
    void *base = NULL;
    LAM_TRY(dev->ops->alloc(dev, &base, measure.used)); /* most of all: it fails at once, or not */
    st->arena = (lam_arena){.base = base, .size = measure.used};
    lam_stack_layout(st, &st->arena);
    LAM_TRY(dev->ops->reserve(dev, &work));
    if (st->opt.train)
        LAM_TRY(lam_params_place_grad(&st->model->params));
    if (st->model->mem->fill)
        LAM_TRY(st->model->mem->fill(&st->seg));
    return lam_pos_fill(&st->pos);
}

static lam_status check_options(const lam_model *model, const lam_stack_options *opt)
{
    if (opt->B < 1 || opt->N < 1 || opt->M < 0)
        return lam_fail(LAM_ERR_ARG, "stack: batch %d, length %d, memory %d: too small", opt->B,
                        opt->N, opt->M);
    const double rows = (double)front_rows(model, opt->M) + opt->N;
    if (opt->B * rows > 1 << 28)
        return lam_fail(LAM_ERR_ARG, "batch %d times %g rows is more than %d rows", opt->B, rows,
                        1 << 28);
    LAM_TRY(lam_config_extends(&model->cfg, opt->E));
    if (model->mem->check)
        LAM_TRY(model->mem->check(&model->cfg, opt->N, opt->M));
    if (model->cfg.attn_type == LAM_ATTN_LEARNED && opt->M + opt->N > lam_config_span(&model->cfg))
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "attn_type 1 has %d learned distances, %d + %d rows need more",
                        lam_config_span(&model->cfg), opt->M, opt->N);
    return LAM_OK;
}

lam_status lam_stack_create(lam_stack **out, lam_model *model, const lam_stack_options *options)
{
    *out = NULL;
    LAM_TRY(check_options(model, options));
    lam_stack *st = calloc(1, sizeof *st);
    if (!st)
        return lam_fail(LAM_ERR_MEMORY, "stack: no memory");
    lam_status status = wire(st, model, options);
    if (status == LAM_OK)
        status = place(st);
    if (status == LAM_ERR_MEMORY)
        status = lam_fail(status, "%s: batch %d, segments of %d, memory of %d", lam_error(),
                          options->B, options->N, options->M);
    if (status != LAM_OK) {
        lam_stack_free(st);
        return status;
    }
    *out = st;
    return LAM_OK;
}

void lam_stack_free(lam_stack *st)
{
    if (!st)
        return;
    st->dev->ops->forget(st->dev, st->next.tape);
    st->dev->ops->forget(st->dev, st->tape);
    if (st->arena.base)
        st->dev->ops->release(st->dev, st->arena.base);
    unwire(st);
    free(st);
}

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
    lam_mem_commit(&st->mem, &st->seg, max_of(0, st->seg.first + st->seg.n - st->opt.E));
}

void lam_stack_tally(lam_stack *st, void *totals)
{
    const lam_ops *ops = st->dev->ops;
    ops->tally(st->dev,
               &(lam_tally){.n = st->seg.B * lam_stack_scored(st), .x = st->nll, .totals = totals});
    if (st->seg.aux)
        ops->tally(st->dev, &(lam_tally){.n = (int)aux_count(st),
                                         .x = st->seg.aux,
                                         .totals = lam_at(st->dev, LAM_WIDE, totals, 4)});
}

lam_status lam_stack_nll(lam_stack *st, double *nll)
{
    lam_dev *dev = st->dev;
    const size_t n = (size_t)st->seg.B * (size_t)lam_stack_scored(st);
    void *raw = malloc(n * sizeof(double));
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "loss: no memory for %zu rows", n);
    const lam_status status =
        dev->ops->download(dev, raw, st->nll, n * lam_class_size(dev, LAM_WIDE));
    lam_convert(nll, LAM_F64, raw, dev->wide, n);
    free(raw);
    return status;
}

int lam_stack_has_aux(const lam_stack *st)
{
    return st->seg.aux != NULL;
}

lam_status lam_stack_aux(lam_stack *st, double *sum)
{
    lam_dev *dev = st->dev;
    const size_t n = st->seg.aux ? aux_count(st) : 0;
    double *parts = malloc((n + 1) * sizeof *parts);
    void *raw = malloc((n + 1) * sizeof(double));
    lam_status status = parts && raw ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "loss: no memory");
    *sum = 0.0;
    if (status == LAM_OK)
        status = dev->ops->download(dev, raw, st->seg.aux, n * lam_class_size(dev, LAM_WIDE));
    if (status == LAM_OK)
        lam_convert(parts, LAM_F64, raw, dev->wide, n);
    for (size_t i = 0; i < n && status == LAM_OK; i++)
        *sum += parts[i];
    free(parts);
    free(raw);
    return status;
}

lam_mem *lam_stack_mem(lam_stack *st)
{
    return &st->mem;
}

lam_tape **lam_stack_tape(lam_stack *st)
{
    return &st->tape;
}

const lam_segment *lam_stack_segment(const lam_stack *st)
{
    return &st->seg;
}
