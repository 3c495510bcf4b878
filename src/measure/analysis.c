/* analysis.c -- see analysis.h: what is measured of each model, and how much of it is done. */
#include "measure/analysis.h"

#include "data/detok.h"
#include "model/macs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what all models share ---- */

static lam_status check_options(const lam_analysis_options *o)
{
    if (o->encoding_width < 2 || o->encoding_width % 2)
        return lam_fail(LAM_ERR_ARG, "encoding_width %d: must be even and at least 2",
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
        lam_passage_free(&m->passage);
        for (int k = 0; k < m->n_points; k++)
            lam_parted_free(&m->points[k].nll);
        free(m->story.text);
    }
    free(a->own);
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

/* A message about one of the models says which. */
static lam_status blame(const lam_analysed *m, lam_status status)
{
    return status == LAM_OK ? LAM_OK : lam_fail(status, "model %s: %s", m->name, lam_error());
}

lam_status lam_analysis_plan(lam_analysis *a, const lam_config *cfg, const char *name)
{
    if (a->planned == LAM_ANALYSED)
        return lam_fail(LAM_ERR_ARG, "analysis: more than %d models", LAM_ANALYSED);
    lam_analysed *m = &a->models[a->planned++];
    snprintf(m->name, sizeof m->name, "%s", name);
    m->cfg = *cfg;
    if (a->opt.layer > cfg->n_layer)
        return blame(
            m, lam_fail(LAM_ERR_ARG, "it has %d layers, no layer %d", cfg->n_layer, a->opt.layer));
    return LAM_OK;
}

/* Half the longest memory that a model was trained with, its double, ... ten times it: as many as the text can fill.
 * Segments of 64 tokens, or of the shortest the models were trained with. */
static void follow(lam_analysis *a)
{
    lam_sweep_options *o = &a->opt.sweep;
    const int64_t count = a->corpus->split[a->split].count;
    int longest = 0, shortest = 64;
    for (int i = 0; i < a->planned; i++) {
        const lam_config *cfg = &a->models[i].cfg;
        longest = cfg->mem_len > longest ? cfg->mem_len : longest;
        shortest = cfg->tgt_len < shortest ? cfg->tgt_len : shortest;
    }
    if (o->tgt_len == 0)
        o->tgt_len = shortest;
    if (o->n > 0 || longest == 0)
        return;
    const int step = longest > 1 ? longest / 2 : 1;
    for (int k = 1; k <= 10; k++) {
        bool fits = k * (int64_t)step <= LAM_MAX_LEN;
        for (int i = 0; i < a->planned && fits; i++)
            fits =
                (lam_probe_warm(&a->models[i].cfg, o->tgt_len, k * step) + 1) * o->tgt_len < count;
        if (fits)
            o->lengths[o->n++] = k * step;
    }
}

/* Streams that leave each of them a whole segment after a full memory, for every model. */
static void take_fewer_streams(lam_analysis *a)
{
    for (int i = 0; i < a->planned; i++) {
        const lam_tokens *text = &a->corpus->split[a->split];
        const lam_probe_options o = probe_of(a, &a->models[i].cfg);
        const int64_t segments = (a->opt.probe.from + o.tgt_len - 1) / o.tgt_len + 1;
        const int64_t fit = (text->count - 1) / (segments * o.tgt_len + 1);
        if (fit < a->opt.probe.batch)
            a->opt.probe.batch = fit > 1 ? (int)fit : 1;
    }
}

/* How much work it is, model by model. */
static void count_work(lam_analysis *a)
{
    const lam_tokens *text = &a->corpus->split[a->split];
    lam_sweep_options *sweep = &a->opt.sweep;
    double macs = 0.0;
    for (int i = 0; i < a->planned; i++) {
        const lam_config *cfg = &a->models[i].cfg;
        const lam_probe_options o = probe_of(a, cfg);
        const int64_t skip = cfg->mem_len > 0 && sweep->n > 0 ? lam_sweep_warm(sweep, cfg) : 0;
        sweep->skip = sweep->skip < skip ? skip : sweep->skip;
        a->macs += lam_probe_macs(cfg, &o) + story_macs(a, cfg);
        macs += lam_sweep_macs(sweep, cfg);
    }
    lam_sweep_resolve(sweep, macs, text);
    a->macs += lam_sweep_weight(sweep, text) * macs;
}

lam_status lam_analysis_ready(lam_analysis *a)
{
    if (a->ready)
        return LAM_OK;
    for (int i = 0; i < a->planned; i++) {
        const lam_config *cfg = &a->models[i].cfg;
        const lam_probe_options o = probe_of(a, cfg);
        const int64_t from = lam_probe_warm(cfg, o.tgt_len, o.mem_len) * o.tgt_len;
        a->opt.probe.from = a->opt.probe.from < from ? from : a->opt.probe.from;
    }
    if (a->opt.fewer_streams)
        take_fewer_streams(a);
    for (int i = 0; i < a->planned; i++) {
        const lam_probe_options o = probe_of(a, &a->models[i].cfg);
        LAM_TRY(blame(&a->models[i],
                      lam_probe_check(&a->models[i].cfg, &a->corpus->split[a->split], &o)));
    }
    if (a->opt.sweep_follows)
        follow(a);
    count_work(a);
    a->ready = true;
    return LAM_OK;
}

/* ---- progress ---- */

/* One piece of the work while it is done. */
typedef struct watcher {
    lam_analysis *a;
    lam_analysis_watch *watch; /* may be NULL */
    void *user;
    char what[160];
    double macs; /* of all, this piece's */
    int64_t skip, row,
        done; /* of text that is read: rows of columns that only fill memories, tokens of a
                              * row, rows done */
} watcher;

/* Tells how much of the piece is done; non-zero: stop. */
static int tell(const watcher *w, double share)
{
    const lam_analysis *a = w->a;
    const lam_analysis_progress p = {
        .what = w->what, .share = share, .all = fmin(1.0, (a->done + share * w->macs) / a->macs)};
    return w->watch ? w->watch(w->user, &p) : 0;
}

/* Called after each row of segments; rows that fill memories take half the time of others. */
static int on_eval(void *user, const lam_eval_result *so_far, int64_t total)
{
    watcher *w = user;
    const double warm = 0.5 * (double)(++w->done < w->skip ? w->done : w->skip);
    return tell(w, (warm + (double)so_far->tokens / (double)w->row) /
                       (0.5 * (double)w->skip + (double)total / (double)w->row));
}

/* A piece that reads `skip` rows of segments of `row` tokens before those that count. */
static void begin(watcher *w, double macs, int64_t skip, int64_t row)
{
    w->macs = macs;
    w->skip = skip;
    w->row = row;
    w->done = 0;
}

/* ---- Figure 5 ---- */

/* A model that cannot have a length (learned distances, a compression rate) has fewer points. */
static lam_status sweep(lam_analysis *a, lam_model *model, lam_analysed *m, watcher *w)
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

/* ---- the case study: a prompt, and what each model and the text itself continue it with ---- */

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
    const int64_t from = a->opt.probe.from + 1;
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
    t->stopped = tell(t->watch, (double)t->tokens / t->wanted);
    return t->stopped;
}

static lam_status continue_prompt(lam_analysis *a, const lam_engine *engine, lam_analysed *m,
                                  watcher *w)
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

/* ---- the passage ---- */

static int on_passage(void *user, const lam_eval_result *so_far, int64_t total)
{
    return tell(user, (double)so_far->tokens / (double)total);
}

/* The user's own text begins as a session does, so that its first token is predicted too. */
static lam_status read_own(lam_analysis *a, const lam_engine *engine)
{
    int32_t *ids = NULL;
    size_t n;
    if (a->own || !a->opt.text)
        return LAM_OK;
    LAM_TRY(lam_vocab_encode(a->corpus->vocab, &ids, &n, a->opt.text, a->opt.text_size));
    a->own = malloc((n + 1) * sizeof *ids);
    if (a->own) {
        a->own[0] = lam_engine_start_token(engine);
        memcpy(a->own + 1, ids, n * sizeof *ids);
        a->n_own = n;
    }
    free(ids);
    return a->own ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "analysis: no memory for %zu tokens", n);
}

static lam_status read_passage(lam_analysis *a, const lam_engine *engine, lam_analysed *m,
                               watcher *w)
{
    const lam_probe_options probe = probe_of(a, &m->cfg);
    lam_tokens text = a->corpus->split[a->split];
    lam_passage_options o = {.tgt_len = probe.tgt_len,
                             .mem_len = probe.mem_len,
                             .layer = lam_analysis_layer(a, m),
                             .from = a->opt.probe.from,
                             .n = a->opt.passage};
    LAM_TRY(read_own(a, engine));
    if (a->own) {
        text = (lam_tokens){.ids = (const unsigned char *)a->own,
                            .width = sizeof *a->own,
                            .vocab_size = text.vocab_size,
                            .count = (int64_t)a->n_own + 1};
        o.from = 0;
        o.n = a->n_own < (size_t)o.n ? (int)a->n_own : o.n;
    }
    if (o.n < 1)
        return LAM_OK;
    snprintf(w->what, sizeof w->what, "%s: reading the passage", m->name);
    w->macs = 0.0;
    return lam_passage_read(&m->passage, engine->model, &text, &o, on_passage, w);
}

/* ---- a model ---- */

lam_status lam_analysis_add(lam_analysis *a, lam_engine *engine, lam_analysis_watch *watch,
                            void *user)
{
    watcher w = {.a = a, .watch = watch, .user = user};
    if (a->n == a->planned)
        return lam_fail(LAM_ERR_ARG, "analysis: only %d models were planned", a->planned);
    LAM_TRY(lam_analysis_ready(a));
    LAM_TRY(lam_vocab_same(engine->vocab, a->corpus->vocab, a->corpus->info.name));
    lam_analysed *m = &a->models[a->n++]; /* counted at once: free() then knows it */
    m->mem = engine->model->mem;
    m->parameters = lam_model_count(engine->model);
    const lam_probe_options probe = probe_of(a, &m->cfg);
    snprintf(w.what, sizeof w.what, "%s: probing", m->name);
    begin(&w, lam_probe_macs(&m->cfg, &probe), (probe.from + probe.tgt_len - 1) / probe.tgt_len,
          (int64_t)probe.batch * probe.tgt_len);
    LAM_TRY(
        lam_probe_run(&m->probe, engine->model, &a->corpus->split[a->split], &probe, on_eval, &w));
    a->done += w.macs;
    LAM_TRY(read_passage(a, engine, m, &w));
    LAM_TRY(sweep(a, engine->model, m, &w));
    w.macs = story_macs(a, &m->cfg);
    const lam_status status = continue_prompt(a, engine, m, &w);
    a->done += w.macs;
    return status;
}
