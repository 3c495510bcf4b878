/* auth.c -- see auth.h. */
#include "serve/auth.h"

#include "core/file.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MOST_KEYS = 1000, MOST_BYTES = 1 << 20, SHORTEST = 16, LONGEST = 256 };

/* ---- keys ---- */

static lam_status add_key(lam_auth *a, const char *path, const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (line[i] <= ' ' || line[i] > '~')
            return lam_fail(LAM_ERR_FORMAT, "%s: key %d has a character that no key may have", path,
                            a->n_keys + 1);
    if (size < SHORTEST || size > LONGEST)
        return lam_fail(LAM_ERR_FORMAT, "%s: key %d has %zu characters, must be %d to %d", path,
                        a->n_keys + 1, size, SHORTEST, LONGEST);
    if (a->n_keys == MOST_KEYS)
        return lam_fail(LAM_ERR_FORMAT, "%s: more than %d keys", path, MOST_KEYS);
    a->keys[a->n_keys] = strndup(line, size);
    if (!a->keys[a->n_keys])
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
    a->n_keys++;
    return LAM_OK;
}

lam_status lam_auth_load(lam_auth *a, const char *path)
{
    char *text;
    size_t size;
    struct stat about;
    LAM_TRY(lam_file_load(&text, &size, path, MOST_BYTES));
    if (stat(path, &about) == 0 && (about.st_mode & (S_IRGRP | S_IROTH)) != 0)
        lam_log(LAM_LOG_WARN, "%s: other users can read the API keys (chmod 600)", path);
    a->keys = calloc(MOST_KEYS, sizeof *a->keys);
    lam_status status = a->keys ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
    for (const char *at = text; status == LAM_OK && *at != '\0';) {
        const size_t line = strcspn(at, "\n");
        const size_t kept = line > 0 && at[line - 1] == '\r' ? line - 1 : line;
        if (kept > 0 && at[0] != '#')
            status = add_key(a, path, at, kept);
        at += line + (at[line] == '\n');
    }
    free(text);
    if (status == LAM_OK && a->n_keys == 0)
        status = lam_fail(LAM_ERR_FORMAT, "%s: has no key", path);
    if (status != LAM_OK)
        lam_auth_free(a);
    return status;
}

void lam_auth_free(lam_auth *a)
{
    for (int i = 0; i < a->n_keys; i++)
        free(a->keys[i]);
    free(a->keys);
    a->keys = NULL;
    a->n_keys = 0;
}

/* The same work for every text of a length, wherever it differs. */
static unsigned differs(const char *key, const char *text, size_t size)
{
    const size_t n = strlen(key);
    unsigned different = n != size;
    for (size_t i = 0; i < n; i++)
        different |= (unsigned char)key[i] ^ (unsigned char)text[size > 0 ? i % size : 0];
    return different;
}

int lam_auth_key(const lam_auth *a, const char *authorization)
{
    static const char bearer[] = "Bearer ";
    unsigned found = 0;
    if (a->n_keys == 0)
        return 1;
    if (!authorization || strncasecmp(authorization, bearer, sizeof bearer - 1) != 0)
        return 0;
    const char *text = authorization + sizeof bearer - 1;
    const size_t size = strlen(text);
    for (int i = 0; i < a->n_keys; i++)
        found |= differs(a->keys[i], text, size) == 0;
    return (int)found;
}

/* ---- Host and Origin headers ---- */

/* The name in "name", "name:8080", "[::1]:8080". */
static size_t name_size(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

int lam_auth_host(const lam_auth *a, const char *host)
{
    static const char *const here[] = {"localhost", "127.0.0.1", "[::1]"};
    if (!host)
        return 0;
    const size_t size = name_size(host);
    for (int i = 0; i < 3; i++)
        if (strlen(here[i]) == size && strncasecmp(here[i], host, size) == 0)
            return 1;
    for (int i = 0; i < a->n_hosts; i++)
        if (strlen(a->hosts[i]) == size && strncasecmp(a->hosts[i], host, size) == 0)
            return 1;
    return !a->loopback && a->n_hosts == 0;
}

int lam_auth_origin(const char *host, const char *origin)
{
    if (!origin)
        return 1;
    const char *place = strncmp(origin, "http://", 7) == 0    ? origin + 7
                        : strncmp(origin, "https://", 8) == 0 ? origin + 8
                                                              : NULL;
    return place && host && strcasecmp(place, host) == 0;
}
