/* background.h -- one thread that does pieces of work, one after the other, while the caller goes on. */
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

/* One more piece; returns at once.  After one that failed all later ones are dropped. */
void lam_background_give(lam_background *b, size_t from, size_t count);
/* Until all are done.  Status and message of the first that failed become the caller's. */
lam_status lam_background_wait(lam_background *b);
/* Seconds of work so far; not while there is some. */
double lam_background_busy(const lam_background *b);

#endif
