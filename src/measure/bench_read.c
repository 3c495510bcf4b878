/* bench_read.c -- see bench_read.h. */
#include "measure/bench_read.h"

#include "core/clock.h"

enum { WIDTH = 1024 };

static size_t param_bytes(const lam_model *model, int id)
{
    const lam_params *p = &model->params;
    const lam_param *q = &p->list[id];
    const lam_class type = lam_param_may_narrow(q) ? p->store : LAM_ACT;
    return q->stored * lam_class_size(p->dev, type);
}

/* All parameters but W_r, whose products are kept, and tables of which only a token's row is read. */
static size_t weight_bytes(const lam_model *model)
{
    size_t bytes = 0;
    for (int i = 0; i < model->params.n; i++)
        bytes += param_bytes(model, i);
    for (int l = 0; l < model->cfg.n_layer; l++)
        bytes -= model->layer[l].r_net >= 0 ? param_bytes(model, model->layer[l].r_net) : 0;
    for (int t = 0; t < model->embed.tables && !model->cfg.tie_weight; t++)
        bytes -= param_bytes(model, model->embed.table[t]);
    return bytes;
}

size_t lam_bench_token_bytes(const lam_model *model, int streams, int N, int M)
{
    const size_t HK = (size_t)model->dims.HK, keys = (size_t)M + ((size_t)N + 1) / 2;
    const size_t size = lam_class_size(model->dev, model->cache);
    const size_t cached = (2 * (size_t)streams + 1) * keys * HK * size; /* k, v; positions */
    return weight_bytes(model) + (size_t)model->cfg.n_layer * cached;
}

lam_status lam_bench_read_open(lam_bench_read *r, lam_dev *dev, size_t bytes)
{
    const size_t row = WIDTH * lam_class_size(dev, LAM_ACT);
    r->dev = dev;
    r->rows = (int)((bytes + row - 1) / row);
    r->bytes = (size_t)r->rows * row;
    LAM_TRY(dev->ops->reserve(dev, &(lam_work){.B = 1,
                                               .H = 1,
                                               .K = 1,
                                               .queries = 1,
                                               .keys = 1,
                                               .r_rows = 1,
                                               .rows = r->rows,
                                               .width = WIDTH}));
    LAM_TRY(dev->ops->alloc(dev, &r->buffer, r->bytes));
    return dev->ops->alloc(dev, &r->sums, WIDTH * lam_class_size(dev, LAM_WIDE));
}

void lam_bench_read_close(lam_bench_read *r)
{
    if (!r->dev)
        return;
    r->dev->ops->release(r->dev, r->buffer);
    r->dev->ops->release(r->dev, r->sums);
}

lam_status lam_bench_read_once(lam_bench_read *r)
{
    const lam_colsum a = {r->rows, WIDTH, WIDTH, r->buffer, r->sums};
    r->dev->ops->colsum(r->dev, &a);
    LAM_TRY(r->dev->ops->sync(r->dev));
    const double start = lam_clock();
    r->dev->ops->colsum(r->dev, &a);
    LAM_TRY(r->dev->ops->sync(r->dev));
    if (r->n < LAM_READS)
        r->times[r->n++] = lam_clock() - start;
    return LAM_OK;
}
