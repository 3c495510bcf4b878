/* fields.c -- see fields.h. */
#include "mem/fields.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- the struct of a memory ---- */

static int number_of(const lam_mem_ops *mem)
{
    int i = 0;
    while (lam_mem_all[i] != mem)
        i++;
    return i;
}

static void *block_of(lam_config *cfg, const lam_mem_ops *mem)
{
    return cfg->own[number_of(mem)].bytes;
}

static const void *block_in(const lam_config *cfg, const lam_mem_ops *mem)
{
    return cfg->own[number_of(mem)].bytes;
}

void lam_fields_get(void *own, size_t size, const lam_config *cfg, const lam_mem_ops *mem)
{
    assert(size <= LAM_OWN_BYTES);
    memcpy(own, block_in(cfg, mem), size);
}

void lam_fields_put(lam_config *cfg, const lam_mem_ops *mem, const void *own, size_t size)
{
    assert(size <= LAM_OWN_BYTES);
    memcpy(block_of(cfg, mem), own, size);
}

size_t lam_fields_offset(const lam_mem_ops *mem)
{
    return offsetof(lam_config, own) + (size_t)number_of(mem) * sizeof(lam_own_fields);
}

/* The rows of a memory, which may have none. */
static const lam_mem_field *rows_of(const lam_mem_ops *mem)
{
    static const lam_mem_field none[1];
    return mem->fields ? mem->fields : none;
}

/* ---- text ---- */

static int set_word(int *at, const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0) {
            *at = i;
            return 1;
        }
    return 0;
}

static int set_reals(lam_json_reals *list, const char *text)
{
    char *end;
    *list = (lam_json_reals){0};
    for (; list->n < LAM_JSON_REALS_MAX; text = end) {
        list->v[list->n] = strtod(text, &end);
        if (end == text)
            break;
        list->n++;
    }
    return list->n > 0 && *text == '\0';
}

/* 0: it cannot be that. */
static int set_field(void *own, const lam_mem_field *f, const char *text)
{
    void *at = (char *)own + f->json.offset;
    char *end = NULL;
    switch (f->json.kind) {
    case LAM_JSON_INT:
        *(int *)at = (int)strtol(text, &end, 10);
        break;
    case LAM_JSON_REAL:
        *(double *)at = strtod(text, &end);
        break;
    case LAM_JSON_FLAG:
        *(bool *)at = strtol(text, &end, 10) != 0;
        break;
    case LAM_JSON_WORD:
        return set_word(at, f->json.words, text);
    case LAM_JSON_REALS:
        return set_reals(at, text);
    case LAM_JSON_LONG:
    case LAM_JSON_BOOL:
        assert(0 && "no memory has fields of this kind");
    }
    return end != text && *end == '\0';
}

static double value_of(const void *own, const lam_mem_field *f)
{
    const void *at = (const char *)own + f->json.offset;
    return f->json.kind == LAM_JSON_REAL   ? *(const double *)at
           : f->json.kind == LAM_JSON_FLAG ? *(const bool *)at
                                           : *(const int *)at;
}

void lam_fields_default(lam_config *cfg, const lam_mem_ops *mem)
{
    void *own = block_of(cfg, mem);
    memset(own, 0, LAM_OWN_BYTES);
    for (const lam_mem_field *f = rows_of(mem); f->json.name; f++)
        if (f->value && !set_field(own, f, f->value))
            assert(0 && "the default is not a legal value");
}

void lam_fields_fresh(lam_config *cfg, const lam_mem_ops *mem)
{
    for (const lam_mem_field *f = rows_of(mem); f->json.name; f++)
        if (f->fresh && !set_field(block_of(cfg, mem), f, f->fresh))
            assert(0 && "the preset's value is not legal");
}

void lam_fields_take_lengths(lam_config *to, const lam_config *from)
{
    for (int i = 0; lam_mem_all[i]; i++)
        for (const lam_mem_field *f = rows_of(lam_mem_all[i]); f->json.name; f++)
            if (f->follows != LAM_ON_ITS_OWN && !f->weighs)
                memcpy(to->own[i].bytes + f->json.offset, from->own[i].bytes + f->json.offset,
                       sizeof(int));
}

/* The row of `key` and the memory it belongs to. */
static const lam_mem_field *find(const char *key, const lam_mem_ops **mem)
{
    for (int i = 0; lam_mem_all[i]; i++)
        for (const lam_mem_field *f = rows_of(lam_mem_all[i]); f->json.name; f++)
            if (strcmp(f->json.name, key) == 0) {
                *mem = lam_mem_all[i];
                return f;
            }
    return NULL;
}

lam_status lam_fields_set(lam_config *cfg, const char *key, const char *text)
{
    const lam_mem_ops *mem;
    const lam_mem_field *f = find(key, &mem);
    if (!f)
        return lam_fail(LAM_ERR_ARG, "config: no memory has a field %s", key);
    if (!set_field(block_of(cfg, mem), f, text))
        return lam_fail(LAM_ERR_ARG, "config: %s cannot be '%s'", key, text);
    return LAM_OK;
}

double lam_fields_value(const lam_config *cfg, const char *key)
{
    const lam_mem_ops *mem;
    const lam_mem_field *f = find(key, &mem);
    return f ? value_of(block_in(cfg, mem), f) : NAN;
}

/* ---- rules ---- */

int lam_fields_written(const lam_mem_ops *mem, const lam_mem_ops *model)
{
    return mem == model || mem->in_every_file;
}

static lam_status check_real(const char *name, double x, lam_real_rule rule)
{
    static const char *const words[] = {"0 or more", "above 0", "above 0 and below 1"};
    const int ok = rule == LAM_NOT_NEGATIVE ? x >= 0.0 && isfinite(x)
                   : rule == LAM_POSITIVE   ? x > 0.0 && isfinite(x)
                                            : x > 0.0 && x < 1.0;
    return ok ? LAM_OK
              : lam_fail(LAM_ERR_ARG, "config: %s is %g, must be %s", name, x, words[rule]);
}

static lam_status check_field(const void *own, const lam_mem_field *f)
{
    if (f->json.kind == LAM_JSON_REALS) {
        const lam_json_reals *list = (const void *)((const char *)own + f->json.offset);
        for (int i = 0; i < list->n; i++)
            LAM_TRY(check_real(f->json.name, list->v[i], f->rule));
        return LAM_OK;
    }
    const double x = value_of(own, f);
    if (f->json.kind == LAM_JSON_REAL)
        return check_real(f->json.name, x, f->rule);
    if (f->json.kind == LAM_JSON_INT && (x < f->min || x > f->max))
        return lam_fail(LAM_ERR_ARG, "config: %s is %.0f, must be %.0f to %.0f", f->json.name, x,
                        f->min, f->max);
    return LAM_OK;
}

lam_status lam_fields_check(const lam_config *cfg, const lam_mem_ops *mem)
{
    for (const lam_mem_field *f = rows_of(mem); f->json.name; f++)
        LAM_TRY(check_field(block_in(cfg, mem), f));
    return LAM_OK;
}

/* ---- JSON ---- */

lam_status lam_fields_read(lam_config *cfg, const lam_mem_ops *mem, const json_t *object,
                           const char *label)
{
    for (const lam_mem_field *f = rows_of(mem); f->json.name; f++)
        LAM_TRY(lam_json_take(block_of(cfg, mem), &f->json, object, label));
    return LAM_OK;
}

/* The field that follows the place `at` in the struct. */
static const lam_mem_field *next_field(const lam_mem_ops *mem, size_t at)
{
    const lam_mem_field *next = NULL;
    for (const lam_mem_field *f = rows_of(mem); f->json.name; f++)
        if (f->json.offset >= at && (!next || f->json.offset < next->json.offset))
            next = f;
    return next;
}

int lam_fields_write(json_t *object, const lam_config *cfg, const lam_mem_ops *mem,
                     lam_fields_part part)
{
    int bad = 0;
    const lam_mem_field *f = next_field(mem, 0);
    for (; f; f = next_field(mem, f->json.offset + 1))
        if ((f->json.kind == LAM_JSON_REALS) == (part == LAM_FIELDS_LISTS))
            bad |= lam_json_put(object, &f->json, block_in(cfg, mem));
    return bad;
}
