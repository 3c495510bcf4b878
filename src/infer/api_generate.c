/* api_generate.c -- the public interface, include/lamemo.h: continuing a prompt, at once or piece by piece. */
#include "infer/api_int.h"

#include "core/grow.h"
#include "infer/generate.h"

#include <stdlib.h>
#include <string.h>

SAME(LAM_FINISH_LENGTH, LAMEMO_FINISH_LENGTH);
SAME(LAM_FINISH_STOP, LAMEMO_FINISH_STOP);
SAME(LAM_FINISH_BREAK, LAMEMO_FINISH_BREAK);
SAME(sizeof(lam_likely), sizeof(lamemo_likely));
SAME(offsetof(lam_likely, logprob), offsetof(lamemo_likely, logprob));

/* ---- lamemo_generate ---- */

typedef struct listening {
    lamemo_piece_sink *sink;
    void *user;
} listening;

static lamemo_piece piece_of(const lam_generated *g)
{
    return (lamemo_piece){.sample = g->sample,
                          .token = g->token,
                          .logprob = g->logprob,
                          .text = g->text,
                          .size = g->size,
                          .last = g->last,
                          .finish = (lamemo_finish)g->finish,
                          .top = (const lamemo_likely *)g->top,
                          .n_top = g->n_top};
}

static int hand_over(void *user, const lam_generated *g)
{
    const listening *to = user;
    const lamemo_piece piece = piece_of(g);
    return to->sink(to->user, &piece);
}

static lam_status check_request(const lamemo_engine *e, const lamemo_generate_options *o,
                                const int32_t *prompt, size_t n)
{
    LAM_TRY(lam_api_not_negative("tokens", o->tokens));
    LAM_TRY(lam_api_size("samples", o->samples));
    LAM_TRY(lam_api_size("segment", o->segment));
    LAM_TRY(lam_api_size("refresh", o->refresh));
    LAM_TRY(lam_api_size("memory", o->memory));
    LAM_TRY(lam_api_not_negative("n_stops", o->n_stops));
    if (o->top < 0 || o->top > lamemo_vocab_size(e))
        return lam_fail(LAM_ERR_ARG, "top is %d, must be 0 to %d, the size of the vocabulary",
                        o->top, lamemo_vocab_size(e));
    return lam_api_tokens(e, prompt, n);
}

/* *out starts with what `o` says, on a device context of its own (out->dev). */
static lam_status want(lam_generate_options *out, const lamemo_engine *e,
                       const lamemo_generate_options *o, const int32_t *prompt, size_t n)
{
    *out = (lam_generate_options){.samples = o->samples > 0 ? o->samples : 1,
                                  .tokens = o->tokens > 0 ? o->tokens : 256,
                                  .prompt_segment = o->segment,
                                  .refresh = o->refresh,
                                  .mem_len = o->memory,
                                  .sampler = lam_api_sampler(o->sampling, e->inner->vocab),
                                  .unknown = o->sampling && o->sampling->unknown,
                                  .stops = o->stops,
                                  .n_stops = o->n_stops,
                                  .top = o->top};
    LAM_TRY(check_request(e, o, prompt, n));
    return lam_api_context(&out->dev, e, o->threads);
}

lamemo_status lamemo_generate(lamemo_engine *e, const int32_t *prompt, size_t n,
                              const lamemo_generate_options *options, lamemo_piece_sink *sink,
                              void *user)
{
    const lamemo_generate_options o = options ? *options : (lamemo_generate_options){0};
    listening to = {sink, user};
    lam_generate_options wanted;
    lam_status status = want(&wanted, e, &o, prompt, n);
    wanted.sink = hand_over;
    wanted.user = &to;
    if (status == LAM_OK)
        status = lam_engine_blame(e->inner, lam_generate(e->inner, prompt, n, &wanted));
    if (wanted.dev)
        wanted.dev->ops->close(wanted.dev);
    return lam_api_status(status);
}

/* ---- lamemo_generation ---- */

/* A step gives a sample its token and, where it ends, its last text. */
enum { MOST_PIECES = 2 };

struct lamemo_generation {
    const lam_engine *engine; /* kept */
    lam_dev *dev;             /* its own */
    lam_generation *inner;
    lamemo_piece *waiting; /* [MOST_PIECES samples]: what the last step gave */
    int n_waiting, taken;
    char *text; /* theirs, one after the other */
    size_t text_size, text_room;
    lamemo_likely *top; /* theirs: [n_waiting][n_top] */
    bool lacks_memory, more;
};

/* The copy's text is found again from its size: `text` may move while it grows. */
static int keep(void *user, const lam_generated *given)
{
    lamemo_generation *g = user;
    const lamemo_piece piece = piece_of(given);
    if (lam_grow(&g->text, &g->text_room, g->text_size + piece.size, 1, "bytes of text") !=
        LAM_OK) {
        g->lacks_memory = true;
        return 1;
    }
    if (piece.size > 0)
        memcpy(g->text + g->text_size, piece.text, piece.size);
    if (piece.n_top > 0)
        memcpy(g->top + (size_t)g->n_waiting * (size_t)piece.n_top, piece.top,
               (size_t)piece.n_top * sizeof *g->top);
    g->text_size += piece.size;
    g->waiting[g->n_waiting++] = piece;
    return 0;
}

static lam_status build(lamemo_generation *g, lamemo_engine *e, const int32_t *prompt, size_t n,
                        const lamemo_generate_options *o)
{
    lam_generate_options wanted;
    const lam_status status = want(&wanted, e, o, prompt, n);
    g->engine = e->inner;
    g->dev = wanted.dev;
    g->more = true;
    LAM_TRY(status);
    const size_t most = MOST_PIECES * (size_t)wanted.samples;
    g->waiting = calloc(most, sizeof *g->waiting);
    g->top = calloc(most * (size_t)wanted.top + 1, sizeof *g->top);
    if (!g->waiting || !g->top)
        return lam_fail(LAM_ERR_MEMORY, "generate: no memory for %d samples", wanted.samples);
    wanted.sink = keep;
    wanted.user = g;
    return lam_generation_create(&g->inner, e->inner, prompt, n, &wanted);
}

lamemo_status lamemo_generation_create(lamemo_engine *e, const int32_t *prompt, size_t n,
                                       const lamemo_generate_options *options,
                                       lamemo_generation **generation)
{
    const lamemo_generate_options o = options ? *options : (lamemo_generate_options){0};
    *generation = NULL;
    lamemo_generation *g = calloc(1, sizeof *g);
    if (!g)
        return lam_api_status(lam_fail(LAM_ERR_MEMORY, "generate: no memory"));
    const lam_status status = build(g, e, prompt, n, &o);
    if (status == LAM_OK)
        *generation = g;
    else
        lamemo_generation_free(g);
    return lam_api_status(status);
}

void lamemo_generation_free(lamemo_generation *g)
{
    if (!g)
        return;
    lam_generation_free(g->inner);
    if (g->dev)
        g->dev->ops->close(g->dev);
    free(g->waiting);
    free(g->text);
    free(g->top);
    free(g);
}

static lam_status compute(lamemo_generation *g)
{
    g->n_waiting = g->taken = 0;
    g->text_size = 0;
    LAM_TRY(lam_generation_step(g->inner, &g->more));
    if (g->lacks_memory)
        return lam_fail(LAM_ERR_MEMORY, "generate: no memory for the text");
    size_t at = 0;
    for (int i = 0; i < g->n_waiting; i++) {
        lamemo_piece *piece = &g->waiting[i];
        piece->text = g->text ? g->text + at : "";
        piece->top = g->top + (size_t)i * (size_t)piece->n_top;
        at += piece->size;
    }
    return LAM_OK;
}

lamemo_status lamemo_generation_next(lamemo_generation *g, lamemo_piece *piece, int *more)
{
    lam_status status = LAM_OK;
    *piece = (lamemo_piece){.token = -1, .text = ""};
    if (g->taken == g->n_waiting && g->more)
        status = lam_engine_blame(g->engine, compute(g));
    if (status != LAM_OK) {
        g->more = false;
        g->n_waiting = g->taken = 0;
    }
    if (g->taken < g->n_waiting)
        *piece = g->waiting[g->taken++];
    *more = g->more || g->taken < g->n_waiting;
    return lam_api_status(status);
}
