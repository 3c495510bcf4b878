/* request.h -- one request and its response, on its way through the threads.
 *
 * The HTTP thread makes a request, collects the body and calls the handler of the route.  The handler, or whoever it
 * left work for, calls lam_request_done() once the reply stands in x->reply, or lam_request_stream() and then
 * lam_request_wake() whenever there is more to send.  Meanwhile the connection is suspended: no thread waits.
 *
 * A client that is gone is noticed by the watchdog (watchdog.c), which calls `cancel`. */
#ifndef LAM_SERVE_REQUEST_H
#define LAM_SERVE_REQUEST_H

#include "serve/calls.h"
#include "serve/reply.h"

#include <stdatomic.h>

typedef struct lam_request lam_request;
typedef struct lam_server lam_server;
typedef struct lam_worker lam_worker;

typedef struct lam_route {
    const char *method, *path; /* "{id}" stands for an id */
    void (*handle)(lam_request *x);
    int open;   /* without a key */
    int always; /* also while models are loaded, and while the server drains */
} lam_route;

struct lam_request {
    lam_server *server;
    const lam_route *route;
    char id[LAM_ID_ROOM]; /* of the path */
    int watch;            /* ?watch=1 */
    lam_worker *worker;   /* whom it was left to */
    char *body;
    size_t size, room;
    lam_reply reply;
    lam_call call; /* to a worker or the clerk */
    atomic_int refs;

    /* What the handler keeps, freed with the request (lam_request_keep). */
    void *user;
    void (*release)(void *user);
    /* Streams: appends what there is to send; returns non-zero with the last of it.  HTTP thread. */
    int (*fill)(lam_request *x, lam_text *out);

    /* Of the HTTP thread. */
    lam_text out;
    size_t sent;
    int over, dispatched;

    pthread_mutex_t lock; /* guards: */
    void *connection;     /* struct MHD_Connection; NULL: gone */
    int suspended, gone, done, streams, signalled, ping;
    void (*cancel)(lam_request *x);
};

lam_request *lam_request_create(lam_server *s); /* NULL: no memory */
lam_request *lam_request_hold(lam_request *x);
void lam_request_drop(lam_request *x);

/* The handler keeps `user`, which `release` frees with the request; `cancel` is called when the client is gone or the
 * server stops, by any thread, perhaps twice; or NULL. */
void lam_request_keep(lam_request *x, void *user, void (*release)(void *user),
                      void (*cancel)(lam_request *x));
/* The reply is there.  Any thread. */
void lam_request_done(lam_request *x);
/* It will be a stream; `fill` is set. */
void lam_request_stream(lam_request *x);
/* The stream has more.  Any thread. */
void lam_request_wake(lam_request *x);
/* Nobody will read it: the client is gone or the server stops. */
void lam_request_abandon(lam_request *x);
/* Has it been? */
int lam_request_is_gone(lam_request *x);
/* The clerk runs this with x. */
void lam_request_clerk(lam_request *x, void (*run)(void *x));

/* routes.c */
const lam_route *lam_route_find(const char *method, const char *path, char id[LAM_ID_ROOM],
                                const char **allowed);

#endif
