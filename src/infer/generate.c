/* generate.c -- see generate.h. */
#include "infer/generate.h"

#include "core/budget.h"
#include "infer/emitter.h"
#include "infer/session.h"

#include <stdlib.h>

typedef struct sample {
    lam_sampler *sampler;
    lam_emitter *emitter;
    bool done;
} sample;

typedef struct run {
    const lam_engine *engine;
    const lam_generate_options *o;
    lam_session *session;
    sample *samples;
    int32_t *next;  /* [samples] */
    double *scores; /* [samples][V] */
    int left;       /* samples that go on */
    int refresh;    /* length of the story's segments; 0: those of the prompt go on */
    bool stop;
} run;

static lam_status build(run *r, size_t n)
{
    const lam_generate_options *o = r->o;
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
    if (!r->samples || !r->next || !r->scores)
        return lam_fail(LAM_ERR_MEMORY, "generate: no memory for %d samples", o->samples);
    for (int i = 0; i < o->samples; i++) {
        LAM_TRY(lam_sampler_create(&r->samples[i].sampler, &o->sampler, cfg->n_token, (uint64_t)i));
        LAM_TRY(lam_emitter_create(&r->samples[i].emitter, r->engine->vocab, o->stops, o->n_stops));
    }
    r->left = o->samples;
    return LAM_OK;
}

static void tear_down(run *r)
{
    for (int i = 0; r->samples && i < r->o->samples; i++) {
        lam_sampler_free(r->samples[i].sampler);
        lam_emitter_free(r->samples[i].emitter);
    }
    free(r->samples);
    free(r->next);
    free(r->scores);
    lam_session_free(r->session);
}

/* All streams read the same prompt.  The last token goes in alone, under the generation's segments. */
static lam_status read_prompt(run *r, const int32_t *prompt, size_t n)
{
    enum { PIECE = 4096 };
    const int S = r->o->samples;
    int32_t *piece = malloc((size_t)S * PIECE * sizeof *piece);
    if (!piece)
        return lam_fail(LAM_ERR_MEMORY, "generate: no memory for the prompt");
    lam_status status = LAM_OK;
    for (size_t at = 0; at < n - 1 && status == LAM_OK; at += PIECE) {
        const size_t k = n - 1 - at < PIECE ? n - 1 - at : PIECE;
        if (r->o->stop && r->o->stop(r->o->user)) {
            status =
                lam_fail(LAM_ERR_INTERRUPTED, "generate: stopped at token %zu of the prompt", at);
            break;
        }
        for (int b = 0; b < S; b++)
            for (size_t i = 0; i < k; i++)
                piece[(size_t)b * k + i] = prompt[at + i];
        status = lam_session_feed(r->session, piece, (int)k);
    }
    free(piece);
    for (size_t i = 0; i < n; i++)
        for (int b = 0; b < S; b++) {
            lam_sampler_note(r->samples[b].sampler, prompt[i]);
            lam_emitter_prompt(r->samples[b].emitter, prompt[i]);
        }
    for (int b = 0; b < S; b++)
        r->next[b] = prompt[n - 1];
    return status;
}

static void report(run *r, lam_generated g)
{
    if (r->o->sink && r->o->sink(r->o->user, &g) != 0)
        r->stop = true;
}

static lam_status finish_sample(run *r, int i, lam_finish why)
{
    lam_generated g = {.sample = i, .token = -1, .last = true, .finish = why};
    LAM_TRY(lam_emitter_finish(r->samples[i].emitter, &g.text, &g.size));
    r->samples[i].done = true;
    r->left--;
    report(r, g);
    return LAM_OK;
}

/* Draws the next token of sample i. */
static lam_status draw(run *r, int i)
{
    const size_t V = (size_t)r->engine->model->cfg.n_token;
    lam_generated g = {.sample = i};
    bool stopped = false;
    LAM_TRY(lam_sampler_draw(r->samples[i].sampler, r->scores + (size_t)i * V, &r->next[i],
                             &g.logprob));
    LAM_TRY(lam_emitter_push(r->samples[i].emitter, r->next[i], &g.text, &g.size, &stopped));
    g.token = r->next[i];
    report(r, g);
    return stopped ? finish_sample(r, i, LAM_FINISH_STOP) : LAM_OK;
}

static lam_status generate(run *r, const int32_t *prompt, size_t n)
{
    LAM_TRY(build(r, n));
    LAM_TRY(read_prompt(r, prompt, n));
    if (r->refresh > 0) { /* by way of 1: fitted to the text, two lengths may be one */
        LAM_TRY(lam_session_segment(r->session, 1));
        LAM_TRY(lam_session_segment(r->session, r->refresh));
    }
    for (int t = 0; t < r->o->tokens && r->left > 0 && !r->stop; t++) {
        LAM_TRY(lam_session_feed(r->session, r->next, 1));
        LAM_TRY(lam_session_logits(r->session, r->scores));
        for (int i = 0; i < r->o->samples && !r->stop; i++)
            if (!r->samples[i].done) /* a finished stream idles on its last token */
                LAM_TRY(draw(r, i));
    }
    for (int i = 0; i < r->o->samples; i++)
        if (!r->samples[i].done)
            LAM_TRY(finish_sample(r, i, r->stop ? LAM_FINISH_BREAK : LAM_FINISH_LENGTH));
    return LAM_OK;
}

lam_status lam_generate(const lam_engine *engine, const int32_t *prompt, size_t n,
                        const lam_generate_options *options)
{
    const int32_t start = lam_engine_start_token(engine);
    run r = {.engine = engine, .o = options};
    const lam_status status = generate(&r, n > 0 ? prompt : &start, n > 0 ? n : 1);
    tear_down(&r);
    return status;
}
