/* server_int.h -- the server's structs, shared by the files of src/serve. */
#ifndef LAM_SERVE_SERVER_INT_H
#define LAM_SERVE_SERVER_INT_H

#include "serve/auth.h"
#include "serve/request.h"
#include "serve/shelf.h"
#include "serve/worker.h"

enum {
    LAM_HEADER_BYTES = 16 << 10,
    LAM_BODY_BYTES = 32 << 20,
    LAM_INLINE_BYTES = 64 << 10, /* larger bodies are read by the clerk */
    LAM_STREAM_BYTES = 64 << 10  /* of events that wait for a slow reader */
};
#define LAM_BODIES_BYTES    ((size_t)512 << 20) /* of all bodies together */
#define LAM_PROMPT_TOKENS   ((size_t)8 << 20)   /* of all prompts that wait or run, of a model */
#define LAM_LOGPROB_ENTRIES ((size_t)2 << 20)   /* of one response */

typedef struct lam_connection lam_connection; /* watchdog.c */

/* Counted since the start. */
typedef struct lam_counters {
    atomic_llong requests, refused, failed, disconnects, timeouts;
} lam_counters;

struct lam_server {
    lam_serve_options o;
    lam_auth auth;
    lam_worker *workers; /* [o.n_models] */
    lam_shelf shelf;
    lam_calls clerk;
    lam_calls herald; /* wakes the readers of streams */
    pthread_t clerk_thread, herald_thread, watch_thread;
    int clerk_started, herald_started, watch_started;
    struct MHD_Daemon *daemon;
    int port;
    time_t started;
    atomic_int draining, stopping;
    atomic_llong bodies;      /* bytes that are held */
    atomic_int open_requests; /* that are not over */
    lam_counters counters;
    /* watchdog.c */
    pthread_mutex_t connections_lock;
    lam_connection *connections;
    uint64_t numbers; /* of connections so far */
    int epoll;
};

/* ---- daemon.c ---- */
lam_status lam_http_start(lam_server *s);
void lam_http_stop(lam_server *s);

/* ---- watchdog.c: connections ---- */
lam_status lam_watchdog_start(lam_server *s);
void lam_watchdog_stop(lam_server *s);  /* the thread */
void lam_watchdog_close(lam_server *s); /* once there are no connections */
lam_connection *lam_connection_open(lam_server *s, int fd);
void lam_connection_close(lam_server *s, lam_connection *c);
/* A request begins: its headers are there.  Its body must be within the time limit. */
void lam_connection_begin(lam_server *s, lam_connection *c, lam_request *x);
/* Its body is there. */
void lam_connection_received(lam_server *s, lam_connection *c);
void lam_connection_end(lam_server *s, lam_connection *c);
/* All streams look whether they are to end. */
void lam_watchdog_wake_all(lam_server *s);
/* All requests are given up. */
void lam_watchdog_abandon_all(lam_server *s);

/* ---- finding things ---- */
lam_worker *lam_server_worker(lam_server *s, const char *name); /* "": the first */
int lam_worker_is(const lam_worker *w, const char *name);       /* "": any */
int lam_server_is_ready(const lam_server *s);

#endif
