/* stack.c -- creating a stack: its options checked, its parts wired together, its memory allocated. */
#include "model/stack_int.h"

#include "model/configure.h"

#include <stdlib.h>

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

static lam_work largest(const lam_stack *st)
{
    const lam_model *m = st->model;
    const int T = st->seg.M + st->opt.N;
    return (lam_work){
        .B = st->opt.B,
        .H = m->cfg.n_head,
        .K = m->dims.K,
        .queries = st->opt.batch ? 1 : max_of(st->opt.N, st->pos.ahead_rows > 0 ? st->seg.M : 0),
        .keys = T,
        .r_rows = max_of(st->pos.past_rows, st->pos.ahead_rows),
        .rows = st->opt.B * (st->opt.batch ? 1 : T),
        .width = max_of(max_of(m->dims.D, m->dims.F), m->cfg.n_token + 64),
        .narrow = m->params.store != LAM_ACT || st->seg.cache != LAM_ACT};
}

/* The configuration a stack runs by: the mechanism's own lengths may be longer than any text it will read. */
static const lam_config *fit(lam_config *copy, const lam_model *model, int64_t most)
{
    if (most <= 0 || !model->mem->fit)
        return &model->cfg;
    *copy = model->cfg;
    model->mem->fit(copy, most);
    return copy;
}

/* Remembered rows in front of a segment, at most. */
static int front_rows(const lam_model *model, const lam_config *cfg, int M)
{
    return M + (model->mem->beyond ? model->mem->beyond(cfg) : 0);
}

/* Host-side arrays and the pointers between the parts; no device memory yet. */
static lam_status wire(lam_stack *st, lam_model *model, const lam_stack_options *opt)
{
    const size_t L = (size_t)model->cfg.n_layer;
    const lam_config *const cfg = fit(&st->fitted, model, opt->most);
    const int rows = opt->B * (opt->batch ? 1 : opt->N), front = front_rows(model, cfg, opt->M);
    const int act = opt->train || opt->full || opt->wide;
    const lam_class cache = act && !model->dev->exact ? LAM_ACT : model->cache;
    st->model = model;
    st->opt = *opt;
    st->cfg = cfg;
    st->dev = opt->dev ? opt->dev : model->dev;
    st->rows = calloc(L + 1, sizeof *st->rows);
    st->home = calloc(L + 1, sizeof *st->home);
    st->acts = calloc(L, sizeof *st->acts);
    st->slots = calloc(2 * lam_mem_max_slots(&model->cfg), sizeof *st->slots);
    st->streams = calloc((size_t)opt->B, sizeof *st->streams);
    st->noted_streams = calloc((size_t)opt->B, sizeof *st->noted_streams);
    st->noted_rows = calloc(2 * lam_mem_max_slots(&model->cfg) + 1, sizeof *st->noted_rows);
    st->valid_host = calloc((size_t)opt->B, sizeof *st->valid_host);
    st->own = calloc(1, model->mem->shared_size + 1); /* never 0 bytes, which may be NULL */
    st->layer_own = calloc(L, model->mem->layer_size + 1);
    st->r = calloc(3 * L, sizeof *st->r);
    st->next.host = calloc(3 * (size_t)opt->B, sizeof *st->next.host);
    st->next.age = calloc((size_t)opt->B, sizeof *st->next.age);
    st->next.past = calloc((size_t)opt->B, sizeof *st->next.past);
    st->next.items = calloc(lam_mem_max_slots(&model->cfg), sizeof *st->next.items);
    int32_t *host = calloc(2 * (size_t)rows, sizeof *host);
    if (!st->rows || !st->home || !st->acts || !st->slots || !st->streams || !st->noted_streams ||
        !st->noted_rows || !st->valid_host || !st->own || !st->layer_own || !st->r ||
        !st->next.host || !st->next.age || !st->next.past || !st->next.items || !host) {
        free(host);
        return lam_fail(LAM_ERR_MEMORY, "stack: no memory for %zu layers", L);
    }
    st->mem = (lam_mem){.ops = model->mem,
                        .dev = st->dev,
                        .B = opt->B,
                        .M = opt->M,
                        .N = opt->N,
                        .slots = st->slots,
                        .streams = st->streams,
                        .view = st->slots + lam_mem_max_slots(&model->cfg)};
    st->pos = (lam_positions){.dev = st->dev,
                              .cfg = cfg,
                              .params = &model->params,
                              .ids = &model->pos,
                              .dims = model->dims,
                              .M = front,
                              .N = opt->N,
                              .cache = cache,
                              .r_past = st->r,
                              .r_ahead = st->r + L,
                              .r_scale = st->r + 2 * L};
    st->embed = (lam_embedding){.dev = st->dev,
                                .cfg = cfg,
                                .params = &model->params,
                                .ids = &model->embed,
                                .dims = model->dims,
                                .rows = rows};
    st->head = (lam_head){.dev = st->dev,
                          .cfg = cfg,
                          .params = &model->params,
                          .ids = &model->head,
                          .dims = model->dims,
                          .rows = rows,
                          .host = host};
    st->seg = (lam_segment){.dev = st->dev,
                            .cfg = cfg,
                            .dims = model->dims,
                            .params = &model->params,
                            .ids = model->layer,
                            .pos = &st->pos,
                            .mem = &st->mem,
                            .layer = st->rows,
                            .own = st->own,
                            .B = opt->B,
                            .M = front,
                            .N = opt->N,
                            .cache = cache,
                            .full = opt->full,
                            .train = opt->train};
    for (size_t l = 0; l < L; l++)
        st->rows[l].own = (char *)st->layer_own + l * model->mem->layer_size;
    return LAM_OK;
}

static void unwire(lam_stack *st)
{
    free(st->rows);
    free(st->home);
    free(st->acts);
    free(st->slots);
    free(st->streams);
    free(st->noted_streams);
    free(st->noted_rows);
    free(st->valid_host);
    free(st->own);
    free(st->layer_own);
    free(st->r);
    free(st->next.host);
    free(st->next.age);
    free(st->next.past);
    free(st->next.items);
    free(st->head.host);
    free(st->host.raw);
    free(st->host.clusters);
    free(st->host.finite);
}

static lam_status check_options(const lam_model *model, const lam_stack_options *opt)
{
    if (opt->B < 1 || opt->N < 1 || opt->M < 0)
        return lam_fail(LAM_ERR_ARG, "stack: batch %d, length %d, memory %d: too small", opt->B,
                        opt->N, opt->M);
    lam_config fitted;
    const lam_config *const cfg = fit(&fitted, model, opt->most);
    const double rows = (double)front_rows(model, cfg, opt->M) + opt->N;
    if (opt->B * rows > 1 << 28)
        return lam_fail(LAM_ERR_ARG, "batch %d times %g rows is more than %d rows", opt->B, rows,
                        1 << 28);
    LAM_TRY(lam_config_extends(&model->cfg, opt->E));
    if (opt->train && model->dev->exact)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "exact arithmetic is for inference: train with --numerics fast");
    if (model->mem->check)
        LAM_TRY(model->mem->check(cfg, opt->N, opt->M));
    if (model->cfg.attn_type == LAM_ATTN_LEARNED && opt->M + opt->N > lam_config_span(&model->cfg))
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "attn_type 1 has %d learned distances, %d + %d rows need more",
                        lam_config_span(&model->cfg), opt->M, opt->N);
    return LAM_OK;
}

lam_status lam_stack_measure(lam_stack_sizes *out, lam_model *model, const lam_stack_options *opt)
{
    lam_stack st = {0};
    lam_arena arena = {0};
    *out = (lam_stack_sizes){0};
    LAM_TRY(check_options(model, opt));
    const lam_status status = wire(&st, model, opt);
    if (status == LAM_OK) {
        lam_stack_layout(&st, &arena);
        const lam_work work = largest(&st);
        out->state = st.state_bytes;
        out->activations = arena.used - st.state_bytes;
        out->scratch = st.dev->ops ? st.dev->ops->reserve_bytes(st.dev, &work) : 0;
    }
    unwire(&st);
    return status;
}

static lam_status allocate(lam_stack *st)
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
    if (st->model->mem->fill && !st->opt.batch)
        LAM_TRY(st->model->mem->fill(&st->seg));
    return lam_pos_fill(&st->pos);
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
        status = allocate(st);
    if (status == LAM_ERR_MEMORY)
        status = lam_fail(status, "batch %d, segments of %d, memory of %d: %s", options->B,
                          options->N, options->M, lam_error());
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
    st->dev->ops->free_graphs(st->dev, st->next.graphs);
    st->dev->ops->free_graphs(st->dev, st->graphs);
    if (st->arena.base)
        st->dev->ops->release(st->dev, st->arena.base);
    unwire(st);
    free(st);
}

lam_mem *lam_stack_mem(lam_stack *st)
{
    return &st->mem;
}

lam_graphs **lam_stack_graphs(lam_stack *st)
{
    return &st->graphs;
}

const lam_segment *lam_stack_segment(const lam_stack *st)
{
    return &st->seg;
}
