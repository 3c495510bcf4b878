/* analysis.c -- see analysis.h: what is measured of each model, and how much of it is done. */
#include "report/analysis_int.h"

#include "model/macs.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- what all models share ---- */

static lam_status check_options(const lam_analysis_options *o)
{
    if (o->encoding_width < 2 || o->encoding_width % 2)
        return lam_fail(LAM_ERR_ARG, "analysis: an encoding of width %d; it must be even",
                        o->encoding_width);
    for (int i = 0; i < o->sweep.n; i++)
        if (o->sweep.lengths[i] < 1)
            return lam_fail(LAM_ERR_ARG, "analysis: a memory of %d tokens cannot be swept",
                            o->sweep.lengths[i]);
    return LAM_OK;
}

static int by_size(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

lam_status lam_analysis_create(lam_analysis **out, const lam_corpus *corpus, lam_split split,
                               const lam_analysis_options *options)
{
    *out = NULL;
    LAM_TRY(check_options(options));
    lam_analysis *a = calloc(1, sizeof *a);
    if (!a)
        return lam_fail(LAM_ERR_MEMORY, "analysis: no memory");
    a->opt = *options;
    qsort(a->opt.sweep.lengths, (size_t)a->opt.sweep.n, sizeof(int), by_size);
    a->corpus = corpus;
    a->split = split;
    *out = a;
    return LAM_OK;
}

void lam_analysis_free(lam_analysis *a)
{
    if (!a)
        return;
    for (int i = 0; i < a->n; i++) {
        lam_analysed *m = &a->models[i];
        lam_probe_free(&m->probe);
        for (int k = 0; k < m->n_points; k++)
            lam_parted_free(&m->points[k].nll);
        free(m->story.text);
    }
    free(a->prompt);
    free(a->prompt_text);
    free(a->truth.text);
    free(a);
}

static int or_else(int given, int otherwise)
{
    return given > 0 ? given : otherwise;
}

/* The probe of one model: its own lengths where none are given; a model without memory has none. */
static lam_probe_options probe_of(const lam_analysis *a, const lam_config *cfg)
{
    lam_probe_options o = a->opt.probe;
    o.tgt_len = or_else(o.tgt_len, cfg->tgt_len);
    o.mem_len = cfg->mem_len == 0 ? 0 : or_else(o.mem_len, cfg->mem_len);
    return o;
}

/* What a continuation costs, in multiply-adds of a segment: single tokens are slower, ten times or so. */
static double story_macs(const lam_analysis *a, const lam_config *cfg)
{
    const lam_macs m = lam_macs_token(cfg, cfg->memory);
    const double tokens = a->opt.story_tokens > 0 ? a->opt.story_tokens + a->opt.prompt_tokens : 0;
    return 10.0 * tokens * (m.project + m.ffn + m.softmax);
}

lam_status lam_analysis_plan(lam_analysis *a, const lam_config *cfg)
{
    const lam_probe_options o = probe_of(a, cfg);
    lam_sweep_options *sweep = &a->opt.sweep;
    const int64_t from = lam_probe_warm(cfg, o.tgt_len, o.mem_len) * o.tgt_len;
    if (a->opt.layer > cfg->n_layer)
        return lam_fail(LAM_ERR_ARG, "layer %d: a model has %d", a->opt.layer, cfg->n_layer);
    if (a->opt.probe.from < from)
        a->opt.probe.passage_from = a->opt.probe.from = from;
    const int64_t skip = cfg->mem_len > 0 && sweep->n > 0 ? lam_sweep_warm(sweep, cfg) : 0;
    sweep->skip = sweep->skip < skip ? skip : sweep->skip;
    a->macs += lam_probe_macs(cfg, &o) + story_macs(a, cfg);
    a->sweep_macs += lam_sweep_macs(sweep, cfg);
    return LAM_OK;
}

/* Once all configurations are known. */
static void settle(lam_analysis *a)
{
    lam_sweep_options *o = &a->opt.sweep;
    if (a->settled)
        return;
    lam_sweep_settle(o, a->sweep_macs, &a->corpus->split[a->split]);
    a->macs += lam_sweep_weight(o, &a->corpus->split[a->split]) * a->sweep_macs;
    a->settled = true;
}

/* ---- progress ---- */

int lam_watcher_tell(const lam_watcher *w, double share)
{
    const lam_analysis *a = w->a;
    const lam_analysis_progress p = {
        .what = w->what, .share = share, .all = fmin(1.0, (a->done + share * w->macs) / a->macs)};
    return w->watch ? w->watch(w->user, &p) : 0;
}

/* Called after each row of segments; rows that fill memories take half the time of others. */
static int on_eval(void *user, const lam_eval_result *so_far, int64_t total)
{
    lam_watcher *w = user;
    const double warm = 0.5 * (double)(++w->done < w->skip ? w->done : w->skip);
    return lam_watcher_tell(w, (warm + (double)so_far->tokens / (double)w->row) /
                                   (0.5 * (double)w->skip + (double)total / (double)w->row));
}

/* A piece that reads `skip` rows of segments of `row` tokens before those that count. */
static void begin(lam_watcher *w, double macs, int64_t skip, int64_t row)
{
    w->macs = macs;
    w->skip = skip;
    w->row = row;
    w->done = 0;
}

/* ---- Figure 5 ---- */

/* A model that cannot have a length (learned distances, a compression rate) has fewer points. */
static lam_status sweep(lam_analysis *a, lam_model *model, lam_analysed *m, lam_watcher *w)
{
    const lam_sweep_options *o = &a->opt.sweep;
    const lam_tokens *text = &a->corpus->split[a->split];
    const int none = model->cfg.mem_len == 0;
    if (none && o->n > 0)
        snprintf(m->sweep_note, sizeof m->sweep_note, "it has no memory");
    for (int i = 0; i < o->n && !none; i++) {
        lam_sweep_point *point = &m->points[m->n_points];
        *point = (lam_sweep_point){.mem_len = o->lengths[i]};
        snprintf(w->what, sizeof w->what, "%s: memory %d (%d of %d)", m->name, point->mem_len,
                 i + 1, o->n);
        begin(w, lam_sweep_weight(o, text) * lam_sweep_length_macs(o, &model->cfg, point->mem_len),
              o->skip, (int64_t)o->batch * o->tgt_len);
        const lam_status status = lam_sweep_run(point, model, text, o, on_eval, w);
        a->done += w->macs;
        if (status == LAM_ERR_UNSUPPORTED || status == LAM_ERR_ARG) {
            snprintf(m->sweep_note, sizeof m->sweep_note, "%s", lam_error());
            continue;
        }
        LAM_TRY(status);
        m->n_points++;
    }
    return LAM_OK;
}

lam_status lam_analysis_add(lam_analysis *a, lam_engine *engine, const char *name,
                            lam_analysis_watch *watch, void *user)
{
    lam_watcher w = {.a = a, .watch = watch, .user = user};
    if (a->n == LAM_ANALYSED)
        return lam_fail(LAM_ERR_ARG, "analysis: more than %d models", LAM_ANALYSED);
    LAM_TRY(lam_vocab_same(engine->vocab, a->corpus->vocab, a->corpus->info.name));
    lam_analysed *m = &a->models[a->n++]; /* counted at once: free() then knows it */
    snprintf(m->name, sizeof m->name, "%s", name);
    m->cfg = engine->model->cfg;
    m->mem = engine->model->mem;
    m->parameters = lam_model_count(engine->model);
    settle(a);
    const lam_probe_options probe = probe_of(a, &m->cfg);
    snprintf(w.what, sizeof w.what, "%s: probing", m->name);
    begin(&w, lam_probe_macs(&m->cfg, &probe), (probe.from + probe.tgt_len - 1) / probe.tgt_len,
          (int64_t)probe.batch * probe.tgt_len);
    LAM_TRY(
        lam_probe_run(&m->probe, engine->model, &a->corpus->split[a->split], &probe, on_eval, &w));
    a->done += w.macs;
    LAM_TRY(sweep(a, engine->model, m, &w));
    w.macs = story_macs(a, &m->cfg);
    const lam_status status = lam_analysis_tell(a, engine, m, &w);
    a->done += w.macs;
    return status;
}
