/* memory_watch.c -- GET /v1/sessions/{id}/memory: a view of the memory, once or as a stream of events.
 *
 * The worker makes a view at most four times a second for each watcher, and only if the session has advanced; the HTTP
 * thread writes the newest view.  A slow reader misses views and delays nothing. */
#include "serve/memory_watch.h"

#include "core/clock.h"
#include "serve/handlers.h"
#include "serve/session_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double EVERY = 0.25; /* seconds between two looks at a session, at least */
static const double PATIENCE =
    8.0; /* and so many times as long as a look takes: others wait meanwhile */

/* A view that several watchers of a session share. */
typedef struct shared_view {
    atomic_int owners;
    lam_memory_view view;
} shared_view;

static void drop_view(shared_view *v)
{
    if (v && atomic_fetch_sub(&v->owners, 1) == 1) {
        lam_memory_view_free(&v->view);
        free(v);
    }
}

struct lam_watcher {
    lam_request *x; /* held */
    /* Of the worker's thread. */
    uint64_t version;
    int64_t length;
    double next_look; /* not before */
    int seen;
    lam_watcher *next;
    pthread_mutex_t lock; /* guards: */
    shared_view *view;    /* the newest that was not sent; NULL: none */
    int over;
};

/* ---- JSON ---- */

static void numbers(lam_text *t, const double *v, int n)
{
    lam_text_add(t, "[");
    for (int i = 0; i < n; i++) {
        lam_text_add(t, i > 0 ? "," : "");
        lam_text_number(t, v[i], 4, "null");
    }
    lam_text_add(t, "]");
}

static void table(lam_text *t, const double *v, int rows, int columns)
{
    lam_text_add(t, "[");
    for (int r = 0; r < rows; r++) {
        lam_text_add(t, r > 0 ? "," : "");
        numbers(t, v + (size_t)r * (size_t)columns, columns);
    }
    lam_text_add(t, "]");
}

static void view_json(lam_text *t, const lam_request *x, const lam_memory_view *v)
{
    const lam_vocab *vocab = x->worker->engine->vocab;
    lam_text_format(t, "{\"object\":\"session.memory\",\"session\":\"%s\",\"length\":%lld,", x->id,
                    (long long)v->length);
    lam_text_format(t, "\"layers\":%d,\"heads\":%d,\"slots\":%d,\"remembered\":%d,", v->layers,
                    v->heads, v->slots, v->remembered);
    lam_text_format(t, "\"segment\":{\"length\":%d,\"done\":%d},\"alpha\":", v->segment, v->done);
    if (v->alpha)
        table(t, v->alpha, v->alpha_layers, v->remembered);
    else
        lam_text_add(t, "null");
    lam_text_format(t, ",\"attention\":{\"interval\":%d,\"weight\":", v->interval);
    table(t, v->weight, v->layers, v->bins);
    lam_text_add(t, ",\"memory_share\":");
    numbers(t, v->share, v->layers);
    lam_text_add(t, ",\"entropy\":");
    numbers(t, v->entropy, v->layers);
    lam_text_add(t, "},\"tokens\":[");
    for (int i = 0; i < v->done; i++) {
        size_t size;
        const char *text = lam_vocab_symbol(vocab, v->tokens[i], &size);
        lam_text_add(t, i > 0 ? "," : "");
        lam_token_json(t, text, size);
    }
    lam_text_add(t, "],\"surprise\":");
    numbers(t, v->surprise, v->done);
    lam_text_add(t, "}");
}

/* ---- a single view ---- */

static void look_once(lam_request *x, const lam_held *held)
{
    lam_memory_view view;
    const lam_status status = lam_scheduler_view(x->worker->scheduler, &view, held->text);
    if (status == LAM_OK) {
        x->reply.status = 200;
        view_json(&x->reply.body, x, &view);
        lam_memory_view_free(&view);
    } else {
        lam_reply_status(&x->reply, status, NULL);
    }
    lam_request_finish(x);
}

/* ---- watching as a stream ---- */

static void release(void *user)
{
    lam_watcher *watch = user;
    drop_view(watch->view);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

static int fill(lam_request *x, lam_text *out)
{
    lam_watcher *watch = x->user;
    pthread_mutex_lock(&watch->lock);
    shared_view *const view = watch->view;
    const int over = watch->over || atomic_load(&x->server->draining);
    watch->view = NULL;
    pthread_mutex_unlock(&watch->lock);
    if (view) {
        lam_text_add(out, "event: memory\ndata: ");
        view_json(out, x, &view->view);
        lam_text_add(out, "\n\n");
        drop_view(view);
    }
    pthread_mutex_lock(&x->lock);
    if (x->ping && out->size == 0)
        lam_text_add(out, ": keep-alive\n\n");
    x->ping = 0;
    pthread_mutex_unlock(&x->lock);
    if (over)
        lam_text_format(out, "event: end\ndata: {\"reason\":\"%s\"}\n\n",
                        atomic_load(&x->server->draining) ? "stopped" : "deleted");
    return over;
}

static void wake_worker(lam_request *x)
{
    lam_calls_wake(&x->worker->calls);
}

static void begin_watch(lam_request *x)
{
    lam_watcher *watch = calloc(1, sizeof *watch);
    if (!watch) {
        lam_reply_error(&x->reply, 503, NULL, "no memory for another watcher");
        lam_request_finish(x);
        return;
    }
    watch->x = x; /* the call's hold becomes the watch's */
    pthread_mutex_init(&watch->lock, NULL);
    watch->next = x->worker->watches;
    x->worker->watches = watch;
    x->fill = fill;
    lam_request_keep(x, watch, release, wake_worker);
    lam_request_stream(x);
}

static void begin(void *arg)
{
    lam_request *x = arg;
    lam_held *held = lam_request_held(x, LAM_SESSION, 0);
    if (held && x->watch)
        begin_watch(x);
    else if (held)
        look_once(x, held);
}

void lam_get_memory(lam_request *x)
{
    lam_to_owner(x, LAM_SESSION, begin);
}

/* ---- the worker's side ---- */

static void end_watch(lam_watcher **at)
{
    lam_watcher *watch = *at;
    lam_request *x = watch->x;
    *at = watch->next;
    pthread_mutex_lock(&watch->lock);
    watch->over = 1;
    pthread_mutex_unlock(&watch->lock);
    lam_request_wake(x);
    lam_request_drop(x); /* which may free the watch */
}

/* Gives the view to a watcher that has not seen it. */
static void give(lam_watcher *watch, shared_view *view, double next, uint64_t version)
{
    const int moved = !watch->seen || view->view.length != watch->length;
    watch->next_look = next;
    watch->version = version;
    watch->length = view->view.length;
    watch->seen = 1;
    if (!moved)
        return;
    atomic_fetch_add(&view->owners, 1);
    pthread_mutex_lock(&watch->lock);
    drop_view(watch->view);
    watch->view = view;
    pthread_mutex_unlock(&watch->lock);
    lam_request_wake(watch->x);
}

/* Looks once for all who watch this session. */
static void look_at(lam_worker *w, const lam_held *held)
{
    const double start = lam_clock();
    shared_view *view = calloc(1, sizeof *view);
    if (!view || lam_scheduler_view(w->scheduler, &view->view, held->text) != LAM_OK) {
        free(view); /* there is no memory now; perhaps the next time */
        return;
    }
    atomic_init(&view->owners, 1);
    const double end = lam_clock(), pause = PATIENCE * (end - start);
    const double next = end + (pause > EVERY ? pause : EVERY);
    for (lam_watcher *watch = w->watches; watch; watch = watch->next)
        if (strcmp(watch->x->id, held->id) == 0)
            give(watch, view, next, held->version);
    drop_view(view);
}

double lam_watches_look(lam_worker *w)
{
    const double now = lam_clock();
    double due = -1.0;
    for (lam_watcher **at = &w->watches; *at;) {
        lam_watcher *watch = *at;
        lam_held *held = lam_shelf_find(&w->server->shelf, w, LAM_SESSION, watch->x->id);
        if (!held || lam_request_is_gone(watch->x) || atomic_load(&w->server->draining)) {
            end_watch(at);
            continue;
        }
        const int moved = !watch->seen || held->busy || held->version != watch->version;
        const double left = watch->next_look - now;
        if (moved && (!watch->seen || left <= 0.0))
            look_at(w, held);
        else if (moved && (due < 0.0 || left < due))
            due = left;
        at = &watch->next;
    }
    return due;
}

void lam_watches_deleted(lam_worker *w, const char *id)
{
    for (lam_watcher **at = &w->watches; *at;)
        if (strcmp((*at)->x->id, id) == 0)
            end_watch(at);
        else
            at = &(*at)->next;
}

void lam_watches_end(lam_worker *w)
{
    while (w->watches)
        end_watch(&w->watches);
}
