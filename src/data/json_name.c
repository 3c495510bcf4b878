/* json_name.c -- see json_name.h. */
#include "data/json_name.h"

#include "data/utf8.h"

#include <stdlib.h>
#include <string.h>

json_t *lam_json_name(const char *name)
{
    return lam_json_bytes(name, strlen(name));
}

json_t *lam_json_bytes(const char *bytes, size_t size)
{
    char *const clean = malloc(3 * size + 1), *to = clean;
    if (!clean)
        return NULL;
    for (size_t at = 0; at < size;) {
        int32_t code;
        const int n = lam_utf8_decode((const unsigned char *)bytes + at, size - at, &code);
        const size_t whole = n > 0 ? (size_t)n : 1;
        memcpy(to, n > 0 ? bytes + at : "\xEF\xBF\xBD", n > 0 ? whole : 3);
        to += n > 0 ? whole : 3;
        at += whole;
    }
    json_t *const string = json_stringn(clean, (size_t)(to - clean));
    free(clean);
    return string;
}
