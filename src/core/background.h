/* background.h -- one thread that runs work items in order while the caller continues. */
#ifndef LAM_CORE_BACKGROUND_H
#define LAM_CORE_BACKGROUND_H

#include "core/status.h"

#include <stddef.h>

typedef struct lam_background lam_background;

/* A piece of work: `count` things from number `from` on. */
typedef lam_status lam_background_work(void *user, size_t from, size_t count);

/* Starts the thread, which sleeps until there is something to do.  Signals go to other threads. */
lam_status lam_background_start(lam_background **out, lam_background_work *work, void *user);
void lam_background_stop(lam_background *b); /* after lam_background_wait(); NULL is fine */

/* Queues one more item and returns at once.  After a failed item all later ones are dropped. */
void lam_background_give(lam_background *b, size_t from, size_t count);
/* Waits until all are done.  Status and message of the first failure become the caller's. */
lam_status lam_background_wait(lam_background *b);
/* Seconds of work so far; call this only while no work is queued. */
double lam_background_busy(const lam_background *b);

#endif
