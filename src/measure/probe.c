/* probe.c -- see probe.h. */
#include "measure/probe.h"

#include "core/budget.h"
#include "mem/causal.h"
#include "model/macs.h"

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
    int64_t skip;       /* segments before the first */
    int64_t steps;      /* rows of columns that will be read, */
    int64_t looked;     /* and whose attention is looked at */
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
    lam_parted_free(&p->peaks);
    lam_parted_free(&p->alphas);
    lam_parted_free(&p->shares);
    lam_parted_free(&p->losses);
    lam_parted_free(&p->nll);
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

/* x->host is peak [B][n][H][bins]; an interval counts for the tokens that see all of it. */
static void part_peaks(prober *x, const lam_segment *s, int layer, const lam_attn *attn,
                       int64_t step)
{
    lam_parted *to = &x->p->peaks;
    const int bins = x->p->bins, H = x->p->H;
    const double *row = x->host;
    for (int r = 0; r < s->B * s->n; r++) {
        const int part = lam_part_of(step, x->looked, r / s->n, s->B);
        const int whole = lam_attn_stats_seen(attn, x->p->interval, r % s->n);
        const size_t at = (size_t)part * to->n + (size_t)layer * (size_t)bins;
        for (int h = 0; h < H; h++, row += bins)
            for (int c = 0; c < bins; c++)
                to->sum[at + (size_t)c] += row[c];
        for (int c = 0; c < whole && c < bins; c++)
            to->count[at + (size_t)c] += H;
    }
}

static lam_status probe_attention(prober *x, const lam_segment *s, int layer, int64_t step)
{
    lam_probe *p = x->p;
    const size_t H = (size_t)p->H, bins = (size_t)p->bins, rows = (size_t)s->B * (size_t)s->n;
    lam_attn_stats asked = {
        .interval = p->interval, .bins = p->bins, .peak = x->peak, .stats = x->stats};
    lam_causal_attn_stats(s, layer, &asked);
    LAM_TRY(fetch(x, x->peak, rows * H * bins));
    add_rows(p->peak + (size_t)layer * H * bins, x->host, rows, H * bins);
    part_peaks(x, s, layer, &asked.attn, step);
    LAM_TRY(fetch(x, x->stats, rows * H * LAM_ATTN_STATS));
    for (size_t r = 0; r < rows * H; r++) {
        const double *stats = x->host + r * LAM_ATTN_STATS;
        const size_t at = (size_t)layer * H + r % H;
        const int column = (int)(r / H) / s->n;
        p->entropy[at] += stats[LAM_ENTROPY];
        for (int k = 0; k < LAM_CUTS; k++)
            p->share[k][at] += stats[LAM_SHARE + k];
        lam_parted_add(&p->shares, lam_part_of(step, x->looked, column, s->B), (size_t)layer,
                       stats[LAM_SHARE + LAM_CUTS - 1], 1.0);
    }
    for (int i = 0; layer == 0 && i < s->n; i++) {
        const int whole = lam_attn_stats_seen(&asked.attn, p->interval, i);
        for (int c = 0; c < whole && c < p->bins; c++)
            x->seen[c] += s->B;
    }
    return LAM_OK;
}

/* alpha is [B][M][H] with room for s->M slots; the sums are [H][M]. */
static lam_status probe_alpha(prober *x, const lam_segment *s, int layer, int64_t step)
{
    lam_probe *p = x->p;
    const size_t H = (size_t)p->H, M = (size_t)s->M, B = (size_t)s->B;
    const void *alpha = s->mem->ops->alpha(s, layer);
    if (alpha != NULL)
        LAM_TRY(fetch(x, alpha, B * M * H));
    else if (p->kept <= layer)
        p->kept = layer + 1;
    for (size_t n = 0; alpha == NULL && n < B * M * H; n++)
        x->host[n] = 1.0;
    for (size_t n = 0; n < B * M * H; n++) {
        const int part = lam_part_of(step, x->steps, (int)(n / H / M), s->B);
        p->alpha[((size_t)layer * H + n % H) * M + n / H % M] += x->host[n];
        lam_parted_add(&p->alphas, part, (size_t)layer * M + n / H % M, x->host[n], 1.0);
    }
    return LAM_OK;
}

static void probe_losses(prober *x, const lam_eval_segment *seg, int B, int64_t step)
{
    lam_probe *p = x->p;
    for (int n = 0; n < B * seg->n; n++) {
        const int part = lam_part_of(step, x->steps, n / seg->n, B);
        p->loss[n % seg->n] += seg->nll[n];
        x->losses[n % seg->n]++;
        lam_parted_add(&p->losses, part, (size_t)(n % seg->n), seg->nll[n], 1.0);
        lam_parted_add(&p->nll, part, 0, seg->nll[n], 1.0);
    }
}

static lam_status on_segment(void *user, const lam_eval_segment *seg)
{
    prober *x = user;
    const lam_segment *s = lam_stack_segment(seg->stack);
    const int64_t step = seg->row / x->p->N - x->skip;
    probe_losses(x, seg, s->B, step);
    if (seg->n < x->p->N) /* the last one may be short: other distances, other slots */
        return LAM_OK;
    x->p->segments += s->B;
    for (int l = 0; l < x->p->L; l++) {
        if (x->p->tokens < x->opt->tokens)
            LAM_TRY(probe_attention(x, s, l, step));
        if (x->p->alpha)
            LAM_TRY(probe_alpha(x, s, l, step));
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
    const int learned = model->mem->lacks_alpha && !model->mem->lacks_alpha(&model->cfg);
    const size_t most = rows * (bins > LAM_ATTN_STATS ? bins : LAM_ATTN_STATS) +
                        (size_t)o->batch * M * (size_t)p->H;
    LAM_TRY(lam_budget_ask("probe", 2 * most * sizeof(double)));
    int ok = (p->peak = calloc(LH * bins, sizeof(double))) != NULL &&
             (p->entropy = calloc(LH, sizeof(double))) != NULL &&
             (p->share[0] = calloc(LH, sizeof(double))) != NULL &&
             (p->share[1] = calloc(LH, sizeof(double))) != NULL &&
             (p->loss = calloc(N, sizeof(double))) != NULL &&
             (x->host = malloc(most * sizeof(double))) != NULL &&
             (x->raw = malloc(most * sizeof(double))) != NULL &&
             (x->seen = calloc(bins, sizeof *x->seen)) != NULL &&
             (x->losses = calloc(N, sizeof *x->losses)) != NULL;
    if (learned)
        ok = ok && (p->alpha = calloc(LH * M, sizeof(double))) != NULL;
    if (!ok)
        return lam_fail(LAM_ERR_MEMORY, "probe: no memory for %zu numbers", most);
    LAM_TRY(lam_parted_make(&p->peaks, (size_t)p->L * bins));
    if (learned)
        LAM_TRY(lam_parted_make(&p->alphas, (size_t)p->L * M));
    LAM_TRY(lam_parted_make(&p->shares, (size_t)p->L));
    LAM_TRY(lam_parted_make(&p->losses, N));
    LAM_TRY(lam_parted_make(&p->nll, 1));
    const size_t wide = lam_class_size(x->dev, LAM_WIDE);
    LAM_TRY(x->dev->ops->alloc(x->dev, &x->peak, rows * bins * wide));
    return x->dev->ops->alloc(x->dev, &x->stats, rows * LAM_ATTN_STATS * wide);
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

static int64_t whole(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Segments that are skipped; rows of columns that have enough segments and enough tokens. */
static void plan(prober *x, const lam_config *cfg)
{
    const lam_probe_options *o = x->opt;
    const int64_t asked = whole(o->from, o->tgt_len);
    const int64_t warm = lam_probe_warm(cfg, o->tgt_len, o->mem_len);
    x->skip = asked > warm ? asked : warm;
    x->looked = whole(o->tokens, (int64_t)o->batch * o->tgt_len);
    x->steps = whole(o->segments, o->batch);
    x->steps = x->steps > x->looked ? x->steps : x->looked;
}

double lam_probe_macs(const lam_config *cfg, const lam_probe_options *o)
{
    prober x = {.opt = o};
    lam_config one = *cfg;
    one.tgt_len = o->tgt_len;
    one.mem_len = o->mem_len;
    plan(&x, cfg);
    return (double)(x.skip + x.steps) * lam_macs_segment(&one, o->batch);
}

/* Or as many as there are. */
static void limit(prober *x, const lam_tokens *text)
{
    const int64_t there = whole(text->count / x->opt->batch, x->opt->tgt_len) - x->skip;
    if (there > 0 && there < x->steps)
        x->steps = there;
    x->looked = x->looked < x->steps ? x->looked : x->steps;
}

lam_status lam_probe_check(const lam_config *cfg, const lam_tokens *text,
                           const lam_probe_options *o)
{
    prober x = {.opt = o};
    LAM_TRY(check_options(o));
    plan(&x, cfg);
    if (text->count / o->batch > (x.skip + 1) * o->tgt_len)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG,
                    "the text is too short: no whole segment of %d tokens after the %lld that fill "
                    "the memory, with %lld tokens in a stream",
                    o->tgt_len, (long long)x.skip * o->tgt_len,
                    (long long)(text->count / o->batch));
}

lam_status lam_probe_run(lam_probe *out, lam_model *model, const lam_tokens *text,
                         const lam_probe_options *o, lam_eval_watch *watch, void *user)
{
    prober x = {.p = out, .opt = o, .dev = model->dev};
    lam_evaluator *e = NULL;
    *out = (lam_probe){0};
    LAM_TRY(lam_probe_check(&model->cfg, text, o)); /* before memory is taken for it */
    plan(&x, &model->cfg);
    limit(&x, text);
    lam_status status = allocate(&x, model);
    const lam_eval_options eval = {.batch = o->batch,
                                   .tgt_len = o->tgt_len,
                                   .mem_len = o->mem_len,
                                   .max_steps = x.steps,
                                   .skip = x.skip,
                                   .full = 1,
                                   .visit = on_segment,
                                   .visitor = &x};
    if (status == LAM_OK)
        status = lam_evaluator_create(&e, model, &eval);
    if (status == LAM_OK)
        status = lam_evaluator_run(e, &out->result, text, watch, user);
    if (status == LAM_OK)
        finish(&x);
    lam_evaluator_free(e);
    release(&x);
    if (status != LAM_OK)
        lam_probe_free(out);
    return status;
}
