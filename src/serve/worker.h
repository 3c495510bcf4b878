/* worker.h -- a model and the one thread that computes with it.
 *
 * Everything about the model's texts happens in this thread: others leave calls for it (calls.h), which run between
 * two ticks of its scheduler. */
#ifndef LAM_SERVE_WORKER_H
#define LAM_SERVE_WORKER_H

#include "infer/scheduler.h"
#include "serve/calls.h"
#include "serve/server.h"

#include <stdatomic.h>

typedef enum lam_worker_state { LAM_LOADING, LAM_READY, LAM_BROKEN } lam_worker_state;

typedef struct lam_watcher lam_watcher;       /* memory_watch.c */
typedef struct lam_completion lam_completion; /* completion.h */

typedef struct lam_worker {
    lam_server *server;
    const lam_serve_model *model;
    lam_calls calls;
    pthread_t thread;
    int started;
    atomic_int state;   /* lam_worker_state */
    char problem[1024]; /* why it is broken */
    lam_dev *dev;
    /* From LAM_READY on: */
    lam_engine *engine;
    char hash[33]; /* of the model's files */
    time_t loaded;
    lam_scheduler *scheduler; /* of its thread */
    lam_watcher *watches;     /* likewise */
    char (*stored)[33];       /* likewise: ids of sessions that came from files (state.c) */
    size_t n_stored, stored_room;
    lam_completion *untold; /* likewise: streams with something that their readers do not know of */
    double told;            /* likewise: when readers were last woken */
    atomic_int jobs;        /* that were let in and have not ended */
    atomic_llong tokens;    /* of their prompts */
    pthread_mutex_t lock;
    lam_scheduler_load load; /* after the last tick; guarded by lock */
} lam_worker;

lam_status lam_worker_start(lam_worker *w, lam_server *server, const lam_serve_model *model);
/* Once no job is left.  Runs the calls that are still there. */
void lam_worker_stop(lam_worker *w);

/* Lets so many jobs and tokens of prompts in, or says that the queue is full. */
int lam_worker_let_in(lam_worker *w, int jobs, size_t tokens);
void lam_worker_let_out(lam_worker *w, int jobs, size_t tokens);
lam_scheduler_load lam_worker_look(lam_worker *w);

#endif
