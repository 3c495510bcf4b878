/* handlers.h -- the handlers of the routes in routes.c.  A handler runs in the HTTP thread or, with a large body, in
 * the clerk's, and leaves work on a model's texts to the model's worker. */
#ifndef LAM_SERVE_HANDLERS_H
#define LAM_SERVE_HANDLERS_H

#include "serve/request.h"

/* page.c */
void lam_get_page(lam_request *x);
void lam_get_style(lam_request *x);
void lam_get_script(lam_request *x);
/* metrics.c */
void lam_get_health(lam_request *x);
void lam_get_metrics(lam_request *x);
/* model_routes.c */
void lam_get_models(lam_request *x);
void lam_get_model(lam_request *x);
void lam_post_tokenize(lam_request *x);
void lam_post_detokenize(lam_request *x);
void lam_get_tokenizer_info(lam_request *x);
/* complete.c */
void lam_post_completions(lam_request *x);
/* session_routes.c */
void lam_get_sessions(lam_request *x);
void lam_post_sessions(lam_request *x);
void lam_get_session(lam_request *x);
void lam_delete_session(lam_request *x);
void lam_post_fork(lam_request *x);
void lam_post_snapshot(lam_request *x);
/* feed.c */
void lam_post_feed(lam_request *x);
/* memory_watch.c */
void lam_get_memory(lam_request *x);
/* snapshot_routes.c */
void lam_put_snapshot(lam_request *x);
void lam_get_snapshot(lam_request *x);
void lam_delete_snapshot(lam_request *x);

#endif
