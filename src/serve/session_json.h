/* session_json.h -- what the session_*.c and snapshot_*.c files share. */
#ifndef LAM_SERVE_SESSION_JSON_H
#define LAM_SERVE_SESSION_JSON_H

#include "serve/server_int.h"

/* A session or a snapshot as an object. */
void lam_held_json(lam_text *t, const lam_held *held);

/* Leaves the request to the worker that has the id of its path; 404 where there is none.  `run` gets the request. */
void lam_to_owner(lam_request *x, lam_held_kind kind, void (*run)(void *x));
/* In the worker's thread: what the request is about; NULL: it was answered, since it is gone or, where it must not be,
 * at work. */
lam_held *lam_request_held(lam_request *x, lam_held_kind kind, int idle);
/* Replies with it and ends the request, which `lam_to_owner` has held. */
void lam_reply_held(lam_request *x, int status, const lam_held *held);
/* Ends it with the reply that it has. */
void lam_request_finish(lam_request *x);
/* Refuses what did not find room on the shelf. */
void lam_reply_no_room(lam_request *x, lam_status status);

#endif
