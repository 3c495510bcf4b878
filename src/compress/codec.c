/* codec.c -- see codec.h. */
#include "compress/codec.h"

#include "compress/alphabet.h"
#include "compress/cdf.h"
#include "compress/mix.h"
#include "core/budget.h"
#include "infer/session.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    ROWS = 1024, /* streams times steps that the model reads at once when encoding */
    HOPE = 512   /* bytes that a beginning may grow before the block is given up */
};

const char *const lam_adapt_names[] = {"none", "mix", NULL};

struct lam_codec {
    lam_engine *engine;
    lam_codec_options o;
    lam_alphabet *alphabet;
    uint32_t *cum; /* [alphabet + 1] */
    /* What fits blocks of one size, made anew for another one. */
    lam_session *session;
    lam_mix *mix;
    double *logits; /* [streams][n_token] */
    int streams;
    size_t n;
};

int lam_codec_streams(int streams, size_t n)
{
    const size_t most = (n + LAM_STREAM_LEAST - 1) / LAM_STREAM_LEAST;
    return (size_t)streams < most ? streams : most > 0 ? (int)most : 1;
}

size_t lam_codec_cut(size_t n, int streams, int i)
{
    return n / (size_t)streams * (size_t)i + n % (size_t)streams * (size_t)i / (size_t)streams;
}

lam_status lam_codec_create(lam_codec **out, lam_engine *engine, const lam_codec_options *options)
{
    *out = NULL;
    if (!engine->dev->exact)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "model %s: compression needs exact arithmetic: open it with numerics exact",
                        engine->name);
    lam_codec *const c = calloc(1, sizeof *c);
    if (!c)
        return lam_fail(LAM_ERR_MEMORY, "codec: no memory");
    c->engine = engine;
    c->o = *options;
    lam_status status = lam_alphabet_create(&c->alphabet, engine);
    if (status == LAM_OK) {
        c->cum = calloc((size_t)lam_alphabet_size(c->alphabet) + 1, sizeof *c->cum);
        status = c->cum ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "codec: no memory");
    }
    if (status != LAM_OK) {
        lam_codec_free(c);
        return status;
    }
    *out = c;
    return LAM_OK;
}

static void clear(lam_codec *c)
{
    lam_session_free(c->session);
    lam_mix_free(c->mix);
    free(c->logits);
    c->session = NULL;
    c->mix = NULL;
    c->logits = NULL;
}

void lam_codec_free(lam_codec *c)
{
    if (!c)
        return;
    clear(c);
    lam_alphabet_free(c->alphabet);
    free(c->cum);
    free(c);
}

/* A session for texts of at most `most` tokens. */
static lam_status open_session(const lam_codec *c, lam_session **out, int streams, size_t most)
{
    return lam_session_create(out, c->engine->model,
                              &(lam_session_options){.streams = streams,
                                                     .longest = c->o.segment,
                                                     .mem_len = c->o.memory,
                                                     .most = (int64_t)most + 1,
                                                     .dev = c->o.dev});
}

static lam_status build(lam_codec *c, size_t n)
{
    c->streams = lam_codec_streams(c->o.streams, n);
    c->n = n;
    const size_t cells = (size_t)c->streams * (size_t)c->engine->model->cfg.n_token;
    LAM_TRY(lam_budget_ask("logits of all streams", cells * sizeof *c->logits));
    c->logits = malloc(cells * sizeof *c->logits);
    if (!c->logits)
        return lam_fail(LAM_ERR_MEMORY, "codec: no memory for %d streams", c->streams);
    if (c->o.adapt == LAM_ADAPT_MIX)
        LAM_TRY(lam_mix_create(&c->mix, lam_alphabet_size(c->alphabet), c->streams, n));
    return open_session(c, &c->session, c->streams, n / (size_t)c->streams + 1);
}

/* Everything as it is before the first symbol of a block of n bytes. */
static lam_status begin(lam_codec *c, size_t n)
{
    lam_alphabet_reset(c->alphabet);
    if (c->session && c->n == n) {
        lam_session_reset(c->session);
        if (c->mix)
            lam_mix_reset(c->mix);
        return LAM_OK;
    }
    clear(c);
    const lam_status status = build(c, n);
    if (status != LAM_OK)
        clear(c);
    return status;
}

/* ---- encoding ---- */

/* A block on its way: the symbols of every stream, and how many steps are done. */
typedef struct encoding {
    lam_codec *c;
    lam_ids *texts; /* [streams] */
    size_t steps, step;
    size_t done; /* bytes of text whose symbols are coded */
    lam_range_encoder coder;
    const double *logits;
} encoding;

static lam_status on_logits(void *user, const double *logits)
{
    encoding *const e = user;
    lam_codec *const c = e->c;
    const size_t V = (size_t)c->engine->model->cfg.n_token;
    for (int s = 0; s < c->streams; s++) {
        if (e->step >= e->texts[s].n)
            continue;
        const int symbol = e->texts[s].v[e->step];
        size_t size;
        lam_alphabet_cum(c->alphabet, c->cum, logits + (size_t)s * V);
        if (c->mix)
            lam_mix_put(c->mix, s, c->cum, symbol, &e->coder);
        else
            lam_range_put(&e->coder, c->cum[symbol], c->cum[symbol + 1] - c->cum[symbol]);
        lam_alphabet_note(c->alphabet, symbol);
        lam_alphabet_text(c->alphabet, symbol, &size);
        e->done += size;
    }
    e->step++;
    return LAM_OK;
}

/* What the model reads in `count` steps from e->step on: always the symbol before. */
static void collect(const encoding *e, int32_t *tokens, size_t count)
{
    const int32_t start = lam_engine_start_token(e->c->engine);
    for (int s = 0; s < e->c->streams; s++)
        for (size_t k = 0; k < count; k++) {
            const size_t t = e->step + k;
            const lam_ids *const text = &e->texts[s];
            tokens[(size_t)s * count + k] =
                t > 0 && t <= text->n ? lam_alphabet_token(e->c->alphabet, text->v[t - 1]) : start;
        }
}

static int hopeless(const encoding *e)
{
    return e->coder.full || e->coder.n > e->done + HOPE;
}

static lam_status encode_steps(encoding *e, const lam_watch *watch)
{
    lam_codec *const c = e->c;
    const size_t streams = (size_t)c->streams, most = streams < ROWS ? ROWS / streams : 1;
    int32_t *const tokens = malloc(streams * most * sizeof *tokens);
    lam_status status = tokens ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "codec: no memory for tokens");
    while (status == LAM_OK && e->step < e->steps && !hopeless(e)) {
        const size_t left = e->steps - e->step, count = left < most ? left : most;
        collect(e, tokens, count);
        status = lam_session_feed_logits(c->session, tokens, (int)count, on_logits, e);
        if (status == LAM_OK)
            status = lam_watch_tell(watch, (double)e->step / (double)e->steps);
    }
    free(tokens);
    return status;
}

static lam_status cut_texts(encoding *e, const uint8_t *raw, size_t n)
{
    lam_codec *const c = e->c;
    for (int s = 0; s < c->streams; s++) {
        const size_t from = lam_codec_cut(n, c->streams, s);
        const size_t to = lam_codec_cut(n, c->streams, s + 1);
        LAM_TRY(lam_alphabet_encode(c->alphabet, &e->texts[s], raw + from, to - from));
        e->steps = e->texts[s].n > e->steps ? e->texts[s].n : e->steps;
    }
    return LAM_OK;
}

lam_status lam_codec_encode(lam_codec *c, uint8_t *coded, size_t room, size_t *size,
                            const uint8_t *raw, size_t n, const lam_watch *watch)
{
    *size = 0;
    LAM_TRY(begin(c, n));
    LAM_TRY(lam_budget_ask("a block's symbols", n * sizeof(int32_t)));
    encoding e = {.c = c, .texts = calloc((size_t)c->streams, sizeof *e.texts)};
    lam_status status =
        e.texts ? cut_texts(&e, raw, n) : lam_fail(LAM_ERR_MEMORY, "codec: no memory");
    lam_range_start(&e.coder, coded, room);
    if (status == LAM_OK)
        status = encode_steps(&e, watch);
    if (status == LAM_OK && !hopeless(&e)) {
        lam_range_finish(&e.coder);
        *size = e.coder.full ? 0 : e.coder.n;
    }
    for (int s = 0; e.texts && s < c->streams; s++)
        free(e.texts[s].v);
    free(e.texts);
    return lam_engine_blame(c->engine, status);
}

/* ---- decoding ---- */

typedef struct decoding {
    lam_codec *c;
    uint8_t *raw;
    size_t *at, *end; /* [streams]: where the next byte of each goes, and where it ends */
    int32_t *tokens;  /* [streams]: read next */
    size_t left;      /* bytes to come */
    lam_range_decoder coder;
} decoding;

static lam_status take_symbol(decoding *d, int s, int *symbol)
{
    lam_codec *const c = d->c;
    if (c->mix)
        return lam_mix_take(c->mix, s, c->cum, symbol, &d->coder);
    uint32_t value;
    LAM_TRY(lam_range_peek(&d->coder, &value));
    *symbol = lam_cdf_find(c->cum, lam_alphabet_size(c->alphabet), value);
    lam_range_take(&d->coder, c->cum[*symbol], c->cum[*symbol + 1] - c->cum[*symbol]);
    return LAM_OK;
}

/* The next symbol of stream s. */
static lam_status decode_one(decoding *d, int s, const double *logits)
{
    lam_codec *const c = d->c;
    int symbol;
    size_t size;
    lam_alphabet_cum(c->alphabet, c->cum, logits);
    LAM_TRY(take_symbol(d, s, &symbol));
    const uint8_t *const text = lam_alphabet_text(c->alphabet, symbol, &size);
    if (size == 0 || size > d->end[s] - d->at[s])
        return lam_fail(LAM_ERR_FORMAT, "the coded bytes are damaged");
    memcpy(d->raw + d->at[s], text, size);
    d->at[s] += size;
    d->left -= size;
    d->tokens[s] = lam_alphabet_token(c->alphabet, symbol);
    lam_alphabet_note(c->alphabet, symbol);
    return LAM_OK;
}

static lam_status decode_steps(decoding *d, size_t n, const lam_watch *watch)
{
    lam_codec *const c = d->c;
    const size_t V = (size_t)c->engine->model->cfg.n_token;
    for (size_t step = 0; d->left > 0; step++) {
        LAM_TRY(lam_session_feed(c->session, d->tokens, 1));
        LAM_TRY(lam_session_logits(c->session, c->logits));
        for (int s = 0; s < c->streams; s++)
            if (d->at[s] < d->end[s])
                LAM_TRY(decode_one(d, s, c->logits + (size_t)s * V));
            else
                d->tokens[s] = lam_engine_start_token(c->engine);
        if (step % 16 == 0)
            LAM_TRY(lam_watch_tell(watch, 1.0 - (double)d->left / (double)n));
    }
    return lam_range_at_end(&d->coder) ? LAM_OK
                                       : lam_fail(LAM_ERR_FORMAT, "the coded bytes are damaged");
}

lam_status lam_codec_decode(lam_codec *c, uint8_t *raw, size_t n, const uint8_t *coded, size_t size,
                            const lam_watch *watch)
{
    LAM_TRY(begin(c, n));
    const size_t streams = (size_t)c->streams;
    decoding d = {.c = c,
                  .raw = raw,
                  .left = n,
                  .at = calloc(streams, sizeof *d.at),
                  .end = calloc(streams, sizeof *d.end),
                  .tokens = calloc(streams, sizeof *d.tokens)};
    lam_status status =
        d.at && d.end && d.tokens ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "codec: no memory");
    for (int s = 0; s < c->streams && status == LAM_OK; s++) {
        d.at[s] = lam_codec_cut(n, c->streams, s);
        d.end[s] = lam_codec_cut(n, c->streams, s + 1);
        d.tokens[s] = lam_engine_start_token(c->engine);
    }
    lam_range_open(&d.coder, coded, size);
    if (status == LAM_OK)
        status = decode_steps(&d, n, watch);
    free(d.at);
    free(d.end);
    free(d.tokens);
    return lam_engine_blame(c->engine, status);
}

/* ---- the fingerprint ---- */

enum { FIXED = 64, SHORT = 24 }; /* tokens; segments, two of which end within them */

static uint64_t hash_cum(uint64_t hash, const uint32_t *cum, int n)
{
    for (int i = 1; i <= n; i++) {
        const uint8_t bytes[4] = {(uint8_t)cum[i], (uint8_t)(cum[i] >> 8), (uint8_t)(cum[i] >> 16),
                                  (uint8_t)(cum[i] >> 24)};
        hash = XXH64(bytes, sizeof bytes, hash);
    }
    return hash;
}

lam_status lam_codec_fingerprint(lam_codec *c, uint64_t *hash)
{
    const int V = c->engine->model->cfg.n_token;
    const int segment = c->o.segment < SHORT ? c->o.segment : SHORT;
    lam_session *session = NULL;
    double *const logits = malloc((size_t)V * sizeof *logits);
    *hash = 0;
    lam_status status = logits ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "codec: no memory for logits");
    if (status == LAM_OK)
        status = open_session(c, &session, 1, FIXED);
    if (status == LAM_OK)
        status = lam_session_segment(session, segment);
    lam_alphabet_reset(c->alphabet);
    for (uint32_t i = 0; i < FIXED && status == LAM_OK; i++) {
        const int32_t token = (int32_t)(i * UINT32_C(2654435761) % (uint32_t)V);
        status = lam_session_feed(session, &token, 1);
        if (status == LAM_OK)
            status = lam_session_logits(session, logits);
        if (status == LAM_OK) {
            lam_alphabet_cum(c->alphabet, c->cum, logits);
            *hash = hash_cum(*hash, c->cum, lam_alphabet_size(c->alphabet));
        }
    }
    lam_session_free(session);
    free(logits);
    return lam_engine_blame(c->engine, status);
}
