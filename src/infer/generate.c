/* generate.c -- see generate.h. */
#include "infer/generate.h"

#include "core/budget.h"
#include "infer/emitter.h"
#include "infer/session.h"

#include <stdlib.h>
#include <string.h>

typedef struct sample {
    lam_sampler *sampler;
    lam_emitter *emitter;
    bool done;
} sample;

enum { PIECE = 4096 }; /* tokens of the prompt in one step */

struct lam_generation {
    const lam_engine *engine;
    lam_generate_options o;
    lam_session *session;
    sample *samples;
    int32_t *prompt; /* [n] */
    size_t n, read;  /* its last token goes in with the first round */
    int32_t *piece;  /* [samples][PIECE] */
    int32_t *next;   /* [samples] */
    double *scores;  /* [samples][V] */
    lam_likely *top; /* [o.top] */
    int rounds;      /* done: tokens of each sample */
    int left;        /* samples that go on */
    int refresh;     /* length of the story's segments; 0: those of the prompt go on */
    bool stop;
};

static lam_status build(lam_generation *r, const int32_t *prompt_tokens, size_t n)
{
    const lam_generate_options *o = &r->o;
    const lam_config *cfg = &r->engine->model->cfg;
    const int prompt = o->prompt_segment > 0 ? o->prompt_segment : cfg->tgt_len;
    const int refresh = o->refresh > 0 ? o->refresh : prompt;
    if (o->samples < 1 || o->tokens < 0)
        return lam_fail(LAM_ERR_ARG, "generate: %d samples of %d tokens", o->samples, o->tokens);
    const int64_t most = (int64_t)n + o->tokens;
    LAM_TRY(
        lam_session_create(&r->session, r->engine->model,
                           &(lam_session_options){.streams = o->samples,
                                                  .longest = prompt > refresh ? prompt : refresh,
                                                  .mem_len = o->mem_len,
                                                  .most = most,
                                                  .dev = o->dev}));
    r->refresh = refresh == prompt ? 0 : lam_length_fit(refresh, most);
    LAM_TRY(lam_session_segment(r->session, lam_length_fit(prompt, most)));
    const size_t scores = (size_t)o->samples * (size_t)cfg->n_token * sizeof *r->scores;
    LAM_TRY(lam_budget_ask_under(r->engine->model->dev->max_memory, "the samples' scores", scores));
    r->samples = calloc((size_t)o->samples, sizeof *r->samples);
    r->next = calloc((size_t)o->samples, sizeof *r->next);
    r->scores = malloc(scores);
    r->top = calloc((size_t)o->top + 1, sizeof *r->top);
    r->prompt = malloc(n * sizeof *r->prompt);
    r->piece = malloc((size_t)o->samples * (n < PIECE ? n : PIECE) * sizeof *r->piece);
    if (!r->samples || !r->next || !r->scores || !r->top || !r->prompt || !r->piece)
        return lam_fail(LAM_ERR_MEMORY, "generate: no memory for %d samples", o->samples);
    memcpy(r->prompt, prompt_tokens, n * sizeof *r->prompt);
    r->n = n;
    lam_sampler_options sampler = o->sampler;
    sampler.never = o->unknown ? -1 : lam_vocab_unk(r->engine->vocab);
    for (int i = 0; i < o->samples; i++) {
        LAM_TRY(lam_sampler_create(&r->samples[i].sampler, &sampler, cfg->n_token, (uint64_t)i));
        LAM_TRY(lam_emitter_create(&r->samples[i].emitter, r->engine->vocab, o->stops, o->n_stops));
    }
    r->left = o->samples;
    return LAM_OK;
}

void lam_generation_free(lam_generation *r)
{
    if (!r)
        return;
    for (int i = 0; r->samples && i < r->o.samples; i++) {
        lam_sampler_free(r->samples[i].sampler);
        lam_emitter_free(r->samples[i].emitter);
    }
    free(r->samples);
    free(r->prompt);
    free(r->piece);
    free(r->next);
    free(r->scores);
    free(r->top);
    lam_session_free(r->session);
    free(r);
}

/* All streams read the same prompt.  The last token goes in alone, under the generation's segments. */
static lam_status read_piece(lam_generation *r)
{
    const int S = r->o.samples;
    const size_t left = r->n - 1 - r->read, k = left < PIECE ? left : PIECE;
    if (r->o.stop && r->o.stop(r->o.user))
        return lam_fail(LAM_ERR_INTERRUPTED, "generate: stopped at token %zu of the prompt",
                        r->read);
    for (int b = 0; b < S; b++)
        memcpy(r->piece + (size_t)b * k, r->prompt + r->read, k * sizeof *r->piece);
    r->read += k;
    return lam_session_feed(r->session, r->piece, (int)k);
}

/* The prompt was read up to its last token. */
static lam_status begin_story(lam_generation *r)
{
    for (int b = 0; b < r->o.samples; b++) {
        for (size_t i = 0; i < r->n; i++) {
            lam_sampler_note(r->samples[b].sampler, r->prompt[i]);
            lam_emitter_prompt(r->samples[b].emitter, r->prompt[i]);
        }
        r->next[b] = r->prompt[r->n - 1];
    }
    if (r->refresh > 0) { /* by way of 1: fitted to the text, two lengths may be one */
        LAM_TRY(lam_session_segment(r->session, 1));
        LAM_TRY(lam_session_segment(r->session, r->refresh));
    }
    return LAM_OK;
}

static void report(lam_generation *r, lam_generated g)
{
    if (r->o.sink && r->o.sink(r->o.user, &g) != 0)
        r->stop = true;
}

static lam_status finish_sample(lam_generation *r, int i, lam_finish why)
{
    lam_generated g = {.sample = i, .token = -1, .last = true, .finish = why};
    LAM_TRY(lam_emitter_finish(r->samples[i].emitter, &g.text, &g.size));
    r->samples[i].done = true;
    r->left--;
    report(r, g);
    return LAM_OK;
}

/* Draws the next token of sample i. */
static lam_status draw(lam_generation *r, int i)
{
    const size_t V = (size_t)r->engine->model->cfg.n_token;
    lam_generated g = {.sample = i};
    bool stopped = false;
    LAM_TRY(lam_sampler_draw(r->samples[i].sampler, r->scores + (size_t)i * V, &r->next[i],
                             &g.logprob));
    LAM_TRY(lam_emitter_push(r->samples[i].emitter, r->next[i], &g.text, &g.size, &stopped));
    g.token = r->next[i];
    if (r->o.top > 0) {
        lam_sampler_likeliest(r->samples[i].sampler, r->scores + (size_t)i * V, r->top, r->o.top);
        g.top = r->top;
        g.n_top = r->o.top;
    }
    report(r, g);
    return stopped ? finish_sample(r, i, LAM_FINISH_STOP) : LAM_OK;
}

/* One token for each sample that goes on; a finished stream idles on its last token. */
static lam_status draw_round(lam_generation *r)
{
    if (r->rounds == 0)
        LAM_TRY(begin_story(r));
    r->rounds++;
    LAM_TRY(lam_session_feed(r->session, r->next, 1));
    LAM_TRY(lam_session_logits(r->session, r->scores));
    for (int i = 0; i < r->o.samples && !r->stop; i++)
        if (!r->samples[i].done)
            LAM_TRY(draw(r, i));
    return LAM_OK;
}

lam_status lam_generation_step(lam_generation *r, bool *more)
{
    *more = false;
    if (r->left == 0)
        return LAM_OK;
    if (r->read < r->n - 1 && !r->stop)
        LAM_TRY(read_piece(r));
    else if (r->rounds < r->o.tokens && !r->stop)
        LAM_TRY(draw_round(r));
    *more = r->left > 0 && !r->stop && (r->read < r->n - 1 || r->rounds < r->o.tokens);
    for (int i = 0; i < r->o.samples && !*more; i++)
        if (!r->samples[i].done)
            LAM_TRY(finish_sample(r, i, r->stop ? LAM_FINISH_BREAK : LAM_FINISH_LENGTH));
    return LAM_OK;
}

lam_status lam_generation_create(lam_generation **out, const lam_engine *engine,
                                 const int32_t *prompt, size_t n,
                                 const lam_generate_options *options)
{
    const int32_t start = lam_engine_start_token(engine);
    *out = NULL;
    lam_generation *r = calloc(1, sizeof *r);
    if (!r)
        return lam_fail(LAM_ERR_MEMORY, "generate: no memory");
    r->engine = engine;
    r->o = *options;
    const lam_status status = build(r, n > 0 ? prompt : &start, n > 0 ? n : 1);
    if (status == LAM_OK)
        *out = r;
    else
        lam_generation_free(r);
    return status;
}

lam_status lam_generate(const lam_engine *engine, const int32_t *prompt, size_t n,
                        const lam_generate_options *options)
{
    lam_generation *g;
    bool more = true;
    LAM_TRY(lam_generation_create(&g, engine, prompt, n, options));
    lam_status status = LAM_OK;
    while (more && status == LAM_OK)
        status = lam_generation_step(g, &more);
    lam_generation_free(g);
    return status;
}
