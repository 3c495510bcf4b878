/* completion_json.c -- completions as JSON: the whole response, or the events of a stream. */
#include "serve/completion.h"

#include <math.h>
#include <string.h>

/* ---- lists of log-probabilities ---- */

typedef struct lists {
    lam_text tokens, logprobs, top, offsets, ids;
    int n;
} lists;

static void token_text(lam_text *t, const lam_completion *c, int32_t token)
{
    size_t size;
    const char *text = lam_vocab_symbol(c->w->engine->vocab, token, &size);
    lam_token_json(t, text, size);
}

/* The most likely tokens, and the token itself where it is not among them. */
static void add_top(lam_text *t, const lam_completion *c, const lam_record *r,
                    const lam_likely *top)
{
    int there = 0;
    lam_text_add(t, "{");
    for (uint32_t i = 0; i < r->n_top; i++) {
        lam_text_add(t, i > 0 ? "," : "");
        token_text(t, c, top[i].token);
        lam_text_add(t, ":");
        lam_text_number(t, top[i].logprob, 0, "null");
        there |= top[i].token == r->token;
    }
    if (!there) {
        lam_text_add(t, r->n_top > 0 ? "," : "");
        token_text(t, c, r->token);
        lam_text_add(t, ":");
        lam_text_number(t, r->logprob, 0, "null");
    }
    lam_text_add(t, "}");
}

static void add_token(lists *l, const lam_completion *c, const lam_record *r, const lam_likely *top,
                      int offset)
{
    const char *comma = l->n++ > 0 ? "," : "";
    lam_text_add(&l->tokens, comma);
    token_text(&l->tokens, c, r->token);
    lam_text_add(&l->logprobs, comma);
    lam_text_number(&l->logprobs, r->logprob, 0, "null");
    lam_text_add(&l->top, comma);
    if (isnan(r->logprob))
        lam_text_add(&l->top, "null");
    else
        add_top(&l->top, c, r, top);
    lam_text_format(&l->offsets, "%s%d", comma, offset);
    lam_text_format(&l->ids, "%s%d", comma, r->token);
}

static void join(lam_text *to, const char *name, lam_text *from)
{
    lam_text_format(to, "\"%s\":[", name);
    lam_text_bytes(to, from->data, from->size);
    lam_text_add(to, "]");
    to->failed |= from->failed;
    lam_text_free(from);
}

static void put_lists(lam_text *t, lists *l, const lam_completion *c)
{
    if (c->r.logprobs < 0) {
        lam_text_add(t, "null");
        return;
    }
    lam_text_add(t, "{");
    join(t, "tokens", &l->tokens);
    lam_text_add(t, ",");
    join(t, "token_logprobs", &l->logprobs);
    lam_text_add(t, ",");
    join(t, "top_logprobs", &l->top);
    lam_text_add(t, ",");
    join(t, "text_offset", &l->offsets);
    lam_text_add(t, ",");
    join(t, "token_ids", &l->ids);
    lam_text_add(t, "}");
}

/* ---- one choice ---- */

static int count_characters(const char *text, size_t size)
{
    int n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* Reads events into the choice's text and lists. */
static void read_events(lam_choice *ch, const lam_text *events, lam_text *text, lists *l)
{
    const lam_completion *c = ch->c;
    if (!ch->begun && c->r.echo) {
        lam_text_bytes(text, ch->prompt->echo.data, ch->prompt->echo.size);
        ch->chars = ch->prompt->chars;
    }
    ch->begun = 1;
    for (size_t at = 0; at < events->size;) {
        lam_record r;
        memcpy(&r, events->data + at, sizeof r);
        const lam_likely *top = (const void *)(events->data + at + sizeof r);
        const char *piece = (const char *)(top + r.n_top);
        at = (size_t)(piece - events->data) + (r.size + 7) / 8 * 8;
        if (r.kind == LAM_JOB_READ)
            add_token(l, c, &r, top, ch->prompt->offsets ? ch->prompt->offsets[ch->read] : 0);
        else if (r.kind == LAM_JOB_DRAWN && c->r.logprobs >= 0)
            add_token(l, c, &r, top, ch->chars);
        ch->read += r.kind == LAM_JOB_READ;
        ch->drawn += r.kind == LAM_JOB_DRAWN;
        ch->chars += count_characters(piece, r.size);
        lam_text_bytes(text, piece, r.size);
    }
}

static const char *finish_of(const lam_choice *ch)
{
    return ch->finish == LAM_FINISH_STOP ? "\"stop\"" : "\"length\"";
}

/* The choice's object of what `events` say; `last` closes it. */
static void put_choice(lam_text *t, lam_choice *ch, const lam_text *events, int last)
{
    lam_text text = {0};
    lists l = {0};
    read_events(ch, events, &text, &l);
    lam_text_format(t, "{\"index\":%d,\"text\":", ch->index);
    lam_text_json_bytes(t, text.data ? text.data : "", text.size);
    lam_text_add(t, ",\"logprobs\":");
    put_lists(t, &l, ch->c);
    lam_text_format(t, ",\"finish_reason\":%s}", last ? finish_of(ch) : "null");
    t->failed |= text.failed || events->failed;
    lam_text_free(&text);
}

/* ---- the object around the choices ---- */

/* The same in all events of a stream, so it is written once. */
static void open_object(lam_text *t, lam_completion *c)
{
    lam_text *head = &c->head;
    if (head->size == 0) {
        lam_text_format(head,
                        "{\"id\":\"cmpl-%s\",\"object\":\"text_completion\",\"created\":%lld,"
                        "\"model\":",
                        c->id, (long long)c->created);
        lam_text_json(head, c->w->model->name);
        lam_text_add(head, ",\"choices\":[");
    }
    lam_text_bytes(t, head->data, head->size);
    t->failed |= head->failed;
}

/* Once all choices have ended. */
static void put_usage(lam_text *t, const lam_completion *c)
{
    size_t prompt = 0, cached = 0, drawn = 0;
    for (int i = 0; i < c->n; i++) {
        prompt += i % c->r.n == 0 ? c->choices[i].prompt->n : 0;
        cached += c->choices[i].cached;
        drawn += (size_t)c->choices[i].drawn;
    }
    lam_text_format(t,
                    ",\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,"
                    "\"total_tokens\":%zu,\"prompt_tokens_details\":{\"cached_tokens\":%zu}}",
                    prompt, drawn, prompt + drawn, cached);
}

static void close_object(lam_text *t, const lam_completion *c, int usage)
{
    lam_text_add(t, "]");
    if (usage)
        put_usage(t, c);
    if (c->session[0] != '\0')
        lam_text_format(t, ",\"session\":\"%s\"", c->session);
    lam_text_add(t, "}");
}

/* ---- the whole response ---- */

static void put_feed(lam_text *t, lam_completion *c)
{
    lam_choice *ch = &c->choices[0];
    lam_text text = {0};
    lists l = {0};
    read_events(ch, &ch->events, &text, &l);
    lam_text_format(t, "{\"object\":\"session.feed\",\"session\":\"%s\",\"tokens\":%zu,",
                    c->session, ch->prompt->n);
    lam_text_format(t, "\"length\":%lld,\"logprobs\":", c->length);
    put_lists(t, &l, c);
    lam_text_add(t, "}");
    lam_text_free(&text);
}

void lam_completion_render(void *arg)
{
    lam_request *x = arg;
    lam_completion *c = x->user;
    lam_text *t = &x->reply.body;
    const lam_choice *failed = NULL;
    for (int i = 0; i < c->n && !failed; i++)
        failed = c->choices[i].status != LAM_OK ? &c->choices[i] : NULL;
    x->reply.status = 200;
    if (failed) {
        lam_reply_error(&x->reply, 500, NULL, "%s", failed->reason ? failed->reason : "failed");
    } else if (c->form == LAM_AS_FEED) {
        put_feed(t, c);
    } else {
        open_object(t, c);
        for (int i = 0; i < c->n; i++) {
            lam_text_add(t, i > 0 ? "," : "");
            put_choice(t, &c->choices[i], &c->choices[i].events, 1);
            lam_text_free(&c->choices[i].events);
        }
        close_object(t, c, 1);
    }
    lam_request_done(x);
    lam_request_drop(x);
}

/* ---- streaming ---- */

/* Moves what came since the last time to ch->taken; a paused job goes on. */
static void take(lam_choice *ch, int *ended)
{
    lam_completion *c = ch->c;
    const lam_text empty = {.data = ch->taken.data, .room = ch->taken.room};
    pthread_mutex_lock(&c->lock);
    ch->taken = ch->events;
    ch->events = empty;
    *ended = ch->ended;
    const int resumes = ch->paused && ch->job;
    if (resumes)
        lam_job_pause(ch->job, false);
    ch->paused = 0;
    pthread_mutex_unlock(&c->lock);
    if (resumes)
        lam_calls_wake(&c->w->calls);
}

static void put_event(lam_text *out, lam_choice *ch, const lam_text *events, int last)
{
    lam_completion *c = ch->c;
    lam_text_add(out, "data: ");
    open_object(out, c);
    put_choice(out, ch, events, last);
    close_object(out, c, 0);
    lam_text_add(out, "\n\n");
}

int lam_completion_fill(lam_request *x, lam_text *out)
{
    lam_completion *c = x->user;
    int closed = 0;
    for (int i = 0; i < c->n; i++) {
        lam_choice *ch = &c->choices[i];
        int ended;
        if (ch->closed) {
            closed++;
            continue;
        }
        take(ch, &ended);
        if (ended && ch->status != LAM_OK) {
            lam_text_add(out, "data: ");
            lam_error_json(out, 500, NULL, ch->reason ? ch->reason : "failed");
            lam_text_add(out, "\n\n");
        } else if (ch->taken.size > 0) {
            put_event(out, ch, &ch->taken, ended);
        }
        ch->closed = ended;
        closed += ended;
    }
    pthread_mutex_lock(&x->lock);
    if (x->ping && out->size == 0)
        lam_text_add(out, ": keep-alive\n\n");
    x->ping = 0;
    pthread_mutex_unlock(&x->lock);
    if (closed < c->n)
        return 0;
    if (c->r.include_usage) {
        lam_text_add(out, "data: ");
        open_object(out, c);
        close_object(out, c, 1);
        lam_text_add(out, "\n\n");
    }
    lam_text_add(out, "data: [DONE]\n\n");
    return 1;
}
