/* api_session.c -- the public interface, include/lamemo.h: sessions, draws and snapshots. */
#include "infer/api_int.h"

#include "infer/session.h"

#include <limits.h>
#include <stdlib.h>

struct lamemo_session {
    const lam_engine *engine; /* kept */
    lam_dev *dev;             /* its own: sessions of one engine run in parallel */
    lam_session *inner;
    int streams, n_token;
    lam_sampler **samplers; /* [streams] */
    double *scores;         /* [streams][n_token] */
    int32_t *drawn;         /* [streams]: noted by its sampler, not fed yet; -1: none */
};

/* ---- creating ---- */

lam_sampler_options lam_api_sampler(const lamemo_sampling *s, const lam_vocab *vocab)
{
    lam_sampler_options d = lam_sampler_defaults();
    d.never = lam_vocab_unk(vocab);
    if (!s)
        return d;
    return (lam_sampler_options){
        .temperature = s->greedy               ? 0.0
                       : s->temperature != 0.0 ? s->temperature
                                               : d.temperature,
        .top_k = s->top_k != 0 ? s->top_k : d.top_k,
        .top_p = s->top_p != 0.0 ? s->top_p : d.top_p,
        .min_p = s->min_p != 0.0 ? s->min_p : d.min_p,
        .repeat_penalty = s->repeat_penalty != 0.0 ? s->repeat_penalty : d.repeat_penalty,
        .repeat_last = s->repeat_last != 0 ? s->repeat_last : d.repeat_last,
        .seed = s->seed != 0 ? s->seed : d.seed,
        .never = s->unknown ? -1 : d.never};
}

void lamemo_sampling_defaults(lamemo_sampling *s)
{
    const lam_sampler_options d = lam_sampler_defaults();
    *s = (lamemo_sampling){.temperature = d.temperature,
                           .top_k = d.top_k,
                           .top_p = d.top_p,
                           .min_p = d.min_p,
                           .repeat_penalty = d.repeat_penalty,
                           .repeat_last = d.repeat_last,
                           .seed = d.seed};
}

static void free_samplers(lam_sampler **list, int n)
{
    for (int i = 0; list && i < n; i++)
        lam_sampler_free(list[i]);
    free(list);
}

/* One for each stream, in the place of those there were. */
static lam_status replace_samplers(lamemo_session *s, const lam_sampler_options *options)
{
    lam_sampler **list = calloc((size_t)s->streams, sizeof(lam_sampler *));
    lam_status status =
        list ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "session: no memory for %d samplers", s->streams);
    for (int i = 0; i < s->streams && status == LAM_OK; i++)
        status = lam_sampler_create(&list[i], options, s->n_token, (uint64_t)i);
    if (status != LAM_OK) {
        free_samplers(list, s->streams);
        return status;
    }
    free_samplers(s->samplers, s->streams);
    s->samplers = list;
    return LAM_OK;
}

static void forget_drawn(lamemo_session *s)
{
    for (int i = 0; i < s->streams; i++)
        s->drawn[i] = -1;
}

static lam_status build(lamemo_session *s, lamemo_engine *engine, const lamemo_session_options *o)
{
    LAM_TRY(lam_api_size("streams", o->streams));
    LAM_TRY(lam_api_size("longest", o->longest));
    LAM_TRY(lam_api_size("memory", o->memory));
    s->streams = o->streams > 0 ? o->streams : 1;
    s->n_token = lamemo_vocab_size(engine);
    s->engine = engine->inner;
    LAM_TRY(lam_api_context(&s->dev, engine, o->threads));
    LAM_TRY(lam_session_create(
        &s->inner, engine->inner->model,
        &(lam_session_options){
            .streams = s->streams, .longest = o->longest, .mem_len = o->memory, .dev = s->dev}));
    s->scores = calloc((size_t)s->streams * (size_t)s->n_token, sizeof *s->scores);
    s->drawn = calloc((size_t)s->streams, sizeof *s->drawn);
    if (!s->scores || !s->drawn)
        return lam_fail(LAM_ERR_MEMORY, "session: no memory for %d streams", s->streams);
    forget_drawn(s);
    const lam_sampler_options defaults = lam_api_sampler(NULL, s->engine->vocab);
    return replace_samplers(s, &defaults);
}

lamemo_status lamemo_session_create(lamemo_engine *engine, const lamemo_session_options *options,
                                    lamemo_session **session)
{
    const lamemo_session_options o = options ? *options : (lamemo_session_options){0};
    *session = NULL;
    lamemo_session *s = calloc(1, sizeof *s);
    if (!s)
        return lam_api_status(lam_fail(LAM_ERR_MEMORY, "session: no memory"));
    const lam_status status = build(s, engine, &o);
    if (status == LAM_OK)
        *session = s;
    else
        lamemo_session_free(s);
    return lam_api_status(status);
}

void lamemo_session_free(lamemo_session *s)
{
    if (!s)
        return;
    free_samplers(s->samplers, s->streams);
    lam_session_free(s->inner);
    if (s->dev)
        s->dev->ops->close(s->dev);
    free(s->scores);
    free(s->drawn);
    free(s);
}

/* ---- running ---- */

void lamemo_session_reset(lamemo_session *s)
{
    lam_session_reset(s->inner);
    forget_drawn(s);
    for (int i = 0; i < s->streams; i++)
        lam_sampler_restart(s->samplers[i]);
}

lamemo_status lamemo_session_segment(lamemo_session *s, int length)
{
    return lam_api_status(lam_session_segment(s->inner, length));
}

/* The repetition penalty counts what was fed; a token that was drawn counts already. */
static void note(lamemo_session *s, const int32_t *tokens, size_t n)
{
    for (int b = 0; b < s->streams; b++) {
        const int32_t *row = tokens + (size_t)b * n;
        for (size_t i = n > 0 && row[0] == s->drawn[b] ? 1 : 0; i < n; i++)
            lam_sampler_note(s->samplers[b], row[i]);
    }
    if (n > 0)
        forget_drawn(s);
}

lamemo_status lamemo_session_feed(lamemo_session *s, const int32_t *tokens, size_t n)
{
    lam_status status = LAM_OK;
    if (n > INT_MAX)
        status = lam_fail(LAM_ERR_ARG, "session: %zu tokens at once, at most %d", n, INT_MAX);
    if (status == LAM_OK)
        status = lam_session_feed(s->inner, tokens, (int)n);
    if (status == LAM_OK)
        note(s, tokens, n);
    return lam_api_status(status);
}

int64_t lamemo_session_length(const lamemo_session *s)
{
    return lam_session_length(s->inner);
}

lamemo_status lamemo_session_logits(lamemo_session *s, double *logits)
{
    return lam_api_status(lam_engine_blame(s->engine, lam_session_logits(s->inner, logits)));
}

lamemo_status lamemo_session_logits_float(lamemo_session *s, float *logits)
{
    const lam_status status = lam_engine_blame(s->engine, lam_session_logits(s->inner, s->scores));
    if (status == LAM_OK)
        lam_convert(logits, LAM_F32, s->scores, LAM_F64, (size_t)s->streams * (size_t)s->n_token);
    return lam_api_status(status);
}

lamemo_status lamemo_session_sampling(lamemo_session *s, const lamemo_sampling *sampling)
{
    const lam_sampler_options options = lam_api_sampler(sampling, s->engine->vocab);
    const lam_status status = replace_samplers(s, &options);
    if (status == LAM_OK)
        forget_drawn(s);
    return lam_api_status(status);
}

lamemo_status lamemo_session_sample(lamemo_session *s, int32_t *tokens, double *logprobs)
{
    lam_status status = lam_session_logits(s->inner, s->scores);
    for (int b = 0; b < s->streams && status == LAM_OK; b++) {
        status = lam_sampler_draw(s->samplers[b], s->scores + (size_t)b * (size_t)s->n_token,
                                  &tokens[b], logprobs ? &logprobs[b] : NULL);
        s->drawn[b] = status == LAM_OK ? tokens[b] : -1;
    }
    return lam_api_status(lam_engine_blame(s->engine, status));
}

/* ---- snapshots ---- */

/* A lamemo_snapshot is a lam_snapshot under its public name: nobody outside looks into it. */
lamemo_status lamemo_session_snapshot(lamemo_session *s, lamemo_snapshot **out)
{
    lam_snapshot *now = NULL;
    const lam_status status = lam_session_snapshot(s->inner, &now);
    *out = (lamemo_snapshot *)now;
    return lam_api_status(status);
}

lamemo_status lamemo_session_restore(lamemo_session *s, const lamemo_snapshot *snapshot)
{
    const lam_status status = lam_session_restore(s->inner, (const lam_snapshot *)snapshot);
    if (status == LAM_OK)
        forget_drawn(s);
    return lam_api_status(status);
}

void lamemo_snapshot_free(lamemo_snapshot *snapshot)
{
    lam_snapshot_free((lam_snapshot *)snapshot);
}

lamemo_status lamemo_session_save(lamemo_session *s, const char *path)
{
    lam_snapshot *now = NULL;
    lam_status status = lam_session_snapshot(s->inner, &now);
    if (status == LAM_OK)
        status = lam_snapshot_save(now, path);
    lam_snapshot_free(now);
    return lam_api_status(status);
}

lamemo_status lamemo_session_load(lamemo_session *s, const char *path)
{
    lam_snapshot *then = NULL;
    lam_status status = lam_snapshot_load(&then, path);
    if (status == LAM_OK)
        status = lam_session_restore(s->inner, then);
    if (status == LAM_OK)
        forget_drawn(s);
    lam_snapshot_free(then);
    return lam_api_status(status);
}
