/* memory_watch.h -- watched sessions: streams views of their memories as they advance. */
#ifndef LAM_SERVE_MEMORY_WATCH_H
#define LAM_SERVE_MEMORY_WATCH_H

#include "serve/worker.h"

/* Called in the worker's thread after a tick: views sessions that have advanced.  Returns the seconds until the next
 * view is due; negative: none is due until a session advances. */
double lam_watches_look(lam_worker *w);
/* The session is deleted. */
void lam_watches_deleted(lam_worker *w, const char *id);
/* The worker ends. */
void lam_watches_end(lam_worker *w);

#endif
