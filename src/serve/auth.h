/* auth.h -- who may send requests: API keys, and checks that a browser is on this server's own page.
 *
 * Any page open in a browser on this machine can reach a server on the loopback address if the page's name is made to
 * resolve to 127.0.0.1 (DNS rebinding).  So the Host header must name this machine, and an Origin header must match
 * Host. */
#ifndef LAM_SERVE_AUTH_H
#define LAM_SERVE_AUTH_H

#include "core/status.h"

#include <stddef.h>

typedef struct lam_auth {
    char **keys; /* [n_keys]; none: no key is needed */
    int n_keys;
    int loopback;             /* Host must be a name of the loopback address, or one of: */
    const char *const *hosts; /* [n_hosts], kept: further names that are allowed */
    int n_hosts;
} lam_auth;

/* Reads one key per line of 16 to 256 printable characters; skips empty lines and lines that begin with #. */
lam_status lam_auth_load(lam_auth *a, const char *path);
void lam_auth_free(lam_auth *a);

/* Does "Bearer KEY" name a key?  The comparison takes the same time wherever two keys differ.  NULL: no header. */
int lam_auth_key(const lam_auth *a, const char *authorization);
/* May a request have this Host header; this Origin header beside it?  NULL: there is none. */
int lam_auth_host(const lam_auth *a, const char *host);
int lam_auth_origin(const char *host, const char *origin);

#endif
