/* request.h -- one request and its response, on its way through the threads.
 *
 * The HTTP thread creates a request, collects the body and calls the handler of the route.  The handler, or the thread
 * to which it passed the work, calls lam_request_done() when the reply is in x->reply, or lam_request_stream() and then
 * lam_request_wake() whenever there is more to send.  Meanwhile the connection is suspended: no thread waits.
 *
 * The watchdog (watchdog.c) detects a disconnected client and calls `cancel`. */
#ifndef LAM_SERVE_REQUEST_H
#define LAM_SERVE_REQUEST_H

#include "serve/calls.h"
#include "serve/reply.h"

#include <stdatomic.h>

typedef struct lam_request lam_request;
typedef struct lam_server lam_server;
typedef struct lam_worker lam_worker;

typedef struct lam_route {
    const char *method, *path; /* "{id}" stands for an id, "{name}" for the rest of the path */
    void (*handle)(lam_request *x);
    int open;   /* without a key */
    int always; /* also while models are loading and while the server drains */
} lam_route;

struct lam_request {
    lam_server *server;
    const lam_route *route;
    char id[LAM_ID_ROOM]; /* of the path */
    char *name;           /* of the path; freed with the request */
    int watch;            /* ?watch=1 */
    lam_worker *worker;   /* the worker that handles it */
    char *body;
    size_t size, room;
    lam_reply reply;
    lam_call call; /* to a worker or the clerk */
    atomic_int refs;

    /* The handler's data, freed with the request (lam_request_keep). */
    void *user;
    void (*release)(void *user);
    /* For streams: appends what there is to send; returns non-zero with the last part.  HTTP thread. */
    int (*fill)(lam_request *x, lam_text *out);

    /* Used by the HTTP thread. */
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

/* Attaches `user` to the request; `release` frees it with the request. `cancel`, or NULL, is called when the client
 * disconnects or the server stops, by any thread, possibly twice. */
void lam_request_keep(lam_request *x, void *user, void (*release)(void *user),
                      void (*cancel)(lam_request *x));
/* The reply is complete.  Any thread. */
void lam_request_done(lam_request *x);
/* The reply is a stream; `fill` is set. */
void lam_request_stream(lam_request *x);
/* The stream has more.  Any thread. */
void lam_request_wake(lam_request *x);
/* Cancels the request: the client has disconnected or the server stops. */
void lam_request_abandon(lam_request *x);
/* Was the request cancelled? */
int lam_request_is_gone(lam_request *x);
/* Has the clerk run this with x. */
void lam_request_clerk(lam_request *x, void (*run)(void *x));

/* routes.c.  *name points to the part of `path` that "{name}" stands for, or is NULL. NULL: `allowed` has the methods of
 * the path, "GET, DELETE", or is "". */
const lam_route *lam_route_find(const char *method, const char *path, char id[LAM_ID_ROOM],
                                const char **name, char allowed[LAM_ALLOW_ROOM]);

#endif
