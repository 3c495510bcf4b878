/* session_routes.c -- routes that create, list, fork, snapshot and delete sessions. */
#include "serve/session_json.h"

#include "io/json.h"
#include "serve/completion_request.h"
#include "serve/handlers.h"
#include "serve/memory_watch.h"

#include <stdlib.h>
#include <string.h>

/* ---- shared ---- */

void lam_held_json(lam_text *t, const lam_held *held)
{
    const int memory = held->text->forgets ? 0 : lam_scheduler_mem_len(held->worker->scheduler);
    lam_text_format(t, "{\"id\":\"%s\",\"object\":\"%s\",\"model\":", held->id,
                    held->kind == LAM_SESSION ? "session" : "snapshot");
    lam_text_json(t, held->worker->model->name);
    lam_text_format(t, ",\"length\":%lld,\"bytes\":%zu,\"segment\":%d,\"memory\":%d,",
                    (long long)held->text->length, held->bytes, held->text->segment, memory);
    lam_text_format(t, "\"created\":%lld,\"busy\":%s}", (long long)held->created,
                    held->busy ? "true" : "false");
}

void lam_to_owner(lam_request *x, lam_held_kind kind, void (*run)(void *x))
{
    lam_worker *w = lam_shelf_whose(&x->server->shelf, kind, x->id);
    if (!w) {
        lam_reply_error(&x->reply, 404, NULL, "there is no %s %s",
                        kind == LAM_SESSION ? "session" : "snapshot", x->id);
        lam_request_done(x);
        return;
    }
    x->worker = w;
    lam_request_hold(x);
    lam_calls_put(&w->calls, &x->call, run, x);
}

lam_held *lam_request_held(lam_request *x, lam_held_kind kind, int idle)
{
    lam_held *held = lam_shelf_find(&x->server->shelf, x->worker, kind, x->id);
    if (held && !(idle && held->busy))
        return held;
    if (held)
        lam_reply_error(&x->reply, 409, NULL, "session %s is at work", x->id);
    else
        lam_reply_error(&x->reply, 404, NULL, "%s is not there any more", x->id);
    lam_request_finish(x);
    return NULL;
}

void lam_request_finish(lam_request *x)
{
    lam_request_done(x);
    lam_request_drop(x);
}

void lam_reply_held(lam_request *x, int status, const lam_held *held)
{
    x->reply.status = status;
    lam_held_json(&x->reply.body, held);
    lam_request_finish(x);
}

void lam_reply_no_room(lam_request *x, lam_status status)
{
    if (status == LAM_ERR_UNSUPPORTED)
        lam_reply_error(&x->reply, 429, NULL, "%s", lam_error());
    else if (status == LAM_ERR_ARG)
        lam_reply_error(&x->reply, 409, NULL, "%s", lam_error());
    else
        lam_reply_status(&x->reply, status, NULL);
    lam_request_finish(x);
}

/* ---- creating a session ---- */

typedef struct new_session {
    char model[LAM_NAME_BYTES], snapshot[LAM_ID_ROOM];
    int segment, memory; /* 0, -1: not given */
} new_session;

static lam_status read_new(new_session *n, const char **param, const char *body, size_t size)
{
    json_t *o;
    *n = (new_session){.memory = -1};
    LAM_TRY(lam_body_parse(&o, body, size));
    lam_status status = lam_member_text(n->model, sizeof n->model, o, "model", param);
    if (status == LAM_OK)
        status = lam_member_text(n->snapshot, sizeof n->snapshot, o, "snapshot", param);
    if (status == LAM_OK)
        status = lam_member_int(&n->segment, o, "segment", 1, LAM_MAX_LEN, param);
    if (status == LAM_OK)
        status = lam_member_int(&n->memory, o, "memory", 0, LAM_MAX_LEN, param);
    json_decref(o);
    return status;
}

/* A new text, or the snapshot's.  Returns the status of HTTP; 0: fine.  *param: the field that is wrong. */
static int make_text(lam_request *x, const new_session *n, lam_timeline **out, const char **param)
{
    lam_worker *w = x->worker;
    const int longest = lam_scheduler_segment(w->scheduler);
    const int M = lam_scheduler_mem_len(w->scheduler);
    const int segment = n->segment > 0 ? n->segment : longest;
    *out = NULL;
    *param = "segment";
    if (segment > longest)
        return lam_fail(LAM_ERR_ARG, "segment: %d, at most %d, the server's", segment, longest),
               400;
    *param = "memory";
    if (n->memory > 0 && n->memory != M)
        return lam_fail(LAM_ERR_ARG, "memory: must be %d, the server's, or 0", M), 400;
    *param = "snapshot";
    if (n->snapshot[0] == '\0')
        return lam_timeline_create(out, segment, n->memory == 0) == LAM_OK ? 0 : 503;
    const lam_held *from = lam_shelf_find(&x->server->shelf, w, LAM_SNAPSHOT, n->snapshot);
    if (!from)
        return lam_fail(LAM_ERR_ARG, "there is no snapshot %s", n->snapshot), 404;
    if ((n->segment > 0 && n->segment != from->text->segment) ||
        (n->memory >= 0 && (n->memory == 0) != from->text->forgets))
        return lam_fail(LAM_ERR_ARG, "a session keeps its snapshot's segment and memory"), 400;
    return lam_timeline_fork(out, from->text) == LAM_OK ? 0 : 503;
}

static void create(void *arg)
{
    lam_request *x = arg;
    lam_timeline *text;
    lam_held *held;
    const char *param;
    const int problem = make_text(x, x->user, &text, &param);
    if (problem != 0) {
        lam_reply_error(&x->reply, problem, problem == 503 ? NULL : param, "%s", lam_error());
        lam_request_finish(x);
        return;
    }
    const lam_status status =
        lam_shelf_put(&x->server->shelf, &held, x->worker, LAM_SESSION, text, NULL);
    if (status == LAM_OK)
        lam_reply_held(x, 201, held);
    else
        lam_reply_no_room(x, status);
}

void lam_post_sessions(lam_request *x)
{
    const char *param = NULL;
    new_session *n = calloc(1, sizeof *n);
    lam_status status = n ? read_new(n, &param, x->body, x->size)
                          : lam_fail(LAM_ERR_MEMORY, "no memory for a session");
    lam_request_keep(x, n, free, NULL);
    if (status != LAM_OK) {
        lam_reply_status(&x->reply, status, param);
        lam_request_done(x);
        return;
    }
    lam_worker *w = n->snapshot[0] != '\0'
                        ? lam_shelf_whose(&x->server->shelf, LAM_SNAPSHOT, n->snapshot)
                        : lam_server_worker(x->server, n->model);
    if (!w) {
        if (n->snapshot[0] != '\0')
            lam_reply_error(&x->reply, 404, "snapshot",
                            "there is no snapshot %s; POST the file to /v1/snapshots", n->snapshot);
        else
            lam_reply_error(&x->reply, 404, "model",
                            "there is no model %s; GET /v1/models lists them", n->model);
        lam_request_done(x);
        return;
    }
    if (!lam_worker_is(w, n->model)) {
        lam_reply_error(&x->reply, 400, "model", "model: snapshot %s is one of %s, not of %s",
                        n->snapshot, w->model->name, n->model);
        lam_request_done(x);
        return;
    }
    x->worker = w;
    lam_request_hold(x);
    lam_calls_put(&w->calls, &x->call, create, x);
}

/* ---- other routes ---- */

static void add_session(void *user, lam_held *held)
{
    lam_request *x = user;
    if (held->kind != LAM_SESSION)
        return;
    lam_text_add(&x->reply.body, x->reply.body.data[x->reply.body.size - 1] == '[' ? "" : ",");
    lam_held_json(&x->reply.body, held);
}

/* Every worker tells of its own, one after the other. */
static void list(void *arg)
{
    lam_request *x = arg;
    lam_server *s = x->server;
    lam_shelf_each(&s->shelf, x->worker, add_session, x);
    if (x->worker + 1 < s->workers + s->o.n_models) {
        x->worker++;
        lam_calls_put(&x->worker->calls, &x->call, list, x);
        return;
    }
    lam_text_add(&x->reply.body, "]}");
    x->reply.status = 200;
    lam_request_finish(x);
}

void lam_get_sessions(lam_request *x)
{
    lam_text_add(&x->reply.body, "{\"object\":\"list\",\"data\":[");
    x->worker = x->server->workers;
    lam_request_hold(x);
    lam_calls_put(&x->worker->calls, &x->call, list, x);
}

static void show(void *arg)
{
    lam_held *held = lam_request_held(arg, LAM_SESSION, 0);
    if (held)
        lam_reply_held(arg, 200, held);
}

void lam_get_session(lam_request *x)
{
    lam_to_owner(x, LAM_SESSION, show);
}

static void delete (void *arg)
{
    lam_request *x = arg;
    lam_held *held = lam_request_held(x, LAM_SESSION, 1);
    if (!held)
        return;
    lam_watches_deleted(x->worker, x->id);
    lam_shelf_remove(&x->server->shelf, held);
    x->reply.status = 200;
    lam_text_format(&x->reply.body, "{\"id\":\"%s\",\"deleted\":true}", x->id);
    lam_request_finish(x);
}

void lam_delete_session(lam_request *x)
{
    lam_to_owner(x, LAM_SESSION, delete);
}

/* A copy of the session's text becomes a session, or a snapshot. */
static void copy(lam_request *x, lam_held_kind kind)
{
    lam_held *held = lam_request_held(x, LAM_SESSION, 1), *made;
    lam_timeline *text;
    if (!held)
        return;
    lam_status status = lam_timeline_fork(&text, held->text);
    if (status == LAM_OK)
        status = lam_shelf_put(&x->server->shelf, &made, x->worker, kind, text, NULL);
    if (status == LAM_OK)
        lam_reply_held(x, 201, made);
    else
        lam_reply_no_room(x, status);
}

static void fork_session(void *x)
{
    copy(x, LAM_SESSION);
}

void lam_post_fork(lam_request *x)
{
    lam_to_owner(x, LAM_SESSION, fork_session);
}

static void freeze(void *x)
{
    copy(x, LAM_SNAPSHOT);
}

void lam_post_snapshot(lam_request *x)
{
    lam_to_owner(x, LAM_SESSION, freeze);
}
