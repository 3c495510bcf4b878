/* request.c -- see request.h: suspends and resumes connections, so that no thread waits. */
#include "serve/request.h"

#include "serve/server_int.h"

#include <microhttpd.h>
#include <stdlib.h>

lam_request *lam_request_create(lam_server *s)
{
    lam_request *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->server = s;
    atomic_init(&x->refs, 1);
    pthread_mutex_init(&x->lock, NULL);
    atomic_fetch_add(&s->open_requests, 1);
    return x;
}

lam_request *lam_request_hold(lam_request *x)
{
    atomic_fetch_add(&x->refs, 1);
    return x;
}

void lam_request_drop(lam_request *x)
{
    if (atomic_fetch_sub(&x->refs, 1) > 1)
        return;
    if (x->release)
        x->release(x->user);
    atomic_fetch_sub(&x->server->bodies, (long long)x->room);
    atomic_fetch_sub(&x->server->open_requests, 1);
    free(x->name);
    free(x->body);
    lam_reply_free(&x->reply);
    lam_text_free(&x->out);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

void lam_request_keep(lam_request *x, void *user, void (*release)(void *user),
                      void (*cancel)(lam_request *x))
{
    pthread_mutex_lock(&x->lock);
    x->user = user;
    x->release = release;
    x->cancel = cancel;
    pthread_mutex_unlock(&x->lock);
}

/* With the lock. */
static void resume(lam_request *x)
{
    if (x->suspended && x->connection)
        MHD_resume_connection(x->connection);
    x->suspended = 0;
}

void lam_request_done(lam_request *x)
{
    pthread_mutex_lock(&x->lock);
    x->done = 1;
    resume(x);
    pthread_mutex_unlock(&x->lock);
}

void lam_request_stream(lam_request *x)
{
    pthread_mutex_lock(&x->lock);
    x->done = x->streams = 1;
    resume(x);
    pthread_mutex_unlock(&x->lock);
}

void lam_request_wake(lam_request *x)
{
    pthread_mutex_lock(&x->lock);
    x->signalled = 1;
    if (x->streams)
        resume(x);
    pthread_mutex_unlock(&x->lock);
}

void lam_request_abandon(lam_request *x)
{
    pthread_mutex_lock(&x->lock);
    void (*const cancel)(lam_request *) = x->cancel;
    x->gone = 1;
    resume(x);
    pthread_mutex_unlock(&x->lock);
    if (cancel)
        cancel(x);
}

int lam_request_is_gone(lam_request *x)
{
    pthread_mutex_lock(&x->lock);
    const int gone = x->gone;
    pthread_mutex_unlock(&x->lock);
    return gone;
}

void lam_request_clerk(lam_request *x, void (*run)(void *x))
{
    lam_calls_put(&x->server->clerk, &x->call, run, x);
}
