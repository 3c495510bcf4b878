/* fields.c -- see fields.h. */
#include "mem/fields.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- a struct described by rows ---- */

void lam_rows_default(void *own, const lam_mem_field *rows)
{
    for (const lam_mem_field *f = rows; f->json.name; f++)
        if (f->value && !lam_field_set(own, &f->json, f->value))
            assert(0 && "the default is not a legal value");
}

static lam_status check_real(const char *name, double x, lam_real_rule rule)
{
    static const char *const words[] = {"0 or more", "above 0", "above 0 and below 1",
                                        "at least 0 and below 1"};
    const int ok = rule == LAM_NOT_NEGATIVE ? x >= 0.0 && isfinite(x)
                   : rule == LAM_POSITIVE   ? x > 0.0 && isfinite(x)
                   : rule == LAM_BELOW_1    ? x >= 0.0 && x < 1.0
                                            : x > 0.0 && x < 1.0;
    return ok ? LAM_OK
              : lam_fail(LAM_ERR_ARG, "config: %s is %g, must be %s", name, x, words[rule]);
}

static lam_status check_field(const void *own, const lam_mem_field *f)
{
    if (f->json.kind == LAM_JSON_REALS) {
        const lam_json_reals list = lam_field_list(own, &f->json);
        for (int i = 0; i < list.n; i++)
            LAM_TRY(check_real(f->json.name, list.v[i], f->rule));
        return LAM_OK;
    }
    const double x = lam_field_number(own, &f->json);
    if (f->json.kind == LAM_JSON_REAL)
        return check_real(f->json.name, x, f->rule);
    if (f->json.kind != LAM_JSON_WORD && f->min < f->max && (x < f->min || x > f->max))
        return lam_fail(LAM_ERR_ARG, "config: %s is %.0f, must be %.0f to %.0f", f->json.name, x,
                        f->min, f->max);
    return LAM_OK;
}

lam_status lam_rows_check(const void *own, const lam_mem_field *rows)
{
    for (const lam_mem_field *f = rows; f->json.name; f++)
        LAM_TRY(check_field(own, f));
    return LAM_OK;
}

lam_status lam_rows_read(void *own, const lam_mem_field *rows, const json_t *object,
                         const char *label)
{
    for (const lam_mem_field *f = rows; f->json.name; f++)
        LAM_TRY(lam_json_take(own, &f->json, object, label));
    return LAM_OK;
}

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

void lam_fields_default(lam_config *cfg, const lam_mem_ops *mem)
{
    memset(block_of(cfg, mem), 0, LAM_OWN_BYTES);
    lam_rows_default(block_of(cfg, mem), rows_of(mem));
}

void lam_fields_fresh(lam_config *cfg, const lam_mem_ops *mem)
{
    for (const lam_mem_field *f = rows_of(mem); f->json.name; f++)
        if (f->fresh && !lam_field_set(block_of(cfg, mem), &f->json, f->fresh))
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

const lam_mem_field *lam_fields_find(const char *key, const lam_mem_ops **mem)
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
    const lam_mem_field *f = lam_fields_find(key, &mem);
    if (!f)
        return lam_fail(LAM_ERR_ARG, "config: no memory has a field %s", key);
    if (!lam_field_set(block_of(cfg, mem), &f->json, text))
        return lam_fail(LAM_ERR_ARG, "config: %s cannot be '%s'", key, text);
    return LAM_OK;
}

double lam_fields_value(const lam_config *cfg, const char *key)
{
    const lam_mem_ops *mem;
    const lam_mem_field *f = lam_fields_find(key, &mem);
    return f ? lam_field_number(block_in(cfg, mem), &f->json) : NAN;
}

/* ---- rules ---- */

int lam_fields_written(const lam_mem_ops *mem, const lam_mem_ops *model)
{
    return mem == model || mem->in_every_file;
}

lam_status lam_fields_check(const lam_config *cfg, const lam_mem_ops *mem)
{
    return lam_rows_check(block_in(cfg, mem), rows_of(mem));
}

/* ---- JSON ---- */

lam_status lam_fields_read(lam_config *cfg, const lam_mem_ops *mem, const json_t *object,
                           const char *label)
{
    return lam_rows_read(block_of(cfg, mem), rows_of(mem), object, label);
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
