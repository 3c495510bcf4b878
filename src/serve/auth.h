/* auth.h -- who may ask: API keys, and browsers that are on this very server's page.
 *
 * A server on the loopback address is reached by any page that a browser on this machine has open, once the page's
 * name is made to resolve to 127.0.0.1 (DNS rebinding).  So the Host header must name this machine, and an Origin header the
 * same place as Host. */
#ifndef LAM_SERVE_AUTH_H
#define LAM_SERVE_AUTH_H

#include "core/status.h"

#include <stddef.h>

typedef struct lam_auth {
    char **keys; /* [n_keys]; none: everybody may */
    int n_keys;
    int loopback;             /* Host must be a name of the loopback address, or one of: */
    const char *const *hosts; /* [n_hosts], kept: names that are allowed too */
    int n_hosts;
} lam_auth;

/* One key a line; empty lines and those that begin with # are left out.  Each has 16 to 256 printable characters. */
lam_status lam_auth_load(lam_auth *a, const char *path);
void lam_auth_free(lam_auth *a);

/* Does "Bearer KEY" name a key?  Takes the same time wherever two keys differ.  NULL is no header. */
int lam_auth_key(const lam_auth *a, const char *authorization);
/* May a request have this Host header; this Origin header beside it?  NULL: there is none. */
int lam_auth_host(const lam_auth *a, const char *host);
int lam_auth_origin(const char *host, const char *origin);

#endif
