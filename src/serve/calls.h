/* calls.h -- a queue of calls from one thread to another, which never allocates. */
#ifndef LAM_SERVE_CALLS_H
#define LAM_SERVE_CALLS_H

#include <pthread.h>
#include <stdbool.h>

typedef struct lam_call lam_call;
/* Kept by its owner until it has run; in one queue at a time. */
struct lam_call {
    void (*run)(void *arg);
    void *arg;
    lam_call *next;
};

typedef struct lam_calls {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    lam_call *first, *last;
    bool woken, closing;
} lam_calls;

void lam_calls_open(lam_calls *q);
void lam_calls_close(lam_calls *q);

/* Any thread. */
void lam_calls_put(lam_calls *q, lam_call *call, void (*run)(void *arg), void *arg);
/* Wakes the waiting thread. */
void lam_calls_wake(lam_calls *q);
/* lam_calls_wait() no longer waits. */
void lam_calls_end(lam_calls *q);

/* Waits for a call or a wake-up, at most `seconds`; negative: without limit; 0: not at all. */
void lam_calls_wait(lam_calls *q, double seconds);
/* Runs all queued calls; false: there were none. */
bool lam_calls_run(lam_calls *q);
/* Has lam_calls_end() been called? */
bool lam_calls_ending(lam_calls *q);

#endif
