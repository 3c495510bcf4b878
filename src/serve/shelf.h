/* shelf.h -- sessions and snapshots by their ids.
 *
 * What stands on the shelf belongs to a model's worker, whose thread alone touches and frees it.  Other threads may
 * ask whose an id is. */
#ifndef LAM_SERVE_SHELF_H
#define LAM_SERVE_SHELF_H

#include "infer/timeline.h"
#include "serve/reply.h"
#include "serve/worker.h"

#include <time.h>

typedef enum lam_held_kind { LAM_SESSION, LAM_SNAPSHOT } lam_held_kind;

typedef struct lam_held lam_held;
struct lam_held {
    lam_held_kind kind;
    char id[LAM_ID_ROOM];
    lam_worker *worker;
    lam_timeline *text;
    int busy; /* a job has the text */
    time_t created;
    double used;      /* when, last */
    uint64_t version; /* moves when the text does */
    size_t bytes;     /* that were counted for it */
    lam_held *next;
};

typedef struct lam_shelf {
    pthread_mutex_t lock;
    lam_held *first;
    int n, most;
    size_t bytes, limit;
    double idle;
} lam_shelf;

void lam_shelf_open(lam_shelf *shelf, int most, size_t limit, double idle);
void lam_shelf_close(lam_shelf *shelf); /* frees what is left: no worker runs any more */

/* The worker of an id; NULL: there is none of this kind. */
lam_worker *lam_shelf_whose(lam_shelf *shelf, lam_held_kind kind, const char *id);

/* The rest is for the worker's thread. */
lam_held *lam_shelf_find(lam_shelf *shelf, lam_worker *w, lam_held_kind kind, const char *id);
/* Puts a text there, under `id`, or under a new one where that is NULL.  The text is the shelf's, whatever happens.
 * LAM_ERR_UNSUPPORTED: there is no room; LAM_ERR_ARG: the id is taken. */
lam_status lam_shelf_put(lam_shelf *shelf, lam_held **out, lam_worker *w, lam_held_kind kind,
                         lam_timeline *text, const char *id);
void lam_shelf_remove(lam_shelf *shelf, lam_held *held);
/* The text went on. */
void lam_shelf_moved(lam_shelf *shelf, lam_held *held);
/* Calls `look` with each of a worker's. */
void lam_shelf_each(lam_shelf *shelf, const lam_worker *w, void (*look)(void *user, lam_held *held),
                    void *user);

#endif
