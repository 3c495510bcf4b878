/* json_field.c -- see json_field.h. */
#include "io/json_field.h"

#include "io/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INT = 1 << 30 }; /* two of them can be added */

/* ---- access to fields ---- */

static const void *place(const void *from, const lam_json_field *f)
{
    return (const char *)from + f->offset;
}

static void put_whole(void *to, const lam_json_field *f, int64_t n)
{
    void *at = (char *)to + f->offset;
    const int i = (int)n;
    const bool flag = n != 0;
    if (f->kind == LAM_JSON_LONG)
        memcpy(at, &n, sizeof n);
    else if (f->kind == LAM_JSON_FLAG)
        memcpy(at, &flag, sizeof flag);
    else
        memcpy(at, &i, sizeof i);
}

static void put_real(void *to, const lam_json_field *f, double x)
{
    memcpy((char *)to + f->offset, &x, sizeof x);
}

int64_t lam_field_whole(const void *from, const lam_json_field *f)
{
    int64_t n;
    int i;
    bool flag;
    if (f->kind == LAM_JSON_LONG) {
        memcpy(&n, place(from, f), sizeof n);
        return n;
    }
    if (f->kind == LAM_JSON_FLAG) {
        memcpy(&flag, place(from, f), sizeof flag);
        return flag;
    }
    memcpy(&i, place(from, f), sizeof i);
    return i;
}

double lam_field_number(const void *from, const lam_json_field *f)
{
    double x;
    if (f->kind != LAM_JSON_REAL)
        return (double)lam_field_whole(from, f);
    memcpy(&x, place(from, f), sizeof x);
    return x;
}

lam_json_reals lam_field_list(const void *from, const lam_json_field *f)
{
    lam_json_reals list;
    memcpy(&list, place(from, f), sizeof list);
    return list;
}

/* ---- from text ---- */

/* The number of a word in the list; -1: it is not there. */
static int word_number(const lam_json_field *f, const char *text)
{
    for (int i = 0; text && f->words[i]; i++)
        if (strcmp(f->words[i], text) == 0)
            return i;
    return -1;
}

static int set_list(void *to, const lam_json_field *f, const char *text)
{
    lam_json_reals list = {0};
    for (char *end; list.n < LAM_JSON_REALS_MAX; list.n++, text = end) {
        list.v[list.n] = strtod(text, &end);
        if (end == text)
            break;
    }
    memcpy((char *)to + f->offset, &list, sizeof list);
    return list.n > 0 && *text == '\0';
}

int lam_field_set(void *to, const lam_json_field *f, const char *text)
{
    char *end = NULL;
    switch (f->kind) {
    case LAM_JSON_REALS:
        return set_list(to, f, text);
    case LAM_JSON_WORD: {
        const int i = word_number(f, text);
        if (i >= 0)
            put_whole(to, f, i);
        return i >= 0;
    }
    case LAM_JSON_REAL:
        put_real(to, f, strtod(text, &end));
        break;
    case LAM_JSON_INT:
    case LAM_JSON_LONG:
    case LAM_JSON_BOOL:
    case LAM_JSON_FLAG:
        put_whole(to, f, strtoll(text, &end, 10));
        break;
    }
    return end != text && *end == '\0';
}

/* ---- writing JSON ---- */

static json_t *list_of(lam_json_reals reals)
{
    json_t *list = json_array();
    for (int i = 0; i < reals.n; i++)
        list = lam_json_add(list, json_real(reals.v[i]));
    return list;
}

int lam_json_put(json_t *object, const lam_json_field *f, const void *from)
{
    json_t *value = NULL;
    switch (f->kind) {
    case LAM_JSON_INT:
    case LAM_JSON_LONG:
        value = json_integer(lam_field_whole(from, f));
        break;
    case LAM_JSON_REAL:
        value = json_real(lam_field_number(from, f));
        break;
    case LAM_JSON_BOOL:
    case LAM_JSON_FLAG:
        value = json_boolean(lam_field_whole(from, f));
        break;
    case LAM_JSON_WORD:
        value = json_string(f->words[lam_field_whole(from, f)]);
        break;
    case LAM_JSON_REALS:
        value = list_of(lam_field_list(from, f));
        break;
    }
    return json_object_set_new(object, f->name, value);
}

/* ---- reading JSON ---- */

static lam_status refuse(const lam_json_field *f, const char *label, const char *wanted)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: %s must be %s", label, f->name, wanted);
}

static lam_status take_whole(void *to, const lam_json_field *f, const json_t *value,
                             const char *label)
{
    const json_int_t n = json_integer_value(value);
    if (!json_is_integer(value))
        return refuse(f, label, "an integer");
    if (f->kind != LAM_JSON_LONG && (n < -MOST_INT || n > MOST_INT))
        return lam_fail(LAM_ERR_FORMAT, "%s: %s is too large", label, f->name);
    put_whole(to, f, n);
    return LAM_OK;
}

static lam_status take_word(void *to, const lam_json_field *f, const json_t *value,
                            const char *label)
{
    const int i = word_number(f, json_string_value(value));
    if (i < 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s must be \"%s\" or another known word", label,
                        f->name, f->words[0]);
    put_whole(to, f, i);
    return LAM_OK;
}

static lam_status take_list(void *to, const lam_json_field *f, const json_t *list,
                            const char *label)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n < 1 || n > LAM_JSON_REALS_MAX)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s must be a list of 1 to %d numbers", label, f->name,
                        LAM_JSON_REALS_MAX);
    lam_json_reals reals = {.n = (int)n};
    for (size_t i = 0; i < n; i++) {
        if (!json_is_number(json_array_get(list, i)))
            return lam_fail(LAM_ERR_FORMAT, "%s: %s[%zu] must be a number", label, f->name, i);
        reals.v[i] = json_number_value(json_array_get(list, i));
    }
    memcpy((char *)to + f->offset, &reals, sizeof reals);
    return LAM_OK;
}

lam_status lam_json_take(void *to, const lam_json_field *f, const json_t *object, const char *label)
{
    const json_t *value = json_object_get(object, f->name);
    if (!value)
        return LAM_OK;
    switch (f->kind) {
    case LAM_JSON_INT:
    case LAM_JSON_LONG:
        return take_whole(to, f, value, label);
    case LAM_JSON_REAL:
        if (!json_is_number(value))
            return refuse(f, label, "a number");
        put_real(to, f, json_number_value(value));
        break;
    case LAM_JSON_BOOL:
    case LAM_JSON_FLAG:
        if (!json_is_boolean(value))
            return refuse(f, label, "true or false");
        put_whole(to, f, json_is_true(value));
        break;
    case LAM_JSON_WORD:
        return take_word(to, f, value, label);
    case LAM_JSON_REALS:
        return take_list(to, f, value, label);
    }
    return LAM_OK;
}
