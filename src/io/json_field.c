/* json_field.c -- see json_field.h. */
#include "io/json_field.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MOST_INT = 1 << 30 }; /* two of them can be added */

static json_t *list_of(const lam_json_reals *reals)
{
    json_t *list = json_array();
    for (int i = 0; i < reals->n; i++)
        json_array_append_new(list, json_real(reals->v[i]));
    if ((int)json_array_size(list) == reals->n)
        return list;
    json_decref(list);
    return NULL;
}

int lam_json_put(json_t *object, const lam_json_field *f, const void *from)
{
    const void *at = (const char *)from + f->offset;
    json_t *value = NULL;
    switch (f->kind) {
    case LAM_JSON_INT:
        value = json_integer(*(const int *)at);
        break;
    case LAM_JSON_LONG:
        value = json_integer(*(const int64_t *)at);
        break;
    case LAM_JSON_REAL:
        value = json_real(*(const double *)at);
        break;
    case LAM_JSON_BOOL:
        value = json_boolean(*(const int *)at);
        break;
    case LAM_JSON_FLAG:
        value = json_boolean(*(const bool *)at);
        break;
    case LAM_JSON_WORD:
        value = json_string(f->words[*(const int *)at]);
        break;
    case LAM_JSON_REALS:
        value = list_of(at);
        break;
    }
    return json_object_set_new(object, f->name, value);
}

static lam_status refuse(const lam_json_field *f, const char *label, const char *wanted)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: %s must be %s", label, f->name, wanted);
}

static lam_status take_whole(void *at, const lam_json_field *f, const json_t *value,
                             const char *label)
{
    const json_int_t n = json_integer_value(value);
    if (!json_is_integer(value))
        return refuse(f, label, "an integer");
    if (f->kind == LAM_JSON_LONG)
        *(int64_t *)at = n;
    else if (n < -MOST_INT || n > MOST_INT)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s is too large", label, f->name);
    else
        *(int *)at = (int)n;
    return LAM_OK;
}

static lam_status take_word(int *at, const lam_json_field *f, const json_t *value,
                            const char *label)
{
    const char *text = json_string_value(value);
    for (int i = 0; text && f->words[i]; i++)
        if (strcmp(text, f->words[i]) == 0) {
            *at = i;
            return LAM_OK;
        }
    return lam_fail(LAM_ERR_FORMAT, "%s: %s must be \"%s\" or another known word", label, f->name,
                    f->words[0]);
}

static lam_status take_reals(lam_json_reals *to, const lam_json_field *f, const json_t *list,
                             const char *label)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n < 1 || n > LAM_JSON_REALS_MAX)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s must be a list of 1 to %d numbers", label, f->name,
                        LAM_JSON_REALS_MAX);
    *to = (lam_json_reals){.n = (int)n};
    for (size_t i = 0; i < n; i++) {
        if (!json_is_number(json_array_get(list, i)))
            return lam_fail(LAM_ERR_FORMAT, "%s: %s[%zu] must be a number", label, f->name, i);
        to->v[i] = json_number_value(json_array_get(list, i));
    }
    return LAM_OK;
}

lam_status lam_json_take(void *to, const lam_json_field *f, const json_t *object, const char *label)
{
    void *at = (char *)to + f->offset;
    const json_t *value = json_object_get(object, f->name);
    if (!value)
        return LAM_OK;
    switch (f->kind) {
    case LAM_JSON_INT:
    case LAM_JSON_LONG:
        return take_whole(at, f, value, label);
    case LAM_JSON_REAL:
        if (!json_is_number(value))
            return refuse(f, label, "a number");
        *(double *)at = json_number_value(value);
        break;
    case LAM_JSON_BOOL:
    case LAM_JSON_FLAG:
        if (!json_is_boolean(value))
            return refuse(f, label, "true or false");
        if (f->kind == LAM_JSON_FLAG)
            *(bool *)at = json_is_true(value);
        else
            *(int *)at = json_is_true(value);
        break;
    case LAM_JSON_WORD:
        return take_word(at, f, value, label);
    case LAM_JSON_REALS:
        return take_reals(at, f, value, label);
    }
    return LAM_OK;
}
