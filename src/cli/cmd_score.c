/* cmd_score.c -- `lamemo score`: how likely a model finds a text, token by token. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/model_option.h"
#include "cli/print_json.h"
#include "cli/prompt.h"
#include "cli/stop.h"
#include "cli/symbol.h"
#include "infer/engine.h"
#include "infer/session.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct score_options {
    const char *model;
    int segment, mem_len;
    lam_device_options device;
    lam_storage_options storage;
    bool tokens, json;
} score_options;

static const lam_option options[] = {
    LAM_MODEL_OPTION(score_options, model),
    {"tgt-len", 0, "N", LAM_OPT_INT, offsetof(score_options, segment), .min = 1, .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Segment length."},
    {"mem-len", 0, "M", LAM_OPT_INT, offsetof(score_options, mem_len), .min = 1, .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Memory length."},
    {"tokens", 0, NULL, LAM_OPT_FLAG, offsetof(score_options, tokens),
     .help = "Print every token with its log-probability."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(score_options, json),
     .help = "Print one JSON object."},
    LAM_STORAGE_OPTIONS(score_options, storage, "the folder's"),
    LAM_DEVICE_OPTIONS(score_options, device, "auto"),
    {0},
};

/* A text as the model saw it: ids[0] is the start token, logprobs[i] belongs to ids[i + 1]. */
typedef struct scored {
    int32_t *ids;
    size_t n; /* tokens of the text */
    double *logprobs;
    double total;
} scored;

static double per_token(const scored *s)
{
    return -s->total / (double)s->n;
}

enum { PIECE = 4096 }; /* tokens between two looks at the signals */

static lam_status score_all(const lam_engine *e, const score_options *o, scored *s)
{
    lam_session *session = NULL;
    LAM_TRY(lam_model_remembers(e->model, o->mem_len));
    LAM_TRY(lam_session_create(&session, e->model,
                               &(lam_session_options){.longest = o->segment,
                                                      .mem_len = o->mem_len,
                                                      .most = (int64_t)s->n}));
    lam_status status = LAM_OK;
    for (size_t at = 0; at < s->n && status == LAM_OK; at += PIECE) {
        const size_t k = s->n - at < PIECE ? s->n - at : PIECE;
        status = lam_session_score(session, s->ids + at, s->ids + at + 1, (int)k, s->logprobs + at);
        if (status == LAM_OK && lam_stop_signal())
            status = lam_fail(LAM_ERR_INTERRUPTED, "stopped after %zu tokens", at + k);
    }
    lam_session_free(session);
    for (size_t i = 0; i < s->n; i++) {
        s->logprobs[i] = -s->logprobs[i];
        s->total += s->logprobs[i];
    }
    LAM_TRY(status);
    /* Finite log-probabilities may be large enough that their perplexity is not. */
    return isfinite(exp(per_token(s)))
               ? LAM_OK
               : lam_fail(LAM_ERR_NUMERIC, "the perplexity, exp(%g), is not finite", per_token(s));
}

static lam_status encode(const lam_engine *e, scored *s, const char *text, size_t size)
{
    int32_t *ids = NULL;
    LAM_TRY(lam_vocab_encode(e->vocab, &ids, &s->n, text, size));
    s->ids = malloc((s->n + 1) * sizeof *s->ids);
    s->logprobs = calloc(s->n + 1, sizeof *s->logprobs);
    if (!s->ids || !s->logprobs) {
        free(ids);
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu tokens", s->n);
    }
    s->ids[0] = lam_engine_start_token(e);
    for (size_t i = 0; i < s->n; i++)
        s->ids[i + 1] = ids[i];
    free(ids);
    if (s->n == 0)
        return lam_fail(LAM_ERR_FORMAT, "the text is empty");
    return LAM_OK;
}

static void print_text(const lam_engine *e, const score_options *o, const scored *s)
{
    const double nats = per_token(s);
    for (size_t i = 0; i < s->n && o->tokens; i++) {
        printf("%10.5f  ", s->logprobs[i]);
        lam_symbol_print(e->vocab, s->ids[i + 1]);
        putchar('\n');
    }
    printf("tokens %zu, log-probability %.4f, per token %.5f nats = %.5f bits, perplexity %.4f\n",
           s->n, s->total, nats, nats / log(2.0), exp(nats));
}

static lam_status print_json(const lam_engine *e, const score_options *o, const scored *s)
{
    const double nats = per_token(s);
    json_t *root = json_pack("{s:I, s:f, s:f, s:f, s:f}", "count", (json_int_t)s->n, "logprob",
                             s->total, "nats_per_token", nats, "bits_per_token", nats / log(2.0),
                             "perplexity", exp(nats));
    if (root && o->tokens) {
        json_t *ids = json_array(), *symbols = json_array(), *logprobs = json_array();
        for (size_t i = 0; i < s->n; i++) {
            json_array_append_new(ids, json_integer(s->ids[i + 1]));
            json_array_append_new(symbols, lam_symbol_json(e->vocab, s->ids[i + 1]));
            json_array_append_new(logprobs, json_real(s->logprobs[i]));
        }
        json_object_set_new(root, "tokens", ids);
        json_object_set_new(root, "symbols", symbols);
        json_object_set_new(root, "token_logprobs", logprobs);
    }
    return lam_print_json(root, JSON_COMPACT);
}

static lam_status run(const lam_args *args)
{
    const score_options *o = args->options;
    const lam_storage storage = lam_storage_of(&o->storage);
    lam_dev *dev = NULL;
    lam_engine *engine = NULL;
    scored s = {0};
    char *text = NULL;
    size_t size = 0;
    LAM_TRY(lam_model_required(o->model));
    LAM_TRY(lam_prompt_read(&text, &size, args->operands[0]));
    lam_status status = lam_device_open(&dev, &o->device);
    if (status == LAM_OK)
        status = lam_engine_open(&engine, o->model, dev, &storage);
    if (status == LAM_OK)
        status = lam_prompt_blame(encode(engine, &s, text, size), args->operands[0]);
    if (status == LAM_OK)
        status = lam_engine_blame(engine, score_all(engine, o, &s));
    if (status == LAM_OK && o->json)
        status = print_json(engine, o, &s);
    else if (status == LAM_OK)
        print_text(engine, o, &s);
    lam_engine_close(engine);
    if (dev)
        dev->ops->close(dev);
    free(text);
    free(s.ids);
    free(s.logprobs);
    return status;
}

const lam_command lam_command_score = {
    .name = "score",
    .summary = "print how likely a model finds a text",
    .operands = "TEXT",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Prints the log-probability of a text under a model, in total and per token. TEXT is the "
        "text "
        "itself, @FILE, or - for standard input. The first token follows the vocabulary's start "
        "(<eos>, or a new line).",
    .options = options,
    .options_size = sizeof(score_options),
    .examples = "lamemo score --model runs/tiny \"In the beginning God created\"\n"
                "lamemo score -m runs/tiny @story.txt --tokens",
    .run = run,
    .reads = true,
};
