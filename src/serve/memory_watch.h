/* memory_watch.h -- sessions that are watched: what their memories do, told as they go on. */
#ifndef LAM_SERVE_MEMORY_WATCH_H
#define LAM_SERVE_MEMORY_WATCH_H

#include "serve/worker.h"

/* In the worker's thread, after a tick: looks at sessions that went on.  Returns the seconds until the next look is
 * due; negative: when something happens. */
double lam_watches_look(lam_worker *w);
/* The session is deleted. */
void lam_watches_deleted(lam_worker *w, const char *id);
/* The worker ends. */
void lam_watches_end(lam_worker *w);

#endif
