/* analysis_tell.c -- the case study is made: a prompt, and what each model and the text itself go on with. */
#include "report/analysis_int.h"

#include "data/detok.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const lam_watcher *watch;
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
    t->stopped = lam_watcher_tell(t->watch, (double)t->tokens / t->wanted);
    return t->stopped;
}

lam_status lam_analysis_tell(lam_analysis *a, const lam_engine *engine, lam_analysed *m,
                             lam_watcher *w)
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
