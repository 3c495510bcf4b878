/* json.c -- loading and dumping JSON with honest errors. */
#include "io/json.h"

#include "core/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

lam_status lam_json_parse(json_t **out, const char *label, const char *text, size_t size)
{
    json_error_t error;
    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (*out)
        return LAM_OK;
    if (error.text[0] == '\0') /* what jansson leaves when an allocation failed */
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu bytes of JSON", label, size);
    return lam_fail(LAM_ERR_FORMAT, "%s: not JSON: line %d, column %d: %s", label, error.line,
                    error.column, error.text);
}

lam_status lam_json_load(json_t **out, const char *path, size_t limit)
{
    char *text;
    size_t size;
    *out = NULL;
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
