/* complete.c -- POST /v1/completions: turns the body into jobs that a worker can start. */
#include "serve/completion.h"

#include "infer/emitter.h"
#include "serve/handlers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- create and free ---- */

static void release(void *user)
{
    lam_completion *c = user;
    for (int i = 0; c->prompts && i < c->r.n_prompts; i++) {
        free(c->prompts[i].tokens);
        free(c->prompts[i].offsets);
        lam_text_free(&c->prompts[i].echo);
    }
    for (int i = 0; c->choices && i < c->n; i++) {
        lam_timeline_free(c->choices[i].text);
        lam_text_free(&c->choices[i].events);
        lam_text_free(&c->choices[i].taken);
        free(c->choices[i].reason);
    }
    free(c->prompts);
    free(c->choices);
    lam_completion_request_free(&c->r);
    lam_text_free(&c->head);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static lam_status create(lam_completion **out, lam_request *x, lam_completion_request *r)
{
    lam_completion *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) {
        lam_completion_request_free(r);
        return lam_fail(LAM_ERR_MEMORY, "no memory for a completion");
    }
    c->x = x;
    c->r = *r;
    *r = (lam_completion_request){0};
    c->created = time(NULL);
    c->n = c->r.n_prompts * c->r.n;
    pthread_mutex_init(&c->lock, NULL);
    lam_request_keep(x, c, release, NULL); /* nothing to cancel yet */
    c->prompts = calloc((size_t)c->r.n_prompts, sizeof *c->prompts);
    c->choices = calloc((size_t)c->n, sizeof *c->choices);
    if (!c->prompts || !c->choices)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d choices", c->n);
    c->seed = c->r.seed;
    if (!c->r.seeded && getrandom(&c->seed, sizeof c->seed, 0) != (ssize_t)sizeof c->seed)
        return lam_fail(LAM_ERR_IO, "the system has no random numbers");
    return lam_id_draw(c->id);
}

/* ---- prompts ---- */

static int count_characters(const char *text, size_t size)
{
    int n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* The prompt as its tokens say it. */
static lam_status echo(lam_read_prompt *p, const lam_vocab *vocab)
{
    lam_emitter *emitter;
    LAM_TRY(lam_emitter_create(&emitter, vocab, NULL, 0));
    p->offsets = malloc((p->n + 1) * sizeof *p->offsets);
    lam_status status =
        p->offsets ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory for %zu offsets", p->n);
    for (size_t i = 0; i <= p->n && status == LAM_OK; i++) {
        const char *piece;
        size_t size;
        bool stopped;
        p->offsets[i] = p->chars;
        status = i < p->n ? lam_emitter_push(emitter, p->tokens[i], &piece, &size, &stopped)
                          : lam_emitter_finish(emitter, &piece, &size);
        if (status == LAM_OK) {
            lam_text_bytes(&p->echo, piece, size);
            p->chars += count_characters(piece, size);
        }
    }
    lam_emitter_free(emitter);
    return status;
}

/* What the request calls it. */
static const char *prompt_name(const lam_completion *c)
{
    return c->form == LAM_AS_COMPLETION ? "prompt" : c->r.prompts[0].text ? "text" : "tokens";
}

static lam_status encode(lam_completion *c, int i)
{
    const lam_engine *engine = c->w->engine;
    lam_prompt *from = &c->r.prompts[i];
    lam_read_prompt *p = &c->prompts[i];
    if (from->text) {
        LAM_TRY(lam_vocab_encode(engine->vocab, &p->tokens, &p->n, from->text, from->size));
    } else {
        p->tokens = from->tokens;
        p->n = from->n;
        from->tokens = NULL;
    }
    for (size_t k = 0; k < p->n; k++)
        if (p->tokens[k] >= engine->model->cfg.n_token)
            return lam_fail(LAM_ERR_ARG, "%s: token %d is outside the vocabulary of %d",
                            prompt_name(c), p->tokens[k], engine->model->cfg.n_token);
    c->tokens += p->n * (size_t)c->r.n;
    /* a feed shows no text, but its log-probabilities name each token's offset */
    const int shown = c->form == LAM_AS_COMPLETION || c->r.logprobs >= 0;
    return c->r.echo && shown ? echo(p, engine->vocab) : LAM_OK;
}

static lam_status check_size(const lam_completion *c)
{
    if (c->tokens > LAM_PROMPT_TOKENS)
        return lam_fail(LAM_ERR_ARG, "%s: %zu tokens in all choices, at most %zu", prompt_name(c),
                        c->tokens, LAM_PROMPT_TOKENS);
    const size_t each = (size_t)c->r.logprobs + 1;
    const size_t told =
        c->r.logprobs < 0
            ? 0
            : each * (c->tokens * (size_t)c->r.echo + (size_t)c->n * (size_t)c->r.max_tokens);
    return told <= LAM_LOGPROB_ENTRIES
               ? LAM_OK
               : lam_fail(LAM_ERR_ARG,
                          "logprobs: the response would have %zu log-probabilities, at most %zu",
                          told, LAM_LOGPROB_ENTRIES);
}

/* ---- the request ---- */

/* The model: the session's, or the one that is named.  NULL: x has its answer. */
static lam_worker *find_worker(lam_request *x, const lam_completion_request *r)
{
    lam_worker *w = r->session[0] != '\0'
                        ? lam_shelf_whose(&x->server->shelf, LAM_SESSION, r->session)
                        : lam_server_worker(x->server, r->model);
    if (!w && r->session[0] != '\0')
        lam_reply_error(&x->reply, 404, "session",
                        "there is no session %s; GET /v1/sessions lists them", r->session);
    else if (!w)
        lam_reply_error(&x->reply, 404, "model", "there is no model %s; GET /v1/models lists them",
                        r->model);
    else if (!lam_worker_is(w, r->model)) {
        lam_reply_error(&x->reply, 400, "model", "model: session %s is one of %s, not of %s",
                        r->session, w->model->name, r->model);
        return NULL;
    }
    return w;
}

/* Non-zero: the jobs are let in. */
static int prepare(lam_completion *c)
{
    lam_request *x = c->x;
    lam_status status = LAM_OK;
    for (int i = 0; i < c->r.n_prompts && status == LAM_OK; i++)
        status = encode(c, i);
    if (status == LAM_OK)
        status = check_size(c);
    if (status != LAM_OK) {
        lam_reply_status(&x->reply, status, prompt_name(c));
        return 0;
    }
    for (int i = 0; i < c->n; i++)
        c->choices[i] = (lam_choice){.c = c, .index = i, .prompt = &c->prompts[i / c->r.n]};
    if (lam_worker_let_in(c->w, c->n, c->tokens))
        return 1;
    lam_reply_error(&x->reply, 429, NULL, "the queue is full; try again later");
    return 0;
}

void lam_completion_begin(lam_request *x, lam_completion_request *r, lam_completion_form form)
{
    lam_completion *c;
    lam_worker *w = find_worker(x, r);
    if (!w) {
        lam_completion_request_free(r);
        lam_request_done(x);
        return;
    }
    const lam_status status = create(&c, x, r);
    if (status != LAM_OK) {
        lam_reply_status(&x->reply, status, NULL);
        lam_request_done(x);
        return;
    }
    c->w = w;
    c->form = form;
    if (!prepare(c)) {
        lam_request_done(x);
        return;
    }
    x->fill = lam_completion_fill;
    lam_request_hold(x); /* until the last job has ended */
    lam_request_keep(x, c, release,
                     lam_completion_cancel); /* it is whole: any thread may look at it */
    lam_calls_put(&w->calls, &c->call, lam_completion_start, c);
}

void lam_post_completions(lam_request *x)
{
    lam_completion_request r;
    const char *param;
    const lam_status status = lam_completion_read(&r, &param, x->body, x->size);
    if (status != LAM_OK) {
        lam_reply_status(&x->reply, status, param);
        lam_request_done(x);
        return;
    }
    lam_completion_begin(x, &r, LAM_AS_COMPLETION);
}
