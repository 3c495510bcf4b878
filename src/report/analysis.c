/* analysis.c -- see analysis.h: measuring. */
#include "report/analysis.h"

#include "data/detok.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what all models share ---- */

static lam_status check_options(const lam_analysis_options *o)
{
    if (o->encoding_width < 2 || o->encoding_width % 2)
        return lam_fail(LAM_ERR_ARG, "analysis: an encoding of width %d; it must be even",
                        o->encoding_width);
    for (int i = 0; i < o->n_sweep; i++)
        if (o->sweep[i] < 1)
            return lam_fail(LAM_ERR_ARG, "analysis: a memory of %d tokens cannot be swept",
                            o->sweep[i]);
    return LAM_OK;
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
        lam_probe_free(&a->models[i].probe);
        free(a->models[i].story.text);
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

lam_status lam_analysis_plan(lam_analysis *a, const lam_config *cfg)
{
    const lam_probe_options o = probe_of(a, cfg);
    const int64_t from = lam_probe_warm(cfg, o.tgt_len, o.mem_len) * o.tgt_len;
    if (a->opt.layer > cfg->n_layer)
        return lam_fail(LAM_ERR_ARG, "layer %d: a model has %d", a->opt.layer, cfg->n_layer);
    if (a->opt.probe.passage_from < from)
        a->opt.probe.passage_from = from;
    return LAM_OK;
}

/* ---- progress ---- */

typedef struct watcher {
    lam_analysis_watch *watch;
    void *user;
    char what[160];
} watcher;

static int on_eval(void *user, const lam_eval_result *so_far, int64_t total)
{
    const watcher *w = user;
    return w->watch ? w->watch(w->user, w->what, (double)so_far->tokens / (double)total) : 0;
}

/* ---- Figure 5 ---- */

static lam_status sweep_point(lam_analysis *a, lam_model *model, lam_sweep_point *point, watcher *w)
{
    const lam_analysis_options *o = &a->opt;
    const int N = o->sweep_len, B = o->probe.batch;
    int longest = 0;
    for (int i = 0; i < o->n_sweep; i++)
        longest = o->sweep[i] > longest ? o->sweep[i] : longest;
    lam_evaluator *e = NULL;
    const int64_t steps = o->sweep_tokens / ((int64_t)N * B);
    const lam_eval_options eval = {.batch = B,
                                   .tgt_len = N,
                                   .mem_len = point->mem_len,
                                   .max_steps = o->sweep_tokens > 0 ? (steps > 0 ? steps : 1) : 0,
                                   /* the same tokens for every length: full even for the longest */
                                   .skip = lam_probe_warm(&model->cfg, N, longest)};
    LAM_TRY(lam_evaluator_create(&e, model, &eval));
    const lam_status status =
        lam_evaluator_run(e, &point->result, &a->corpus->split[a->split], on_eval, w);
    lam_evaluator_free(e);
    return status;
}

/* A model that cannot have a length (learned distances, a compression rate) has fewer points. */
static lam_status sweep(lam_analysis *a, lam_model *model, lam_analysed *m, watcher *w)
{
    const int none = model->cfg.mem_len == 0;
    if (none && a->opt.n_sweep > 0)
        snprintf(m->sweep_note, sizeof m->sweep_note, "it has no memory");
    for (int i = 0; i < a->opt.n_sweep && !none; i++) {
        lam_sweep_point point = {.mem_len = a->opt.sweep[i]};
        snprintf(w->what, sizeof w->what, "%s: memory %d (%d of %d)", m->name, point.mem_len, i + 1,
                 a->opt.n_sweep);
        const lam_status status = sweep_point(a, model, &point, w);
        if (status == LAM_ERR_UNSUPPORTED || status == LAM_ERR_ARG) {
            snprintf(m->sweep_note, sizeof m->sweep_note, "%s", lam_error());
            continue;
        }
        LAM_TRY(status);
        m->points[m->n_points++] = point;
    }
    return LAM_OK;
}

/* ---- the case study ---- */

/* Tokens [from, from + n) of the split, fewer at its end. */
static lam_status read_tokens(const lam_analysis *a, int32_t **ids, size_t *n, int64_t from)
{
    const lam_tokens *text = &a->corpus->split[a->split];
    const int64_t left = text->count > from ? text->count - from : 0;
    *n = left < (int64_t)*n ? (size_t)left : *n;
    *ids = malloc((*n + 1) * sizeof **ids);
    if (!*ids)
        return lam_fail(LAM_ERR_MEMORY, "analysis: no memory for %zu tokens", *n);
    lam_tokens_copy(text, *ids, from, *n);
    return LAM_OK;
}

static lam_status count_story(lam_story *s)
{
    return lam_repetition_of(&s->counts, s->text, s->size);
}

/* The prompt is the user's, or where the passage begins; then the text itself is one more continuation. */
static lam_status make_prompt(lam_analysis *a)
{
    const lam_vocab *vocab = a->corpus->vocab;
    const int64_t from = a->opt.probe.passage_from + 1;
    size_t size = 0, n = (size_t)a->opt.story_tokens;
    int32_t *next = NULL;
    if (a->prompt)
        return LAM_OK;
    if (a->opt.prompt) {
        LAM_TRY(
            lam_vocab_encode(vocab, &a->prompt, &a->n_prompt, a->opt.prompt, a->opt.prompt_size));
        return lam_detok_all(vocab, &a->prompt_text, &size, a->prompt, a->n_prompt);
    }
    a->n_prompt = (size_t)a->opt.prompt_tokens;
    LAM_TRY(read_tokens(a, &a->prompt, &a->n_prompt, from));
    LAM_TRY(lam_detok_all(vocab, &a->prompt_text, &size, a->prompt, a->n_prompt));
    LAM_TRY(read_tokens(a, &next, &n, from + (int64_t)a->n_prompt));
    lam_status status = lam_detok_all(vocab, &a->truth.text, &a->truth.size, next, n);
    free(next);
    return status == LAM_OK ? count_story(&a->truth) : status;
}

typedef struct teller {
    lam_story *story;
    const watcher *watch;
    int tokens, wanted;
    lam_status status;
    bool stopped;
} teller;

static int on_token(void *user, const lam_generated *g)
{
    teller *t = user;
    lam_story *s = t->story;
    char *more = realloc(s->text, s->size + g->size + 1);
    if (!more) {
        t->status = lam_fail(LAM_ERR_MEMORY, "analysis: no memory for a continuation");
        return 1;
    }
    s->text = more;
    memcpy(s->text + s->size, g->text, g->size);
    s->size += g->size;
    s->text[s->size] = '\0';
    t->tokens += g->token >= 0;
    const watcher *w = t->watch;
    t->stopped = w->watch && w->watch(w->user, w->what, (double)t->tokens / t->wanted);
    return t->stopped;
}

static lam_status tell(lam_analysis *a, const lam_engine *engine, lam_analysed *m, watcher *w)
{
    teller t = {.story = &m->story, .watch = w, .wanted = a->opt.story_tokens};
    if (a->opt.story_tokens == 0)
        return LAM_OK;
    LAM_TRY(make_prompt(a));
    snprintf(w->what, sizeof w->what, "%s: continuing the prompt", m->name);
    LAM_TRY(lam_generate(engine, a->prompt, a->n_prompt,
                         &(lam_generate_options){.samples = 1,
                                                 .tokens = a->opt.story_tokens,
                                                 .sampler = a->opt.sampler,
                                                 .sink = on_token,
                                                 .user = &t}));
    LAM_TRY(t.status);
    if (t.stopped)
        return lam_fail(LAM_ERR_INTERRUPTED, "analysis stopped");
    return m->story.text ? count_story(&m->story) : LAM_OK;
}

lam_status lam_analysis_add(lam_analysis *a, lam_engine *engine, const char *name,
                            lam_analysis_watch *watch, void *user)
{
    watcher w = {.watch = watch, .user = user};
    if (a->n == LAM_ANALYSED)
        return lam_fail(LAM_ERR_ARG, "analysis: more than %d models", LAM_ANALYSED);
    LAM_TRY(lam_vocab_same(engine->vocab, a->corpus->vocab, a->corpus->info.name));
    lam_analysed *m = &a->models[a->n++]; /* counted at once: free() then knows it */
    snprintf(m->name, sizeof m->name, "%s", name);
    m->cfg = engine->model->cfg;
    m->parameters = lam_model_count(engine->model);
    const lam_probe_options probe = probe_of(a, &m->cfg);
    snprintf(w.what, sizeof w.what, "%s: probing", m->name);
    LAM_TRY(
        lam_probe_run(&m->probe, engine->model, &a->corpus->split[a->split], &probe, on_eval, &w));
    LAM_TRY(sweep(a, engine->model, m, &w));
    return tell(a, engine, m, &w);
}
