/* state.h -- sessions that outlive the server: saved when it stops, loaded when it starts. */
#ifndef LAM_SERVE_STATE_H
#define LAM_SERVE_STATE_H

#include "serve/worker.h"

/* Sessions of the worker's model that are in the folder; files of other models stay where they are, damaged ones are
 * told of. */
lam_status lam_state_load(lam_worker *w);
/* Saves the worker's sessions, and removes the files of those that were loaded and are not there any more. */
void lam_state_save(lam_worker *w);

#endif
