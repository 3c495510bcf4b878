/* json.c -- loads and dumps JSON, with error messages that name the file and the reason. */
#include "io/json.h"

#include "core/budget.h"
#include "core/file.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* jansson takes 230 bytes for "{}" and 140 for "[]"; everything else takes 30 for each byte of the text, or less.
 * What is written for people and programs to read has a list or object for every ten bytes at most. */
enum { MIN_CONTAINERS = 1024, BYTES_EACH = 6 };
enum { CONTAINER = 230, VALUE = 64 }; /* bytes of memory */

/* How many lists and objects begin in the text, and commas and colons, one for each value that is not the first of
 * its list. */
static size_t count_containers(size_t *values, const char *text, size_t size)
{
    size_t n = 0;
    *values = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted && text[i] == '\\')
            i++;
        else if (!quoted && (text[i] == '[' || text[i] == '{'))
            n++;
        else if (!quoted && (text[i] == ',' || text[i] == ':'))
            ++*values;
    }
    return n;
}

lam_status lam_json_parse(json_t **out, const char *label, const char *text, size_t size)
{
    json_error_t error;
    const size_t most = size / BYTES_EACH + MIN_CONTAINERS;
    size_t values;
    *out = NULL;
    const size_t containers = count_containers(&values, text, size);
    if (containers > most)
        return lam_fail(LAM_ERR_FORMAT, "%s: JSON of more than %zu lists and objects in %zu bytes",
                        label, most, size);
    LAM_TRY(lam_budget_ask(label, size + CONTAINER * containers + VALUE * values));
    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (*out)
        return LAM_OK;
    if (error.text[0] == '\0') /* what jansson leaves when an allocation failed */
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu bytes of JSON", label, size);
    if (json_error_code(&error) == json_error_null_character) /* jansson names its own option */
        return lam_fail(LAM_ERR_FORMAT, "%s: line %d, column %d: \\u0000 is not allowed", label,
                        error.line, error.column);
    return lam_fail(LAM_ERR_FORMAT, "%s: not JSON: line %d, column %d: %s", label, error.line,
                    error.column, error.text);
}

/* A file that is longer than it seems, a sparse one, is not read: it would take memory for all of its zeros. */
static lam_status refuse_zeros(const char *path, size_t limit)
{
    lam_map map;
    LAM_TRY(lam_map_open(&map, path));
    const int found = map.size <= limit && memchr(map.data, '\0', map.size) != NULL;
    lam_map_close(&map);
    return found ? lam_fail(LAM_ERR_FORMAT, "%s: not JSON: it has a byte 0", path) : LAM_OK;
}

lam_status lam_json_load(json_t **out, const char *path, size_t limit)
{
    char *text;
    size_t size;
    *out = NULL;
    LAM_TRY(refuse_zeros(path, limit));
    LAM_TRY(lam_file_load(&text, &size, path, limit));
    const lam_status status = lam_json_parse(out, path, text, size);
    free(text);
    return status;
}

json_t *lam_json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

lam_status lam_json_text(char **out, size_t *size, const json_t *json, size_t flags)
{
    *out = NULL;
    if (size)
        *size = 0;
    /* Counted first, then written into a buffer that cannot be too small: unlike json_dumps(), no
     * allocation happens where its failure would go unnoticed. */
    const size_t length = json_dumpb(json, NULL, 0, flags);
    char *const text = length ? malloc(length + 1) : NULL;
    if (!text || json_dumpb(json, text, length, flags) != length) {
        free(text);
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu bytes of JSON", length);
    }
    text[length] = '\0';
    *out = text;
    if (size)
        *size = length;
    return LAM_OK;
}

static json_t *or_null(json_t *json, int failed)
{
    if (failed)
        json_decref(json);
    return failed ? NULL : json;
}

json_t *lam_json_add(json_t *list, json_t *item)
{
    return or_null(list, json_array_append_new(list, item));
}

json_t *lam_json_set(json_t *object, const char *key, json_t *value)
{
    return or_null(object, json_object_set_new(object, key, value));
}

/* Do all numbers come back from 15 digits, which is as many as a double can keep of what people write? */
static int survives(const json_t *json)
{
    char text[32];
    size_t i;
    const char *name;
    json_t *value;
    if (json_is_real(json)) {
        snprintf(text, sizeof text, "%.15g", json_real_value(json));
        return strtod(text, NULL) == json_real_value(json);
    }
    int all = 1;
    json_array_foreach(json, i, value) {
        all &= survives(value);
    }
    json_object_foreach((json_t *)json, name, value) {
        all &= survives(value);
    }
    return all;
}

lam_status lam_json_text_short(char **out, const json_t *json, size_t flags)
{
    return lam_json_text(out, NULL, json, flags | (survives(json) ? JSON_REAL_PRECISION(15) : 0));
}

lam_status lam_json_save(const char *path, json_t *root, size_t flags)
{
    char *text = NULL;
    size_t size = 0;
    lam_status status = root ? lam_json_text(&text, &size, root, flags)
                             : lam_fail(LAM_ERR_MEMORY, "%s: no memory for it", path);
    if (status == LAM_OK)
        status = lam_file_save(path, text, size);
    json_decref(root);
    free(text);
    return status;
}
