/* watchdog.c -- checks connections for time limits, which a slow client cannot extend, and for disconnected clients.
 *
 * The limits are absolute: headers within 10 seconds of the connection's beginning (and of 60 more after an earlier
 * request, which may leave the connection idle), the body within 60 seconds of its headers.  A connection that is late
 * is shut down; libmicrohttpd then finds it closed.  Every socket is also in an epoll of ours that tells when its other
 * end has closed. */
#include "serve/server_int.h"

#include "core/clock.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IDLE_SECONDS = 60, PING_SECONDS = 15 };
enum { LOOK_MILLISECONDS = 250, EVENTS = 64 };

struct lam_connection {
    uint64_t number;
    int fd;
    double deadline; /* 0: none */
    int closed;      /* its other end sends no more */
    double pinged;
    lam_request *x; /* held; NULL: none runs */
    lam_connection *next, **at;
};

lam_connection *lam_connection_open(lam_server *s, int fd)
{
    lam_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->fd = fd;
    c->deadline = lam_clock() + s->o.header_seconds;
    pthread_mutex_lock(&s->connections_lock);
    c->number = ++s->numbers;
    c->next = s->connections;
    c->at = &s->connections;
    if (c->next)
        c->next->at = &c->next;
    s->connections = c;
    /* Edge-triggered: told once, and only of the end.  If it cannot be added, its end is noticed by sending. */
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.u64 = c->number};
    epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
    pthread_mutex_unlock(&s->connections_lock);
    return c;
}

void lam_connection_close(lam_server *s, lam_connection *c)
{
    pthread_mutex_lock(&s->connections_lock);
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    lam_request *x = c->x;
    pthread_mutex_unlock(&s->connections_lock);
    if (x)
        lam_request_drop(x);
    free(c);
}

void lam_connection_begin(lam_server *s, lam_connection *c, lam_request *x)
{
    pthread_mutex_lock(&s->connections_lock);
    c->x = lam_request_hold(x);
    c->deadline = lam_clock() + s->o.body_seconds;
    pthread_mutex_unlock(&s->connections_lock);
}

void lam_connection_received(lam_server *s, lam_connection *c)
{
    pthread_mutex_lock(&s->connections_lock);
    c->deadline = 0.0;
    c->pinged = lam_clock();
    pthread_mutex_unlock(&s->connections_lock);
}

void lam_connection_end(lam_server *s, lam_connection *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&s->connections_lock);
    lam_request *x = c->x;
    c->x = NULL;
    c->deadline = lam_clock() + s->o.header_seconds + (c->closed ? 0.0 : IDLE_SECONDS);
    pthread_mutex_unlock(&s->connections_lock);
    if (x)
        lam_request_drop(x);
}

/* ---- the thread ---- */

static void on_closed(lam_server *s, uint64_t number)
{
    pthread_mutex_lock(&s->connections_lock);
    lam_connection *c = s->connections;
    while (c && c->number != number)
        c = c->next;
    lam_request *x = c && c->x ? lam_request_hold(c->x) : NULL;
    if (c)
        c->closed = 1;
    if (c && !x) /* what it has sent may still be answered, but not for long */
        c->deadline = lam_clock() + s->o.header_seconds;
    pthread_mutex_unlock(&s->connections_lock);
    if (x) {
        lam_request_abandon(x);
        lam_request_drop(x);
    }
}

static void look(lam_server *s)
{
    const double now = lam_clock();
    pthread_mutex_lock(&s->connections_lock);
    for (lam_connection *c = s->connections; c; c = c->next) {
        if (c->deadline > 0.0 && now > c->deadline) {
            c->deadline = 0.0;
            atomic_fetch_add(&s->counters.timeouts, 1);
            shutdown(c->fd, SHUT_RDWR);
        }
        if (c->x && c->deadline == 0.0 && now - c->pinged > PING_SECONDS) {
            c->pinged = now;
            pthread_mutex_lock(&c->x->lock);
            c->x->ping = 1;
            pthread_mutex_unlock(&c->x->lock);
            lam_request_wake(c->x);
        }
    }
    pthread_mutex_unlock(&s->connections_lock);
}

static void *watch(void *arg)
{
    lam_server *s = arg;
    struct epoll_event events[EVENTS];
    double looked = lam_clock();
    pthread_setname_np(pthread_self(), "lamemo-watchdog");
    while (!atomic_load(&s->stopping)) {
        const int n = epoll_wait(s->epoll, events, EVENTS, LOOK_MILLISECONDS);
        for (int i = 0; i < n; i++)
            on_closed(s, events[i].data.u64);
        if (lam_clock() - looked >= LOOK_MILLISECONDS / 1000.0) {
            look(s);
            looked = lam_clock();
        }
    }
    return NULL;
}

lam_status lam_watchdog_start(lam_server *s)
{
    pthread_mutex_init(&s->connections_lock, NULL);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll < 0)
        return lam_fail(LAM_ERR_IO, "epoll: the system refuses another one");
    if (pthread_create(&s->watch_thread, NULL, watch, s) != 0)
        return lam_fail(LAM_ERR_MEMORY, "no thread for the watchdog");
    s->watch_started = 1;
    return LAM_OK;
}

void lam_watchdog_stop(lam_server *s)
{
    atomic_store(&s->stopping, 1);
    if (s->watch_started)
        pthread_join(s->watch_thread, NULL);
}

void lam_watchdog_close(lam_server *s)
{
    if (s->epoll > 0)
        close(s->epoll);
    pthread_mutex_destroy(&s->connections_lock);
}

void lam_watchdog_wake_all(lam_server *s)
{
    pthread_mutex_lock(&s->connections_lock);
    for (lam_connection *c = s->connections; c; c = c->next)
        if (c->x)
            lam_request_wake(c->x);
    pthread_mutex_unlock(&s->connections_lock);
}

void lam_watchdog_abandon_all(lam_server *s)
{
    pthread_mutex_lock(&s->connections_lock);
    for (lam_connection *c = s->connections; c; c = c->next)
        if (c->x)
            lam_request_abandon(c->x);
    pthread_mutex_unlock(&s->connections_lock);
}
