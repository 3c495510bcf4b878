/* option_values.c -- from the text of an option to its field, strictly. */
#include "cli/options.h"

#include "cli/spelling.h"
#include "core/decimal.h"
#include "train/settings.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The first `len` characters of `text`, which end there or at a comma. */
static lam_status set_int(const lam_option *o, const char *text, size_t len, const int64_t limit[2],
                          int64_t *out)
{
    const char *const digits = text + (*text == '-' || *text == '+'); /* no blanks in front */
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (len == 0 || !isdigit((unsigned char)*digits) || end != text + len || errno != 0 ||
        v < limit[0] || v > limit[1])
        return lam_fail(LAM_ERR_ARG, "--%s: '%.*s' is not an integer between %lld and %lld",
                        o->name, (int)len, text, (long long)limit[0], (long long)limit[1]);
    *out = v;
    return LAM_OK;
}

static lam_status set_double(const lam_option *o, const char *text, double *out)
{
    const bool bounded = o->min != 0 || o->max != 0;
    double v;
    const size_t size = lam_decimal(&v, text);
    if (size > 0 && text[size] == '\0' && (!bounded || (v >= o->min && v <= o->max))) {
        *out = v;
        return LAM_OK;
    }
    if (!bounded)
        return lam_fail(LAM_ERR_ARG, "--%s: '%s' is not a finite number", o->name, text);
    return lam_fail(LAM_ERR_ARG, "--%s: '%s' is not a number between %g and %g", o->name, text,
                    o->min, o->max);
}

/* Powers of 1000, as sizes are printed; with an i, of 1024. */
static lam_status set_size(const lam_option *o, const char *text, int64_t *out)
{
    static const char letters[] = "kMGT";
    double bytes;
    const char *end = text + lam_decimal(&bytes, text);
    const char *const letter = *end ? strchr(letters, *end == 'K' ? 'k' : *end) : NULL;
    const double unit = letter && end[1] == 'i' ? 1024.0 : 1000.0;
    for (const char *p = letters; letter && p <= letter; p++)
        bytes *= unit;
    end += letter ? 1 + (end[1] == 'i') : 0;
    end += *end == 'B';
    if (end == text || *end != '\0' || !(bytes >= 1.0 && bytes < 9e18))
        return lam_fail(LAM_ERR_ARG, "--%s: '%s' is not a size such as 500M, 2G or 1.5GiB", o->name,
                        text);
    *out = (int64_t)bytes;
    return LAM_OK;
}

static lam_status set_choice(const lam_option *o, const char *text, int *out)
{
    char list[512] = "";
    for (int i = 0; o->choices[i] != NULL; i++) {
        if (strcmp(o->choices[i], text) == 0) {
            *out = i;
            return LAM_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", o->choices[i]);
    }
    const char *const near = lam_closest(text, o->choices);
    return lam_fail(LAM_ERR_ARG, "--%s: '%s' is not one of %s%s%s%s", o->name, text, list,
                    near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static lam_status set_ints(const lam_option *o, const char *text, const int64_t limit[2],
                           lam_int_list *out)
{
    lam_int_list list = {0};
    for (const char *p = text; p != NULL;) {
        const size_t len = strcspn(p, ",");
        int64_t v = 0;
        if (list.n == LAM_LIST_MAX)
            return lam_fail(LAM_ERR_ARG, "--%s: more than %d numbers", o->name, LAM_LIST_MAX);
        LAM_TRY(set_int(o, p, len, limit, &v));
        list.v[list.n++] = (int)v;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    *out = list;
    return LAM_OK;
}

static lam_status set_reset(const lam_option *o, const char *text, lam_reset *out)
{
    return lam_reset_parse(out, text) == LAM_OK
               ? LAM_OK
               : lam_fail(LAM_ERR_ARG, "--%s: %s", o->name, lam_error());
}

static lam_status add_string(const lam_option *o, const char *text, lam_string_list *list)
{
    if (list->n == LAM_LIST_MAX)
        return lam_fail(LAM_ERR_ARG, "--%s: given more than %d times", o->name, LAM_LIST_MAX);
    list->v[list->n++] = text;
    return LAM_OK;
}

/* Up to ten digits, which can be typed again. */
static lam_status set_seed(const lam_option *o, const char *text, int64_t *out)
{
    const int64_t limit[2] = {INT64_MIN, INT64_MAX};
    uint32_t bits;
    if (strcmp(text, "random") == 0) {
        if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
            return lam_fail(LAM_ERR_IO, "--%s random: the system has no random numbers", o->name);
        *out = bits;
        return LAM_OK;
    }
    if (set_int(o, text, strlen(text), limit, out) == LAM_OK)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "%s, nor random", lam_error());
}

lam_status lam_option_set(const lam_option *o, void *options, const char *text)
{
    void *field = (char *)options + o->offset;
    const bool bounded = o->type != LAM_OPT_DOUBLE && (o->min != 0 || o->max != 0);
    const bool wide = o->type == LAM_OPT_INT64;
    const int64_t limit[2] = {bounded ? (int64_t)o->min
                              : wide  ? INT64_MIN
                                      : INT_MIN,
                              bounded ? (int64_t)o->max
                              : wide  ? INT64_MAX
                                      : INT_MAX};
    int64_t v = 0;

    switch (o->type) {
    case LAM_OPT_FLAG:
        *(bool *)field = true;
        return LAM_OK;
    case LAM_OPT_INT:
        LAM_TRY(set_int(o, text, strlen(text), limit, &v));
        *(int *)field = (int)v;
        return LAM_OK;
    case LAM_OPT_INT64:
        return set_int(o, text, strlen(text), limit, field);
    case LAM_OPT_SEED:
        return set_seed(o, text, field);
    case LAM_OPT_DOUBLE:
        return set_double(o, text, field);
    case LAM_OPT_SIZE:
        return set_size(o, text, field);
    case LAM_OPT_CHOICE:
        return set_choice(o, text, field);
    case LAM_OPT_INTS:
        return set_ints(o, text, limit, field);
    case LAM_OPT_RESET:
        return set_reset(o, text, field);
    case LAM_OPT_STRINGS:
        return add_string(o, text, field);
    case LAM_OPT_PATH:
        if (*text == '\0')
            return lam_fail(LAM_ERR_ARG, "--%s: the name is empty", o->name);
        *(const char **)field = text;
        return LAM_OK;
    case LAM_OPT_STRING:
        *(const char **)field = text;
        return LAM_OK;
    case LAM_OPT_GROUP:
    case LAM_OPT_REST:
    case LAM_OPT_MORE:
        break;
    }
    assert(0 && "a heading has no value");
    return LAM_OK;
}

size_t lam_option_size(const lam_option *option)
{
    return option->type == LAM_OPT_DOUBLE  ? sizeof(double)
           : option->type == LAM_OPT_INT64 ? sizeof(int64_t)
           : option->type == LAM_OPT_SIZE  ? sizeof(int64_t)
           : option->type == LAM_OPT_SEED  ? sizeof(int64_t)
           : option->type == LAM_OPT_RESET ? sizeof(lam_reset)
           : option->type == LAM_OPT_FLAG  ? sizeof(bool)
                                           : sizeof(int);
}
