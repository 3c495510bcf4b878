/* http.h -- the callbacks of libmicrohttpd: requests, their completion, and connections (http.c), for its daemon
 * (daemon.c). */
#ifndef LAM_SERVE_HTTP_H
#define LAM_SERVE_HTTP_H

#include "serve/server_int.h"

#include <microhttpd.h>

enum MHD_Result lam_on_request(void *server, struct MHD_Connection *c, const char *path,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **context);
void lam_on_completed(void *server, struct MHD_Connection *c, void **context,
                      enum MHD_RequestTerminationCode code);
void lam_on_connection(void *server, struct MHD_Connection *c, void **socket_context,
                       enum MHD_ConnectionNotificationCode code);

#endif
