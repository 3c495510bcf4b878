/* probe.c -- see probe.h. */
#include "report/probe.h"

#include "mem/causal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one run holds besides its result. */
typedef struct prober {
    lam_probe *p;
    const lam_probe_options *opt;
    lam_dev *dev;
    void *peak, *stats; /* on the device: one layer's */
    double *host;       /* the larger of what is fetched, as doubles */
    void *raw;          /* and as it comes */
    int64_t alphas;     /* segments in the sums of alpha */
    int64_t *seen;      /* [bins]: tokens in the sums of peak */
    int64_t *losses;    /* [N]: in those of loss */
} prober;

int64_t lam_probe_warm(const lam_config *cfg, int tgt_len, int mem_len)
{
    const lam_mem_ops *mem;
    if (lam_mem_find(&mem, cfg->memory) != LAM_OK)
        return 0; /* a finished configuration names one that exists */
    return ((int64_t)lam_mem_tokens(mem, cfg, mem_len) + tgt_len - 1) / tgt_len;
}

void lam_probe_free(lam_probe *p)
{
    free(p->alpha);
    free(p->peak);
    free(p->entropy);
    for (int k = 0; k < LAM_CUTS; k++)
        free(p->share[k]);
    free(p->loss);
    free(p->passage_tokens);
    free(p->passage_nll);
    *p = (lam_probe){0};
}

/* n WIDE elements of the device as doubles in x->host. */
static lam_status fetch(prober *x, const void *from, size_t n)
{
    LAM_TRY(x->dev->ops->download(x->dev, x->raw, from, n * lam_class_size(x->dev, LAM_WIDE)));
    lam_convert(x->host, LAM_F64, x->raw, x->dev->wide, n);
    return LAM_OK;
}

/* Adds rows [rows][width] to sum [width]. */
static void add_rows(double *sum, const double *rows, size_t n, size_t width)
{
    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < width; c++)
            sum[c] += rows[r * width + c];
}

static lam_status probe_attention(prober *x, const lam_segment *s, int layer)
{
    lam_probe *p = x->p;
    const size_t H = (size_t)p->H, bins = (size_t)p->bins, rows = (size_t)s->B * (size_t)s->n;
    lam_profile profile = {
        .interval = p->interval, .bins = p->bins, .peak = x->peak, .stats = x->stats};
    lam_causal_profile(s, layer, &profile);
    LAM_TRY(fetch(x, x->peak, rows * H * bins));
    add_rows(p->peak + (size_t)layer * H * bins, x->host, rows, H * bins);
    LAM_TRY(fetch(x, x->stats, rows * H * LAM_PROFILE_STATS));
    for (size_t r = 0; r < rows * H; r++) {
        const double *stats = x->host + r * LAM_PROFILE_STATS;
        const size_t at = (size_t)layer * H + r % H;
        p->entropy[at] += stats[LAM_ENTROPY];
        for (int k = 0; k < LAM_CUTS; k++)
            p->share[k][at] += stats[LAM_SHARE + k];
    }
    for (int i = 0; layer == 0 && i < s->n; i++) {
        const int whole = lam_profile_seen(&profile.attn, p->interval, i);
        for (int c = 0; c < whole && c < p->bins; c++)
            x->seen[c] += s->B;
    }
    return LAM_OK;
}

/* rows->alpha is [B][M][H] with room for s->M slots; the sums are [H][M]. */
static lam_status probe_alpha(prober *x, const lam_segment *s, int layer)
{
    lam_probe *p = x->p;
    const size_t H = (size_t)p->H, M = (size_t)s->M, B = (size_t)s->B;
    LAM_TRY(fetch(x, s->layer[layer].alpha, B * M * H));
    for (size_t n = 0; n < B * M * H; n++)
        p->alpha[((size_t)layer * H + n % H) * M + n / H % M] += x->host[n];
    return LAM_OK;
}

static void probe_losses(prober *x, const lam_eval_segment *seg, int B)
{
    lam_probe *p = x->p;
    for (int n = 0; n < B * seg->n; n++) {
        p->loss[n % seg->n] += seg->nll[n];
        x->losses[n % seg->n]++;
    }
    for (int i = 0; i < seg->n; i++) { /* the first column */
        const int64_t at = seg->row + i - x->opt->passage_from;
        if (at < 0 || at >= x->opt->passage)
            continue;
        p->passage_tokens[at] = seg->targets[i];
        p->passage_nll[at] = seg->nll[i];
        p->passage = (int)at + 1;
    }
}

static lam_status on_segment(void *user, const lam_eval_segment *seg)
{
    prober *x = user;
    const lam_segment *s = lam_stack_segment(seg->stack);
    probe_losses(x, seg, s->B);
    if (seg->n < x->p->N) /* the last one may be short: other distances, other slots */
        return LAM_OK;
    x->p->segments += s->B;
    for (int l = 0; l < x->p->L; l++) {
        if (x->p->tokens < x->opt->tokens)
            LAM_TRY(probe_attention(x, s, l));
        if (x->p->alpha)
            LAM_TRY(probe_alpha(x, s, l));
    }
    if (x->p->tokens < x->opt->tokens)
        x->p->tokens += (int64_t)s->B * s->n;
    x->alphas += s->B;
    return LAM_OK;
}

static void divide(double *x, size_t n, double by)
{
    for (size_t i = 0; x && i < n; i++)
        x[i] /= by;
}

/* Sums become means; 0 / 0 is the NaN of what nobody saw. */
static void finish(prober *x)
{
    lam_probe *p = x->p;
    const size_t LH = (size_t)p->L * (size_t)p->H, bins = (size_t)p->bins;
    divide(p->alpha, LH * (size_t)p->M, (double)x->alphas);
    divide(p->entropy, LH, (double)p->tokens);
    for (int k = 0; k < LAM_CUTS; k++)
        divide(p->share[k], LH, (double)p->tokens);
    for (size_t n = 0; n < LH * bins; n++)
        p->peak[n] /= (double)x->seen[n % bins];
    for (int i = 0; i < p->N; i++)
        p->loss[i] /= (double)x->losses[i];
}

static lam_status allocate(prober *x, const lam_model *model)
{
    lam_probe *p = x->p;
    const lam_probe_options *o = x->opt;
    const int front = model->mem->beyond ? model->mem->beyond(&model->cfg) : 0;
    *p = (lam_probe){.L = model->cfg.n_layer,
                     .H = model->cfg.n_head,
                     .N = o->tgt_len,
                     .M = o->mem_len + front,
                     .front = front,
                     .interval = o->interval};
    p->bins = (p->M + p->N) / p->interval;
    p->bins = p->bins > 0 ? p->bins : 1;
    const size_t LH = (size_t)p->L * (size_t)p->H, bins = (size_t)p->bins, N = (size_t)p->N;
    const size_t rows = (size_t)o->batch * N * (size_t)p->H, M = (size_t)p->M;
    const int learned = lam_mem_leads(model->mem, &model->cfg, 0) &&
                        model->cfg.alpha == LAM_ALPHA_LEARNED && model->cfg.n_layer > 0;
    const size_t most = rows * (bins > LAM_PROFILE_STATS ? bins : LAM_PROFILE_STATS) +
                        (size_t)o->batch * M * (size_t)p->H;
    int ok = (p->peak = calloc(LH * bins, sizeof(double))) != NULL &&
             (p->entropy = calloc(LH, sizeof(double))) != NULL &&
             (p->share[0] = calloc(LH, sizeof(double))) != NULL &&
             (p->share[1] = calloc(LH, sizeof(double))) != NULL &&
             (p->loss = calloc(N, sizeof(double))) != NULL &&
             (p->passage_tokens = calloc((size_t)o->passage + 1, sizeof(int32_t))) != NULL &&
             (p->passage_nll = malloc(((size_t)o->passage + 1) * sizeof(double))) != NULL &&
             (x->host = malloc(most * sizeof(double))) != NULL &&
             (x->raw = malloc(most * sizeof(double))) != NULL &&
             (x->seen = calloc(bins, sizeof *x->seen)) != NULL &&
             (x->losses = calloc(N, sizeof *x->losses)) != NULL;
    if (learned)
        ok = ok && (p->alpha = calloc(LH * M, sizeof(double))) != NULL;
    if (!ok)
        return lam_fail(LAM_ERR_MEMORY, "probe: no memory for %zu numbers", most);
    for (int i = 0; i < o->passage; i++)
        p->passage_nll[i] = NAN;
    const size_t wide = lam_class_size(x->dev, LAM_WIDE);
    LAM_TRY(x->dev->ops->alloc(x->dev, &x->peak, rows * bins * wide));
    return x->dev->ops->alloc(x->dev, &x->stats, rows * LAM_PROFILE_STATS * wide);
}

static void release(prober *x)
{
    if (x->peak)
        x->dev->ops->release(x->dev, x->peak);
    if (x->stats)
        x->dev->ops->release(x->dev, x->stats);
    free(x->host);
    free(x->raw);
    free(x->seen);
    free(x->losses);
}

static lam_status check_options(const lam_probe_options *o)
{
    if (o->interval < 1 || o->segments < 1 || o->tokens < 1)
        return lam_fail(LAM_ERR_ARG,
                        "probe: interval %d, %lld segments, %lld tokens: must be at least 1",
                        o->interval, (long long)o->segments, (long long)o->tokens);
    if (o->batch < 1 || o->tgt_len < 1 || o->mem_len < 0)
        return lam_fail(LAM_ERR_ARG, "probe: batch %d, length %d, memory %d: too small", o->batch,
                        o->tgt_len, o->mem_len);
    return LAM_OK;
}

/* Rows of columns that have enough segments and enough tokens. */
static int64_t steps_of(const lam_probe_options *o)
{
    const int64_t row = (int64_t)o->batch * o->tgt_len;
    const int64_t steps = (o->segments + o->batch - 1) / o->batch,
                  most = (o->tokens + row - 1) / row;
    return steps > most ? steps : most;
}

lam_status lam_probe_run(lam_probe *out, lam_model *model, const lam_tokens *text,
                         const lam_probe_options *o, lam_eval_watch *watch, void *user)
{
    prober x = {.p = out, .opt = o, .dev = model->dev};
    lam_evaluator *e = NULL;
    *out = (lam_probe){0};
    LAM_TRY(check_options(o));
    lam_status status = allocate(&x, model);
    const lam_eval_options eval = {.batch = o->batch,
                                   .tgt_len = o->tgt_len,
                                   .mem_len = o->mem_len,
                                   .max_steps = steps_of(o),
                                   .skip = lam_probe_warm(&model->cfg, o->tgt_len, o->mem_len),
                                   .full = 1,
                                   .visit = on_segment,
                                   .visitor = &x};
    if (status == LAM_OK)
        status = lam_evaluator_create(&e, model, &eval);
    if (status == LAM_OK)
        status = lam_evaluator_run(e, &out->result, text, watch, user);
    if (status == LAM_OK && out->segments == 0)
        status = lam_fail(
            LAM_ERR_ARG, "probe: no whole segment of %d tokens after the %lld that fill the memory",
            o->tgt_len, (long long)eval.skip * o->tgt_len);
    if (status == LAM_OK)
        finish(&x);
    lam_evaluator_free(e);
    release(&x);
    if (status != LAM_OK)
        lam_probe_free(out);
    return status;
}
