/* model_routes.c -- models and their tokens: /v1/models, /tokenize, /detokenize, /tokenizer_info. */
#include "serve/completion_request.h"
#include "serve/handlers.h"
#include "serve/server_int.h"

#include "data/detok.h"
#include "infer/emitter.h"
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

/* ---- models ---- */

static const char *kind_of(const lam_vocab *v)
{
    static const char *const kinds[] = {
        [LAM_BYTES] = "bytes", [LAM_CHARS] = "chars", [LAM_WORDS] = "words", [LAM_BPE] = "bpe"};
    return kinds[lam_vocab_kind(v)];
}

static void describe(lam_text *t, lam_worker *w)
{
    const lam_model *m = w->engine->model;
    const int alpha = m->mem->lacks_alpha && !m->mem->lacks_alpha(&m->cfg);
    size_t parameters = 0;
    for (int i = 0; i < m->params.n; i++)
        parameters += lam_param_count(&m->params.list[i]);
    lam_text_add(t, "{\"id\":");
    lam_text_json(t, w->model->name);
    lam_text_format(t, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"lamemo\",",
                    (long long)w->loaded);
    lam_text_format(t, "\"memory\":\"%s\",\"vocabulary\":\"%s\",\"vocabulary_size\":%d,",
                    m->mem->name, kind_of(w->engine->vocab), m->cfg.n_token);
    lam_text_format(t, "\"segment\":%d,\"memory_length\":%d,\"layers\":%d,\"heads\":%d,",
                    lam_scheduler_segment(w->scheduler), lam_scheduler_mem_len(w->scheduler),
                    m->cfg.n_layer, m->cfg.n_head);
    lam_text_format(t, "\"parameters\":%zu,\"hash\":\"%s\",\"has_alpha\":%s}", parameters, w->hash,
                    alpha ? "true" : "false");
}

void lam_get_models(lam_request *x)
{
    lam_server *s = x->server;
    lam_text *t = &x->reply.body;
    x->reply.status = 200;
    lam_text_add(t, "{\"object\":\"list\",\"data\":[");
    for (int i = 0; i < s->o.n_models; i++) {
        lam_text_add(t, i > 0 ? "," : "");
        describe(t, &s->workers[i]);
    }
    lam_text_add(t, "]}");
    lam_request_done(x);
}

/* Answers 404 for a model that the server does not have. */
static void no_model(lam_request *x, const char *name)
{
    lam_reply_error(&x->reply, 404, "model", "there is no model %s; GET /v1/models lists them",
                    name);
}

void lam_get_model(lam_request *x)
{
    lam_worker *const w = lam_server_worker(x->server, x->name);
    if (w) {
        x->reply.status = 200;
        describe(&x->reply.body, w);
    } else
        no_model(x, x->name);
    lam_request_done(x);
}

/* ---- tokens ---- */

/* The body and the model that it names; NULL: it was answered. */
static lam_worker *open_body(lam_request *x, json_t **body)
{
    char name[LAM_NAME_BYTES] = "";
    const char *param = NULL;
    lam_status status = lam_body_parse(body, x->body, x->size);
    if (status == LAM_OK)
        status = lam_member_text(name, sizeof name, *body, "model", &param);
    lam_worker *w = status == LAM_OK ? lam_server_worker(x->server, name) : NULL;
    if (status != LAM_OK)
        lam_reply_status(&x->reply, status, param);
    else if (!w)
        no_model(x, name);
    return w;
}

/* Clients ask so for the number of eos_token; in a longer text its letters are text. */
static int is_eos(const lam_vocab *v, const json_t *prompt)
{
    size_t size;
    const char *eos = lam_vocab_eos(v) < 0 ? NULL : lam_vocab_symbol(v, lam_vocab_eos(v), &size);
    return eos && size == json_string_length(prompt) &&
           memcmp(eos, json_string_value(prompt), size) == 0;
}

static lam_status tokenize(lam_request *x, const lam_worker *w, const json_t *body)
{
    const json_t *prompt = json_object_get(body, "prompt");
    lam_text *t = &x->reply.body;
    int32_t *ids = NULL;
    size_t n = 0;
    if (!json_is_string(prompt))
        return lam_fail(LAM_ERR_ARG, "prompt: must be a string");
    if (is_eos(w->engine->vocab, prompt)) {
        lam_text_format(t, "{\"tokens\":[%d],\"count\":1,\"max_model_len\":null}",
                        lam_vocab_eos(w->engine->vocab));
        return LAM_OK;
    }
    LAM_TRY(lam_vocab_encode(w->engine->vocab, &ids, &n, json_string_value(prompt),
                             json_string_length(prompt)));
    lam_text_add(t, "{\"tokens\":[");
    for (size_t i = 0; i < n; i++)
        lam_text_format(t, "%s%d", i > 0 ? "," : "", ids[i]);
    lam_text_format(t, "],\"count\":%zu,\"max_model_len\":null}", n);
    free(ids);
    return LAM_OK;
}

/* The text, with U+FFFD for bytes that are no characters. */
static lam_status detokenize(lam_request *x, const lam_worker *w, const json_t *body)
{
    const json_t *list = json_object_get(body, "tokens");
    lam_text text = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    lam_emitter *emitter;
    if (!json_is_array(list))
        return lam_fail(LAM_ERR_ARG, "tokens: must be a list of tokens");
    LAM_TRY(lam_member_tokens(&ids, &n, list));
    lam_status status = lam_emitter_create(&emitter, w->engine->vocab, NULL, 0);
    for (size_t i = 0; i <= n && status == LAM_OK; i++) {
        const char *piece;
        size_t size;
        bool stopped;
        if (i < n && ids[i] >= w->engine->model->cfg.n_token)
            status = lam_fail(LAM_ERR_ARG, "tokens: token %d is outside the vocabulary of %d",
                              ids[i], w->engine->model->cfg.n_token);
        else if (i < n)
            status = lam_emitter_push(emitter, ids[i], &piece, &size, &stopped);
        else
            status = lam_emitter_finish(emitter, &piece, &size);
        if (status == LAM_OK)
            lam_text_bytes(&text, piece, size);
    }
    if (status == LAM_OK) {
        lam_text_add(&x->reply.body, "{\"prompt\":");
        lam_text_json_bytes(&x->reply.body, text.data ? text.data : "", text.size);
        lam_text_add(&x->reply.body, "}");
    }
    lam_emitter_free(emitter);
    lam_text_free(&text);
    free(ids);
    return status;
}

static void answer(lam_request *x, const char *param,
                   lam_status (*make)(lam_request *x, const lam_worker *w, const json_t *body))
{
    json_t *body = NULL;
    lam_worker *w = open_body(x, &body);
    if (w) {
        const lam_status status = make(x, w, body);
        if (status == LAM_OK)
            x->reply.status = 200;
        else
            lam_reply_status(&x->reply, status, param);
    }
    json_decref(body);
    lam_request_done(x);
}

void lam_post_tokenize(lam_request *x)
{
    answer(x, "prompt", tokenize);
}

void lam_post_detokenize(lam_request *x)
{
    answer(x, "tokens", detokenize);
}

/* "name": a token's text, or null; "name_id": its number, or null. */
static void special(lam_text *t, const lam_vocab *v, const char *name, int32_t id)
{
    size_t size;
    lam_text_format(t, ",\"%s\":", name);
    if (id < 0) {
        lam_text_format(t, "null,\"%s_id\":null", name);
        return;
    }
    const char *text = lam_vocab_symbol(v, id, &size);
    lam_token_json(t, text, size);
    lam_text_format(t, ",\"%s_id\":%d", name, id);
}

void lam_get_tokenizer_info(lam_request *x)
{
    const lam_worker *w = lam_server_worker(x->server, "");
    const lam_vocab *v = w->engine->vocab;
    lam_text *t = &x->reply.body;
    x->reply.status = 200;
    lam_text_format(t, "{\"tokenizer_class\":\"lamemo\",\"vocabulary\":\"%s\",\"vocab_size\":%d",
                    kind_of(v), lam_vocab_size(v));
    special(t, v, "eos_token", lam_vocab_eos(v));
    special(t, v, "bos_token", lam_engine_start_token(w->engine));
    special(t, v, "pad_token", -1);
    special(t, v, "unk_token", lam_vocab_unk(v));
    lam_text_format(t, ",\"start_token\":%d,\"chat_template\":null}",
                    lam_engine_start_token(w->engine));
    lam_request_done(x);
}
