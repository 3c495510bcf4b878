/* passage.c -- see passage.h.  With intervals of one token the statistics of a row (ops/attn_stats.h) is the row of attention
 * weights itself. */
#include "measure/passage.h"

#include "core/budget.h"
#include "mem/causal.h"

#include <stdlib.h>

typedef struct reader {
    lam_passage *p;
    const lam_passage_options *o;
    lam_dev *dev;
    int H, bins;
    void *peak, *stats; /* on the device */
    void *raw;          /* peak as it comes, */
    double *host;       /* as doubles, */
    double *mean;       /* [bins]: and of one token, averaged over heads */
} reader;

void lam_passage_free(lam_passage *p)
{
    free(p->tokens);
    free(p->nll);
    free(p->back);
    free(p->weight);
    *p = (lam_passage){0};
}

/* The largest of x->mean[0, n), each taken out once. */
static void keep_largest(reader *x, int token, int n)
{
    int32_t *back = x->p->back + (size_t)token * LAM_ATTENDED;
    float *weight = x->p->weight + (size_t)token * LAM_ATTENDED;
    for (int k = 0; k < LAM_ATTENDED; k++) {
        int largest = -1;
        for (int c = 0; c < n; c++)
            if (x->mean[c] > 0.0 && (largest < 0 || x->mean[c] > x->mean[largest]))
                largest = c;
        if (largest < 0)
            return;
        back[k] = largest + 1;
        weight[k] = (float)x->mean[largest];
        x->mean[largest] = 0.0;
    }
}

/* The attention of tokens [from, from + n) of a segment, which are tokens p->n... of the passage. */
static lam_status read_attention(reader *x, const lam_segment *s, int from, int n)
{
    const size_t width = (size_t)x->H * (size_t)x->bins, all = (size_t)s->n * width;
    lam_attn_stats asked = {.interval = 1, .bins = x->bins, .peak = x->peak, .stats = x->stats};
    lam_causal_attn_stats(s, x->o->layer, &asked);
    LAM_TRY(x->dev->ops->download(x->dev, x->raw, x->peak, all * lam_class_size(x->dev, LAM_WIDE)));
    lam_convert(x->host, LAM_F64, x->raw, x->dev->wide, all);
    for (int i = from; i < from + n; i++) {
        const double *row = x->host + (size_t)i * width;
        const int tokens = asked.attn.shift + i + 1 - (asked.cut[0] > 0 ? asked.cut[0] : 0);
        const int seen = tokens < x->bins ? tokens : x->bins;
        for (int c = 0; c < seen; c++) {
            x->mean[c] = 0.0;
            for (int h = 0; h < x->H; h++)
                x->mean[c] += row[h * x->bins + c] / x->H;
        }
        keep_largest(x, x->p->n + i - from, seen);
    }
    return LAM_OK;
}

static lam_status on_segment(void *user, const lam_eval_segment *seg)
{
    reader *x = user;
    lam_passage *p = x->p;
    const int from = x->o->from > seg->row ? (int)(x->o->from - seg->row) : 0;
    const int left = x->o->n - p->n, n = seg->n - from < left ? seg->n - from : left;
    if (n <= 0)
        return LAM_OK;
    for (int i = 0; i < n; i++) {
        p->tokens[p->n + i] = seg->targets[from + i];
        p->nll[p->n + i] = seg->nll[from + i];
    }
    LAM_TRY(read_attention(x, lam_stack_segment(seg->stack), from, n));
    p->n += n;
    return LAM_OK;
}

static lam_status allocate(reader *x)
{
    lam_passage *p = x->p;
    const size_t n = (size_t)x->o->n, rows = (size_t)x->o->tgt_len * (size_t)x->H;
    const size_t peaks = rows * (size_t)x->bins, wide = lam_class_size(x->dev, LAM_WIDE);
    LAM_TRY(lam_budget_ask("passage", peaks * 2 * sizeof(double) + n * LAM_ATTENDED * 8));
    if (!(p->tokens = calloc(n + 1, sizeof *p->tokens)) ||
        !(p->nll = calloc(n + 1, sizeof *p->nll)) ||
        !(p->back = calloc((n + 1) * LAM_ATTENDED, sizeof *p->back)) ||
        !(p->weight = calloc((n + 1) * LAM_ATTENDED, sizeof *p->weight)) ||
        !(x->raw = malloc(peaks * sizeof(double))) || !(x->host = malloc(peaks * sizeof(double))) ||
        !(x->mean = malloc((size_t)x->bins * sizeof(double))))
        return lam_fail(LAM_ERR_MEMORY, "passage: no memory for %zu numbers", peaks);
    LAM_TRY(x->dev->ops->alloc(x->dev, &x->peak, peaks * wide));
    return x->dev->ops->alloc(x->dev, &x->stats, rows * LAM_ATTN_STATS * wide);
}

static void release(reader *x)
{
    if (x->peak)
        x->dev->ops->release(x->dev, x->peak);
    if (x->stats)
        x->dev->ops->release(x->dev, x->stats);
    free(x->raw);
    free(x->host);
    free(x->mean);
}

lam_status lam_passage_read(lam_passage *out, lam_model *model, const lam_tokens *text,
                            const lam_passage_options *o, lam_eval_watch *watch, void *user)
{
    const int64_t N = o->tgt_len;
    const int front = model->mem->beyond ? model->mem->beyond(&model->cfg) : 0;
    reader x = {.p = out,
                .o = o,
                .dev = model->dev,
                .H = model->cfg.n_head,
                .bins = o->mem_len + front + o->tgt_len};
    const lam_eval_options eval = {.batch = 1,
                                   .tgt_len = o->tgt_len,
                                   .mem_len = o->mem_len,
                                   .max_steps = (o->from % N + o->n + N - 1) / N,
                                   .skip = o->from / N,
                                   .full = 1,
                                   .visit = on_segment,
                                   .visitor = &x};
    lam_evaluator *e = NULL;
    lam_eval_result result;
    *out = (lam_passage){0};
    lam_status status = allocate(&x);
    if (status == LAM_OK)
        status = lam_evaluator_create(&e, model, &eval);
    if (status == LAM_OK)
        status = lam_evaluator_run(e, &result, text, watch, user);
    lam_evaluator_free(e);
    release(&x);
    if (status != LAM_OK)
        lam_passage_free(out);
    return status;
}
