/* server.h -- models behind HTTP (docs/serve.md).
 *
 * Threads: one for HTTP (libmicrohttpd, epoll), one compute thread for every model (worker.h), a clerk for large bodies
 * and replies (request.h), a herald that wakes the readers of streams (completion_jobs.c), and one that checks
 * connections for time limits and disconnected clients (watchdog.c). */
#ifndef LAM_SERVE_SERVER_H
#define LAM_SERVE_SERVER_H

#include "infer/scheduler.h"

typedef struct lam_serve_model {
    const char *name;   /* the name that clients use */
    const char *folder; /* or the name of a bundled model */
} lam_serve_model;

typedef struct lam_serve_options {
    const lam_serve_model *models; /* kept */
    int n_models;
    /* Opens a device for a model; called by its thread. */
    lam_status (*open_device)(lam_dev **out, void *user);
    void *user;
    lam_storage storage;
    lam_scheduler_options scheduler;
    const char *address;      /* to listen on */
    int port;                 /* 0: any free port */
    const char *key_file;     /* or NULL */
    const char *const *hosts; /* [n_hosts], kept: further Host headers that are allowed */
    int n_hosts;
    const char *state; /* folder that keeps sessions while the server is down, or NULL */
    int connections;   /* at most */
    double header_seconds, body_seconds; /* time limits for the headers, and then for the body */
    int sessions;                        /* and snapshots, at most */
    size_t session_bytes;
    double idle_seconds; /* sessions unused for this long may be evicted */
} lam_serve_options;

typedef struct lam_server lam_server;

/* Listens and starts to load the models; requests are answered with 503 until they are loaded. */
lam_status lam_server_start(lam_server **out, const lam_serve_options *options);
int lam_server_port(const lam_server *s);
/* Are all models loaded?  LAM_ERR_...: one could not be loaded.  Waits for at most `seconds`. */
lam_status lam_server_wait(lam_server *s, double seconds, int *ready);
/* Refuses new requests, lets running ones continue for `seconds`, then ends everything and frees the server. */
void lam_server_stop(lam_server *s, double seconds);

#endif
