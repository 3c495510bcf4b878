/* server.h -- models behind HTTP (docs/serve.md).
 *
 * Threads: one for HTTP (libmicrohttpd, epoll), one compute thread for every model (worker.h), a clerk for large bodies and
 * replies (request.h), and one that watches connections for time limits and for clients that are gone (watchdog.c). */
#ifndef LAM_SERVE_SERVER_H
#define LAM_SERVE_SERVER_H

#include "infer/scheduler.h"

typedef struct lam_serve_model {
    const char *name;   /* as clients call it */
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
    int port;                 /* 0: any that is free */
    const char *key_file;     /* or NULL */
    const char *const *hosts; /* [n_hosts], kept: Host headers that are allowed too */
    int n_hosts;
    const char *state; /* folder that keeps sessions while the server is down, or NULL */
    int connections;   /* at most */
    double header_seconds, body_seconds; /* until headers, and then the body, must be there */
    int sessions;                        /* and snapshots, at most */
    size_t session_bytes;
    double idle_seconds; /* sessions that nobody used for so long make room for others */
} lam_serve_options;

typedef struct lam_server lam_server;

/* Listens and begins to load the models; requests are answered with 503 until they are there. */
lam_status lam_server_start(lam_server **out, const lam_serve_options *options);
int lam_server_port(const lam_server *s);
/* Are all models there?  LAM_ERR_...: one could not be loaded.  Waits for `seconds` at most. */
lam_status lam_server_wait(lam_server *s, double seconds, int *ready);
/* New requests are refused, what runs may go on for `seconds`; then everything ends.  Frees the server. */
void lam_server_stop(lam_server *s, double seconds);

#endif
