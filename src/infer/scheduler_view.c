/* scheduler_view.c -- views of texts: what their memory does, and snapshots of them.
 *
 * A view computes the unfinished segment again, in a separate stack whose keys are in full precision: decoding stores
 * no queries and so does not pay for views. */
#include "infer/scheduler_int.h"

#include "mem/causal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- snapshots ---- */

lam_status lam_scheduler_export(lam_scheduler *s, lam_snapshot **out, const lam_timeline *text)
{
    lam_session *one = s->one;
    *out = NULL;
    lam_lane_select(s, NULL);
    LAM_TRY(lam_past_put(text->past, lam_stack_mem(one->stack)));
    one->length = text->length;
    one->now.length = text->segment;
    one->now.done = text->done;
    one->now.n_calls = text->done > 0;
    one->now.calls[0] = text->done;
    memcpy(one->now.tokens, text->open, (size_t)text->done * sizeof *text->open);
    const lam_status status = lam_session_snapshot(one, out);
    lam_session_reset(one);
    return status;
}

lam_status lam_scheduler_import(lam_scheduler *s, lam_timeline **out, const lam_snapshot *snapshot)
{
    lam_session *one = s->one;
    *out = NULL;
    lam_lane_select(s, NULL);
    LAM_TRY(lam_session_restore(one, snapshot));
    lam_timeline *t;
    lam_status status = lam_timeline_create(&t, one->now.length, 0);
    if (status == LAM_OK && lam_stack_mem(one->stack)->seen > 0)
        status = lam_past_take(&t->past, lam_stack_mem(one->stack));
    if (status != LAM_OK) {
        lam_timeline_free(t);
        return status;
    }
    t->length = one->length;
    t->done = one->now.done;
    memcpy(t->open, one->now.tokens, (size_t)t->done * sizeof *t->open);
    lam_session_reset(one);
    *out = t;
    return LAM_OK;
}

/* ---- views ---- */

void lam_memory_view_free(lam_memory_view *v)
{
    free(v->alpha);
    free(v->weight);
    free(v->share);
    free(v->entropy);
    free(v->tokens);
    free(v->surprise);
    *v = (lam_memory_view){0};
}

/* n WIDE numbers of the device as doubles; *out is the caller's. */
static lam_status fetch(lam_dev *dev, double **out, const void *from, size_t n)
{
    char *raw = malloc((n + 1) * sizeof(double));
    *out = malloc((n + 1) * sizeof **out);
    lam_status status = raw && *out ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "view: no memory");
    if (status == LAM_OK)
        status = dev->ops->download(dev, raw, from, n * lam_class_size(dev, LAM_WIDE));
    if (status == LAM_OK)
        lam_convert(*out, LAM_F64, raw, dev->wide, n);
    free(raw);
    if (status != LAM_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* alpha of a layer is [M][H]; the view's is the mean over heads. */
static lam_status look_at_alpha(const lam_segment *g, lam_memory_view *v)
{
    const lam_mem_ops *ops = g->mem->ops;
    const size_t H = (size_t)v->heads, m = (size_t)v->remembered;
    if (!ops->lacks_alpha || ops->lacks_alpha(g->cfg) || m == 0 || lam_mem_rests(g->mem, g->cfg))
        return LAM_OK;
    while (v->alpha_layers < v->layers && lam_mem_leads(ops, g->cfg, v->alpha_layers))
        v->alpha_layers++;
    v->alpha = calloc((size_t)v->alpha_layers * m + 1, sizeof *v->alpha);
    if (!v->alpha)
        return lam_fail(LAM_ERR_MEMORY, "view: no memory");
    for (int l = 0; l < v->alpha_layers; l++) {
        double *rows;
        LAM_TRY(fetch(g->dev, &rows, ops->alpha(g, l), m * H));
        for (size_t i = 0; i < m * H; i++)
            v->alpha[(size_t)l * m + i / H] += rows[i] / (double)H;
        free(rows);
    }
    return LAM_OK;
}

/* Means over heads and tokens: of stats [n][H][..], and of peak [n][H][bins] over the tokens that see so far. */
static void average(lam_memory_view *v, int layer, const double *peak, const double *stats,
                    const lam_attn *attn)
{
    const int n = v->done, H = v->heads, bins = v->bins;
    double *weight = v->weight + (size_t)layer * (size_t)bins;
    for (int r = 0; r < n * H; r++) {
        v->entropy[layer] += stats[r * LAM_ATTN_STATS + LAM_ENTROPY] / (n * H);
        v->share[layer] += stats[r * LAM_ATTN_STATS + LAM_SHARE + LAM_CUTS - 1] / (n * H);
    }
    for (int c = 0; c < bins; c++) {
        int see = 0;
        for (int i = 0; i < n; i++)
            see += lam_attn_stats_seen(attn, v->interval, i) > c;
        for (int r = 0; r < n * H; r++)
            weight[c] += peak[(size_t)r * (size_t)bins + (size_t)c];
        weight[c] = see > 0 ? weight[c] / (see * H) : NAN;
    }
}

static lam_status look_at_attention(const lam_segment *g, lam_memory_view *v)
{
    lam_dev *dev = g->dev;
    const size_t rows = (size_t)v->done * (size_t)v->heads, bins = (size_t)v->bins;
    const size_t wide = lam_class_size(dev, LAM_WIDE);
    lam_attn_stats p = {.interval = v->interval, .bins = v->bins};
    LAM_TRY(dev->ops->alloc(dev, &p.peak, (rows * bins + 1) * wide));
    lam_status status = dev->ops->alloc(dev, &p.stats, (rows * LAM_ATTN_STATS + 1) * wide);
    for (int l = 0; l < v->layers && status == LAM_OK; l++) {
        double *peak = NULL, *stats = NULL;
        lam_causal_attn_stats(g, l, &p);
        status = fetch(dev, &peak, p.peak, rows * bins);
        if (status == LAM_OK)
            status = fetch(dev, &stats, p.stats, rows * LAM_ATTN_STATS);
        if (status == LAM_OK)
            average(v, l, peak, stats, &p.attn);
        free(peak);
        free(stats);
    }
    if (p.stats)
        dev->ops->release(dev, p.stats);
    dev->ops->release(dev, p.peak);
    return status;
}

static lam_status allocate(lam_memory_view *v)
{
    const size_t L = (size_t)v->layers, n = (size_t)v->done;
    v->weight = calloc(L * (size_t)v->bins + 1, sizeof *v->weight);
    v->share = calloc(L + 1, sizeof *v->share);
    v->entropy = calloc(L + 1, sizeof *v->entropy);
    v->tokens = calloc(n + 1, sizeof *v->tokens);
    v->surprise = calloc(n + 1, sizeof *v->surprise);
    return v->weight && v->share && v->entropy && v->tokens && v->surprise
               ? LAM_OK
               : lam_fail(LAM_ERR_MEMORY, "view: no memory");
}

enum { BINS = 64 }; /* at most */

/* Reads the segment in the probe's stack and looks. */
static lam_status look(lam_scheduler *s, lam_memory_view *v, const lam_past *past,
                       const int32_t *open)
{
    lam_stack *st = s->probe;
    const lam_segment *g = lam_stack_segment(st);
    LAM_TRY(allocate(v));
    if (v->done == 0)
        return LAM_OK;
    memcpy(v->tokens, open, (size_t)v->done * sizeof *open);
    LAM_TRY(lam_past_put(past, lam_stack_mem(st)));
    lam_stack_begin(st, v->segment, (lam_stack_dropout){0});
    lam_stack_forward(st, open, v->done);
    v->surprise[0] = NAN;
    if (v->done > 1) {
        int32_t *targets = malloc((size_t)v->done * sizeof *targets);
        double *nll = malloc((size_t)v->done * sizeof *nll);
        lam_status status = targets && nll ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "view: no memory");
        if (status == LAM_OK) {
            memcpy(targets, open + 1, (size_t)(v->done - 1) * sizeof *open);
            targets[v->done - 1] = -1;
            lam_stack_loss(st, targets, 0.0);
            status = lam_stack_nll(st, nll);
        }
        if (status == LAM_OK)
            memcpy(v->surprise + 1, nll, (size_t)(v->done - 1) * sizeof *nll);
        free(targets);
        free(nll);
        LAM_TRY(status);
    }
    LAM_TRY(look_at_alpha(g, v));
    return look_at_attention(g, v);
}

static lam_lane *lane_of(lam_scheduler *s, const lam_timeline *text)
{
    for (int i = 0; i < s->o.lanes; i++)
        if (s->lanes[i].job && s->lanes[i].job->o.keep && s->lanes[i].job->o.text == text)
            return &s->lanes[i];
    return NULL;
}

lam_status lam_scheduler_view(lam_scheduler *s, lam_memory_view *out, const lam_timeline *text)
{
    const lam_config *cfg = &s->engine->model->cfg;
    lam_lane *lane = lane_of(s, text);
    lam_past *past = text->past;
    *out = (lam_memory_view){0};
    if (!s->probe)
        LAM_TRY(lam_stack_create(
            &s->probe, s->engine->model,
            &(lam_stack_options){
                .B = 1, .N = s->o.segment, .M = s->o.mem_len, .wide = 1, .dev = s->o.dev}));
    if (lane)
        LAM_TRY(lam_lane_past(s, lane, &past));
    const int reach = lam_stack_segment(s->probe)->M + s->o.segment;
    *out = (lam_memory_view){.length = lane ? lane->length : text->length,
                             .layers = cfg->n_layer,
                             .heads = cfg->n_head,
                             .slots = s->o.mem_len,
                             .segment = text->segment,
                             .done = lane ? lane->done : text->done,
                             .remembered = lam_past_rows(past),
                             .interval = (reach + BINS - 1) / BINS};
    out->bins = reach / out->interval;
    const lam_status status = look(s, out, past, lane ? lane->open : text->open);
    if (status != LAM_OK)
        lam_memory_view_free(out);
    return status;
}
