/* http.c -- libmicrohttpd's callbacks: requests, responses, and requests that are refused before a handler sees them.
 *
 * All connections are in one thread with epoll.  A connection whose reply is not ready, or whose stream has nothing to
 * send, is suspended; request.c resumes it. libmicrohttpd never times out a suspended connection, does not notice that
 * its client is gone, and must not be stopped while there is one: watchdog.c sees to all of that. */
#include "serve/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 << 10 };

/* ---- responses ---- */

static const char POLICY[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static void add_headers(struct MHD_Response *r, const lam_reply *reply, const char *type)
{
    char seconds[16];
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Content-Security-Policy", POLICY);
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    if (reply->retry_after > 0) {
        snprintf(seconds, sizeof seconds, "%d", reply->retry_after);
        MHD_add_response_header(r, "Retry-After", seconds);
    }
    if (reply->status == 401)
        MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    if (*reply->allow)
        MHD_add_response_header(r, "Allow", reply->allow);
    if (reply->close)
        MHD_add_response_header(r, "Connection", "close");
}

static enum MHD_Result send_reply(struct MHD_Connection *c, lam_request *x)
{
    lam_reply *reply = &x->reply;
    if (lam_text_status(&reply->body, "reply") != LAM_OK)
        lam_reply_error(reply, 503, NULL, "no memory for the response");
    if (reply->status >= 400)
        atomic_fetch_add(
            reply->status >= 500 ? &x->server->counters.failed : &x->server->counters.refused, 1);
    struct MHD_Response *r = MHD_create_response_from_buffer(
        reply->body.size, reply->body.data ? reply->body.data : "", MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    add_headers(r, reply, reply->type ? reply->type : "application/json");
    const enum MHD_Result queued = MHD_queue_response(c, (unsigned)reply->status, r);
    MHD_destroy_response(r);
    lam_text_free(&reply->body);
    return queued;
}

static ssize_t pull(void *cls, uint64_t at, char *to, size_t room)
{
    lam_request *x = cls;
    (void)at;
    for (;;) {
        if (x->sent == x->out.size && !x->over) {
            pthread_mutex_lock(&x->lock);
            x->signalled = 0;
            pthread_mutex_unlock(&x->lock);
            x->sent = x->out.size = 0;
            x->over = x->fill(x, &x->out);
        }
        if (lam_text_status(&x->out, "stream") != LAM_OK)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (x->sent < x->out.size) {
            const size_t left = x->out.size - x->sent, n = left < room ? left : room;
            memcpy(to, x->out.data + x->sent, n);
            x->sent += n;
            return (ssize_t)n;
        }
        if (x->over)
            return MHD_CONTENT_READER_END_OF_STREAM;
        pthread_mutex_lock(&x->lock);
        const int gone = x->gone, more = x->signalled;
        if (!gone && !more) {
            x->suspended = 1;
            MHD_suspend_connection(x->connection);
        }
        pthread_mutex_unlock(&x->lock);
        if (gone)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (!more)
            return 0;
    }
}

static void drop(void *cls)
{
    lam_request_drop(cls);
}

static enum MHD_Result send_stream(struct MHD_Connection *c, lam_request *x)
{
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, pull, lam_request_hold(x), drop);
    if (!r) {
        lam_request_drop(x);
        return MHD_NO;
    }
    add_headers(r, &x->reply, "text/event-stream");
    MHD_add_response_header(r, "X-Accel-Buffering", "no");
    const enum MHD_Result queued = MHD_queue_response(c, 200, r);
    MHD_destroy_response(r);
    return queued;
}

/* ---- requests ---- */

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* For clients that expect what these models cannot do. */
static const char *hint(const char *path)
{
    return strncmp(path, "/v1/chat/", 9) == 0 ? "; the models continue texts: use /v1/completions"
                                              : "";
}

/* What is wrong with the request before its body; it is then answered at once, and the connection ends. */
static void check(lam_request *x, struct MHD_Connection *c, const char *method, const char *path)
{
    lam_server *s = x->server;
    const char *const host = header(c, "Host"), *const length = header(c, "Content-Length");
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *name = NULL;
    char allowed[LAM_ALLOW_ROOM];
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    x->route = lam_route_find(method, path, x->id, &name, allowed);
    if (size && size->header_size > LAM_HEADER_BYTES)
        lam_reply_error(&x->reply, 431, NULL, "the headers are above %d bytes", LAM_HEADER_BYTES);
    else if (!lam_auth_host(&s->auth, host))
        lam_reply_error(&x->reply, 403, NULL,
                        "the Host header is not this server's; see lamemo serve --allow-host");
    else if (!lam_auth_origin(host, header(c, "Origin")))
        lam_reply_error(&x->reply, 403, NULL, "the Origin header is another site's");
    else if (!(x->route && x->route->open) && !lam_auth_key(&s->auth, header(c, "Authorization")))
        lam_reply_error(&x->reply, 401, NULL, "the API key is missing or wrong");
    else if (!x->route && *allowed) {
        lam_reply_error(&x->reply, 405, NULL, "%s has no method %s; use %s", path, method, allowed);
        memcpy(x->reply.allow, allowed, sizeof allowed);
    } else if (!x->route)
        lam_reply_error(&x->reply, 404, NULL, "there is no %s%s", path, hint(path));
    else if (length && strtoull(length, NULL, 10) > LAM_BODY_BYTES)
        lam_reply_error(&x->reply, 413, NULL, "the body is above %d bytes", LAM_BODY_BYTES);
    else if (!x->route->always && atomic_load(&s->draining))
        lam_reply_error(&x->reply, 503, NULL, "the server is stopping");
    else if (!x->route->always && !lam_server_is_ready(s))
        lam_reply_error(&x->reply, 503, NULL, "the models are being loaded");
    else if (name && !(x->name = strdup(name)))
        lam_reply_error(&x->reply, 503, NULL, "not enough memory for the request");
    x->reply.close = x->reply.status != 0;
}

/* More of the body. */
static void receive(lam_request *x, const char *data, size_t size)
{
    lam_server *s = x->server;
    if (x->reply.status != 0)
        return; /* it is refused already, and nobody will read it */
    if (size > LAM_BODY_BYTES - x->size) {
        lam_reply_error(&x->reply, 413, NULL, "the body is above %d bytes", LAM_BODY_BYTES);
    } else if (x->size + size + 1 > x->room) {
        size_t room = x->room > 0 ? 2 * x->room : 4096;
        room = room < x->size + size + 1 ? x->size + size + 1 : room;
        const long long all =
            atomic_fetch_add(&s->bodies, (long long)(room - x->room)) + (long long)(room - x->room);
        char *body = all <= (long long)LAM_BODIES_BYTES ? realloc(x->body, room) : NULL;
        if (body) {
            x->body = body;
            x->room = room;
        } else {
            atomic_fetch_sub(&s->bodies, (long long)(room - x->room));
            lam_reply_error(&x->reply, 503, NULL, "no memory for the body");
        }
    }
    if (x->reply.status != 0) {
        x->reply.close = 1;
        return;
    }
    memcpy(x->body + x->size, data, size);
    x->size += size;
    x->body[x->size] = '\0';
}

static void handle(void *arg)
{
    lam_request *x = arg;
    x->route->handle(x);
    lam_request_drop(x);
}

/* The request is whole. */
static void dispatch(lam_request *x)
{
    x->dispatched = 1;
    if (x->reply.status != 0) {
        lam_request_done(x);
        return;
    }
    lam_request_hold(x);
    if (x->size > LAM_INLINE_BYTES)
        lam_request_clerk(x, handle);
    else
        handle(x);
}

/* Sends what is there, or waits for it. */
static enum MHD_Result answer(struct MHD_Connection *c, lam_request *x)
{
    pthread_mutex_lock(&x->lock);
    const int gone = x->gone, done = x->done, streams = x->streams;
    if (!gone && !done) {
        x->suspended = 1;
        MHD_suspend_connection(c);
    }
    pthread_mutex_unlock(&x->lock);
    if (gone)
        return MHD_NO;
    if (!done)
        return MHD_YES;
    return streams ? send_stream(c, x) : send_reply(c, x);
}

static lam_connection *connection_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

enum MHD_Result lam_on_request(void *cls, struct MHD_Connection *c, const char *path,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **context)
{
    lam_server *s = cls;
    lam_request *x = *context;
    (void)version;
    if (!x) {
        x = lam_request_create(s);
        if (!x || !connection_of(c)) {
            if (x)
                lam_request_drop(x);
            return MHD_NO;
        }
        *context = x;
        x->connection = c;
        atomic_fetch_add(&s->counters.requests, 1);
        const char *watch = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "watch");
        x->watch = watch && strcmp(watch, "1") == 0;
        lam_connection_begin(s, connection_of(c), x);
        check(x, c, method, path);
        return x->reply.status != 0 ? send_reply(c, x) : MHD_YES;
    }
    if (*size > 0) {
        receive(x, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (!x->dispatched) {
        lam_connection_received(s, connection_of(c));
        dispatch(x);
    }
    return answer(c, x);
}

void lam_on_completed(void *cls, struct MHD_Connection *c, void **context,
                      enum MHD_RequestTerminationCode code)
{
    lam_server *s = cls;
    lam_request *x = *context;
    if (!x)
        return;
    *context = NULL;
    lam_connection_end(s, connection_of(c));
    pthread_mutex_lock(&x->lock);
    x->connection = NULL;
    pthread_mutex_unlock(&x->lock);
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        atomic_fetch_add(&s->counters.disconnects, 1);
        lam_request_abandon(x);
    }
    lam_request_drop(x);
}

void lam_on_connection(void *cls, struct MHD_Connection *c, void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    lam_server *s = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = info ? lam_connection_open(s, info->connect_fd) : NULL;
    } else if (*socket_context) {
        lam_connection_close(s, *socket_context);
        *socket_context = NULL;
    }
}
