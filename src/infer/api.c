/* api.c -- the public interface, include/lamemo.h: engines, text and scores.
 *
 * A thin layer: it checks the arguments of outside callers and gives every session its own device context, so that an
 * open engine is read-only. */
#include "infer/api_int.h"

#include "core/log.h"
#include "data/detok.h"
#include "infer/session_int.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- errors, messages, memory ---- */

const char *lamemo_version(void)
{
    return LAM_VERSION;
}

lamemo_status lamemo_abi_check(const lamemo_abi *mine)
{
    static const lamemo_abi ours = LAMEMO_ABI;
    if (mine->size != sizeof ours || mine->major != ours.major || mine->minor != ours.minor)
        return lam_api_status(
            lam_fail(LAM_ERR_UNSUPPORTED,
                     "the caller was made for lamemo %d.%d, this library is " LAM_VERSION
                     ": use those that belong together",
                     mine->major, mine->minor));
    const struct {
        const char *name;
        size_t theirs, ours;
    } sizes[] = {
#define SIZE(field) {"lamemo_" #field, mine->field, ours.field}
        SIZE(engine_options), SIZE(model_info), SIZE(session_options),  SIZE(sampling),
        SIZE(likely),         SIZE(piece),      SIZE(generate_options), SIZE(batch_options),
        SIZE(event),          SIZE(job),        SIZE(compress_options),
#undef SIZE
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].theirs != 0 && sizes[i].theirs != sizes[i].ours)
            return lam_api_status(
                lam_fail(LAM_ERR_UNSUPPORTED,
                         "%s has %zu bytes in the caller and %zu in this library " LAM_VERSION
                         ": use those that belong together",
                         sizes[i].name, sizes[i].theirs, sizes[i].ours));
    return LAMEMO_OK;
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

lam_status lam_api_not_negative(const char *name, int value)
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

static lam_status find_numerics(int *exact, const char *name)
{
    *exact = name && strcmp(name, "exact") == 0;
    return !name || *exact || strcmp(name, "fast") == 0
               ? LAM_OK
               : lam_fail(LAM_ERR_ARG, "numerics '%s': there are fast and exact", name);
}

static lam_status open_engine(lamemo_engine *e, const char *path, const lamemo_engine_options *o)
{
    const lam_ops *ops = NULL;
    const lam_watch watch = {o->progress, o->progress_user};
    lam_storage storage = {.watch = &watch};
    LAM_TRY(find_store(&storage.weights, o->weights, LAM_STORE_INT8));
    LAM_TRY(find_store(&storage.cache, o->cache, LAM_STORE_BF16));
    LAM_TRY(find_numerics(&e->dev_options.exact, o->numerics));
    LAM_TRY(
        lam_api_not_negative("threads", e->dev_options.threads)); /* the device knows how many */
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
    LAM_TRY(lam_api_not_negative("threads", threads));
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

lam_status lam_api_tokens(const lamemo_engine *e, const int32_t *tokens, size_t n)
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
    lam_status status = lam_api_tokens(e, tokens, n);
    if (status == LAM_OK)
        status = lam_detok_all(e->inner->vocab, text, size, tokens, n);
    return lam_api_status(status);
}

const char *lamemo_token_text(const lamemo_engine *e, int32_t token, size_t *size)
{
    *size = 0;
    return token >= 0 && token < lamemo_vocab_size(e)
               ? lam_vocab_symbol(e->inner->vocab, token, size)
               : NULL;
}

/* ---- scoring ---- */

/* Each token is the target of the one before it; the first follows the start token.  In whole segments, as the
 * scheduler reads (reading.c): cut otherwise, low-precision weights and caches round otherwise. */
static lam_status score_all(lam_session *session, int32_t before, const int32_t *tokens, size_t n,
                            double *logprobs, const lam_watch *watch)
{
    enum { ABOUT = 1 << 12 }; /* tokens between two calls of the watch */
    const size_t N = (size_t)session->longest, piece = N * (N < ABOUT ? ABOUT / N : 1);
    int32_t *inputs = malloc(piece * sizeof *inputs);
    lam_status status =
        inputs ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "score: no memory for %zu tokens", piece);
    for (size_t at = 0; at < n && status == LAM_OK; at += piece) {
        const size_t k = n - at < piece ? n - at : piece;
        inputs[0] = at == 0 ? before : tokens[at - 1];
        memcpy(inputs + 1, tokens + at, (k - 1) * sizeof *inputs);
        if (at > 0)
            status = lam_watch_tell(watch, (double)at / (double)n);
        if (status == LAM_OK)
            status = lam_session_feed_nll(session, inputs, tokens + at, (int)k, logprobs + at);
    }
    free(inputs);
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
