/* routes.c -- the table of routes and their handlers. */
#include "serve/handlers.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const lam_route routes[] = {
    {"GET",    "/",                          lam_get_page,           .open = 1, .always = 1},
    {"GET",    "/index.html",                lam_get_page,           .open = 1, .always = 1},
    {"GET",    "/style.css",                 lam_get_style,          .open = 1, .always = 1},
    {"GET",    "/app.js",                    lam_get_script,         .open = 1, .always = 1},
    {"GET",    "/health",                    lam_get_health,         .open = 1, .always = 1},
    {"GET",    "/metrics",                   lam_get_metrics,        .always = 1},
    {"GET",    "/v1/models",                 lam_get_models, .open = 0},
    {"GET",    "/v1/models/{name}",          lam_get_model, .open = 0},
    {"POST",   "/v1/completions",            lam_post_completions, .open = 0},
    {"POST",   "/tokenize",                  lam_post_tokenize, .open = 0},
    {"POST",   "/detokenize",                lam_post_detokenize, .open = 0},
    {"GET",    "/tokenizer_info",            lam_get_tokenizer_info, .open = 0},
    {"GET",    "/v1/sessions",               lam_get_sessions, .open = 0},
    {"POST",   "/v1/sessions",               lam_post_sessions, .open = 0},
    {"GET",    "/v1/sessions/{id}",          lam_get_session, .open = 0},
    {"DELETE", "/v1/sessions/{id}",          lam_delete_session, .open = 0},
    {"POST",   "/v1/sessions/{id}/feed",     lam_post_feed, .open = 0},
    {"POST",   "/v1/sessions/{id}/fork",     lam_post_fork, .open = 0},
    {"POST",   "/v1/sessions/{id}/snapshot", lam_post_snapshot, .open = 0},
    {"GET",    "/v1/sessions/{id}/memory",   lam_get_memory, .open = 0},
    {"POST",   "/v1/snapshots",              lam_put_snapshot, .open = 0},
    {"GET",    "/v1/snapshots/{id}",         lam_get_snapshot, .open = 0},
    {"PUT",    "/v1/snapshots/{id}",         lam_put_snapshot, .open = 0},
    {"DELETE", "/v1/snapshots/{id}",         lam_delete_snapshot, .open = 0},
};
/* clang-format on */
enum { ROUTES = sizeof routes / sizeof *routes };

/* Does the path fit the pattern?  An id is copied to `id`; *name is set to a name. */
static int fits(const char *pattern, const char *path, char id[LAM_ID_ROOM], const char **name)
{
    const char *const rest = strstr(pattern, "{name}");
    *name = NULL;
    if (rest) {
        const size_t n = (size_t)(rest - pattern);
        if (strncmp(pattern, path, n) != 0 || path[n] == '\0')
            return 0;
        *name = path + n;
        return 1;
    }
    const char *hole = strstr(pattern, "{id}");
    if (!hole)
        return strcmp(pattern, path) == 0;
    const size_t before = (size_t)(hole - pattern), length = LAM_ID_ROOM - 1;
    if (strncmp(pattern, path, before) != 0 || strlen(path) < before + length ||
        !lam_id_check(path + before, length) ||
        strcmp(hole + strlen("{id}"), path + before + length) != 0)
        return 0;
    memcpy(id, path + before, length);
    id[length] = '\0';
    return 1;
}

const lam_route *lam_route_find(const char *method, const char *path, char id[LAM_ID_ROOM],
                                const char **name, char allowed[LAM_ALLOW_ROOM])
{
    size_t n = 0;
    *allowed = '\0';
    for (int i = 0; i < ROUTES; i++)
        if (fits(routes[i].path, path, id, name)) {
            if (strcmp(routes[i].method, method) == 0)
                return &routes[i];
            n += (size_t)snprintf(allowed + n, LAM_ALLOW_ROOM - n, "%s%s", n > 0 ? ", " : "",
                                  routes[i].method);
        }
    return NULL;
}
