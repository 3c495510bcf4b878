/* api.c -- the public interface, include/lamemo.h: engines, text, and whole jobs.
 *
 * A thin layer: it checks what a caller from outside may get wrong, and gives every session a device
 * context of its own, so that the engine is only read once it is open. */
#include "infer/api_int.h"

#include "core/log.h"
#include "data/detok.h"
#include "infer/generate.h"
#include "infer/session.h"

#include <stdlib.h>
#include <string.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(LAM_OK, LAMEMO_OK);
SAME(LAM_ERR_ARG, LAMEMO_ERR_ARG);
SAME(LAM_ERR_IO, LAMEMO_ERR_IO);
SAME(LAM_ERR_FORMAT, LAMEMO_ERR_FORMAT);
SAME(LAM_ERR_MEMORY, LAMEMO_ERR_MEMORY);
SAME(LAM_ERR_NUMERIC, LAMEMO_ERR_NUMERIC);
SAME(LAM_ERR_UNSUPPORTED, LAMEMO_ERR_UNSUPPORTED);
SAME(LAM_ERR_INTERRUPTED, LAMEMO_ERR_INTERRUPTED);
SAME(LAM_ERR_DEVICE, LAMEMO_ERR_DEVICE);
SAME(LAM_LOG_ERROR, LAMEMO_LOG_ERROR);
SAME(LAM_LOG_DEBUG, LAMEMO_LOG_DEBUG);
SAME(LAM_FINISH_LENGTH, LAMEMO_FINISH_LENGTH);
SAME(LAM_FINISH_STOP, LAMEMO_FINISH_STOP);
SAME(LAM_FINISH_BREAK, LAMEMO_FINISH_BREAK);

/* ---- errors, messages, memory ---- */

const char *lamemo_version(void)
{
    return LAM_VERSION;
}

const char *lamemo_error(void)
{
    return lam_error();
}

const char *lamemo_status_name(lamemo_status status)
{
    return lam_status_name((lam_status)status);
}

static struct {
    lamemo_log_sink *sink;
    void *user;
} listener;

static void pass_on(lam_log_level level, const char *line, void *user)
{
    (void)user;
    listener.sink((lamemo_log_level)level, line, listener.user);
}

void lamemo_log_to(lamemo_log_sink *sink, void *user, lamemo_log_level level)
{
    listener.sink = sink;
    listener.user = user;
    lam_log_set_sink(sink ? pass_on : NULL, NULL);
    lam_log_set_level((lam_log_level)level);
}

void lamemo_free(void *array)
{
    free(array);
}

lam_status lam_api_size(const char *name, int value)
{
    if (value >= 0 && value <= LAM_MAX_LEN)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "%s is %d, must be 0 to %d", name, value, LAM_MAX_LEN);
}

static lam_status not_negative(const char *name, int value)
{
    return value >= 0 ? LAM_OK : lam_fail(LAM_ERR_ARG, "%s is %d, must be 0 or more", name, value);
}

/* ---- the engine ---- */

static lam_status find_store(lam_store *out, const char *name, lam_store last)
{
    static const char *const names[] = {"auto", "float32", "bf16", "int8"};
    for (int i = 0; i <= (int)last; i++)
        if (!name || strcmp(name, names[i]) == 0) {
            *out = (lam_store)i;
            return LAM_OK;
        }
    return lam_fail(LAM_ERR_ARG, "'%s': there are auto, float32, bf16%s", name,
                    last == LAM_STORE_INT8 ? " and int8" : "");
}

static lam_status open_engine(lamemo_engine *e, const char *path, const lamemo_engine_options *o)
{
    const lam_ops *ops = NULL;
    const lam_watch watch = {o->progress, o->progress_user};
    lam_storage storage = {.watch = &watch};
    LAM_TRY(find_store(&storage.weights, o->weights, LAM_STORE_INT8));
    LAM_TRY(find_store(&storage.cache, o->cache, LAM_STORE_BF16));
    LAM_TRY(not_negative("threads", e->dev_options.threads)); /* the device knows how many */
    LAM_TRY(lam_ops_find(&ops, o->device ? o->device : "auto"));
    LAM_TRY(ops->open(&e->dev, &e->dev_options));
    return lam_engine_open(&e->inner, path, e->dev, &storage);
}

lamemo_status lamemo_engine_open(const char *path, const lamemo_engine_options *options,
                                 lamemo_engine **engine)
{
    const lamemo_engine_options o = options ? *options : (lamemo_engine_options){0};
    *engine = NULL;
    lamemo_engine *e = calloc(1, sizeof *e);
    if (!e)
        return lam_api_status(lam_fail(LAM_ERR_MEMORY, "%s: no memory", path));
    e->dev_options = (lam_dev_options){
        .threads = o.threads, .full_prec = o.full_precision != 0, .max_memory = o.max_memory};
    const lam_status status = open_engine(e, path, &o);
    if (status == LAM_OK)
        *engine = e;
    else
        lamemo_engine_close(e);
    return lam_api_status(status);
}

void lamemo_engine_close(lamemo_engine *e)
{
    if (!e)
        return;
    lam_engine_close(e->inner);
    if (e->dev)
        e->dev->ops->close(e->dev);
    free(e);
}

lam_status lam_api_context(lam_dev **out, const lamemo_engine *e, int threads)
{
    lam_dev_options options = e->dev_options;
    *out = NULL;
    LAM_TRY(not_negative("threads", threads));
    if (threads > 0)
        options.threads = threads;
    return e->dev->ops->open(out, &options);
}

int lamemo_vocab_size(const lamemo_engine *e)
{
    return e->inner->model->cfg.n_token;
}

int lamemo_segment_length(const lamemo_engine *e)
{
    return e->inner->model->cfg.tgt_len;
}

int lamemo_memory_length(const lamemo_engine *e)
{
    return e->inner->model->cfg.mem_len;
}

void lamemo_engine_info(const lamemo_engine *e, lamemo_model_info *info)
{
    const lam_model *model = e->inner->model;
    *info = (lamemo_model_info){.memory = model->mem->name,
                                .vocabulary = lam_text_kind_name(lam_vocab_kind(e->inner->vocab)),
                                .device = e->dev->ops->name,
                                .parameters = (int64_t)lam_model_count(model),
                                .layers = model->cfg.n_layer,
                                .width = model->cfg.d_model,
                                .heads = model->cfg.n_head};
}

int32_t lamemo_start_token(const lamemo_engine *e)
{
    return lam_engine_start_token(e->inner);
}

int32_t lamemo_eos_token(const lamemo_engine *e)
{
    return lam_vocab_eos(e->inner->vocab);
}

/* ---- text ---- */

lamemo_status lamemo_encode(const lamemo_engine *e, const char *text, size_t size, int32_t **tokens,
                            size_t *n)
{
    return lam_api_status(lam_vocab_encode(e->inner->vocab, tokens, n, text, size));
}

static lam_status check_tokens(const lamemo_engine *e, const int32_t *tokens, size_t n)
{
    const int size = lamemo_vocab_size(e);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= size)
            return lam_fail(LAM_ERR_ARG, "token %d: the vocabulary has %d types", tokens[i], size);
    return LAM_OK;
}

lamemo_status lamemo_decode(const lamemo_engine *e, const int32_t *tokens, size_t n, char **text,
                            size_t *size)
{
    *text = NULL;
    *size = 0;
    lam_status status = check_tokens(e, tokens, n);
    if (status == LAM_OK)
        status = lam_detok_all(e->inner->vocab, text, size, tokens, n);
    return lam_api_status(status);
}

/* ---- whole jobs ---- */

typedef struct listening {
    lamemo_piece_sink *sink;
    void *user;
} listening;

static int hand_over(void *user, const lam_generated *g)
{
    const listening *l = user;
    const lamemo_piece piece = {.sample = g->sample,
                                .token = g->token,
                                .logprob = g->logprob,
                                .text = g->text,
                                .size = g->size,
                                .last = g->last,
                                .finish = (lamemo_finish)g->finish};
    return l->sink(l->user, &piece);
}

static lam_status check_request(const lamemo_engine *e, const lamemo_generate_options *o,
                                const int32_t *prompt, size_t n)
{
    LAM_TRY(not_negative("tokens", o->tokens));
    LAM_TRY(lam_api_size("samples", o->samples));
    LAM_TRY(lam_api_size("segment", o->segment));
    LAM_TRY(lam_api_size("refresh", o->refresh));
    LAM_TRY(lam_api_size("memory", o->memory));
    LAM_TRY(not_negative("n_stops", o->n_stops));
    return check_tokens(e, prompt, n);
}

lamemo_status lamemo_generate(lamemo_engine *e, const int32_t *prompt, size_t n,
                              const lamemo_generate_options *options, lamemo_piece_sink *sink,
                              void *user)
{
    const lamemo_generate_options o = options ? *options : (lamemo_generate_options){0};
    listening to = {sink, user};
    lam_generate_options wanted = {.samples = o.samples > 0 ? o.samples : 1,
                                   .tokens = o.tokens > 0 ? o.tokens : 256,
                                   .prompt_segment = o.segment,
                                   .refresh = o.refresh,
                                   .mem_len = o.memory,
                                   .sampler = lam_api_sampler(o.sampling),
                                   .stops = o.stops,
                                   .n_stops = o.n_stops,
                                   .sink = hand_over,
                                   .user = &to};
    lam_status status = check_request(e, &o, prompt, n);
    if (status == LAM_OK)
        status = lam_api_context(&wanted.dev, e, o.threads);
    if (status == LAM_OK)
        status = lam_engine_blame(e->inner, lam_generate(e->inner, prompt, n, &wanted));
    if (wanted.dev)
        wanted.dev->ops->close(wanted.dev);
    return lam_api_status(status);
}

/* Each token is the target of the one before it; the first follows the start token. */
static lam_status score_all(lam_session *session, int32_t before, const int32_t *tokens, size_t n,
                            double *logprobs, const lam_watch *watch)
{
    enum { PIECE = 1 << 12 }; /* tokens between two calls of the watch */
    lam_status status = n > 0 ? lam_session_score(session, &before, tokens, 1, logprobs) : LAM_OK;
    for (size_t at = 1; at < n && status == LAM_OK; at += PIECE) {
        const size_t k = n - at < PIECE ? n - at : PIECE;
        status = lam_watch_tell(watch, (double)at / (double)n);
        if (status == LAM_OK)
            status =
                lam_session_score(session, tokens + at - 1, tokens + at, (int)k, logprobs + at);
    }
    for (size_t i = 0; i < n && status == LAM_OK; i++)
        logprobs[i] = -logprobs[i];
    return status;
}

lamemo_status lamemo_score(lamemo_engine *e, const int32_t *tokens, size_t n,
                           const lamemo_session_options *options, double *logprobs)
{
    const lamemo_session_options o = options ? *options : (lamemo_session_options){0};
    lam_session_options wanted = {
        .streams = 1, .longest = o.longest, .mem_len = o.memory, .most = (int64_t)n};
    const lam_watch watch = {o.progress, o.progress_user};
    lam_session *session = NULL;
    lam_status status = LAM_OK;
    if (o.streams < 0 || o.streams > 1)
        status = lam_fail(LAM_ERR_ARG, "score: %d streams, must be 1", o.streams);
    if (status == LAM_OK)
        status = lam_api_size("longest", o.longest);
    if (status == LAM_OK)
        status = lam_api_size("memory", o.memory);
    if (status == LAM_OK)
        status = lam_api_context(&wanted.dev, e, o.threads);
    if (status == LAM_OK)
        status = lam_session_create(&session, e->inner->model, &wanted);
    if (status == LAM_OK)
        status = lam_engine_blame(
            e->inner, score_all(session, lamemo_start_token(e), tokens, n, logprobs, &watch));
    lam_session_free(session);
    if (wanted.dev)
        wanted.dev->ops->close(wanted.dev);
    return lam_api_status(status);
}
