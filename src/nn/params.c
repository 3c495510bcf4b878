/* params.c -- declaring, placing and moving parameters. */
#include "nn/params_int.h"

#include "core/arena.h"
#include "core/grow.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives a parameter the next place in the flat vectors. */
static void append(lam_params *p, lam_param *q)
{
    const size_t align = LAM_ALIGN / sizeof(float);
    q->offset = q->joined ? p->total : (p->total + align - 1) / align * align;
    p->total = q->offset + q->stored;
}

int lam_params_add(lam_params *p, const lam_spec *spec, const char *name, ...)
{
    if (lam_grow(&p->list, &p->room, (size_t)p->n + 1, sizeof *p->list, "parameters") != LAM_OK) {
        p->failed = 1;
        return 0;
    }
    lam_param *q = &p->list[p->n];
    memset(q, 0, sizeof *q);
    va_list args;
    va_start(args, name);
    vsnprintf(q->name, sizeof q->name, name, args);
    va_end(args);

    q->rank = spec->rank;
    q->init = spec->init;
    q->scale = spec->scale;
    q->joined = spec->joined;
    q->role = spec->rank > 1 ? LAM_ROLE_TABLE : LAM_ROLE_VECTOR;
    q->stored = 1;
    for (int d = 0; d < spec->rank; d++) {
        q->dim[d] = spec->dim[d];
        q->stored *= (size_t)spec->dim[d].groups * (size_t)spec->dim[d].ld;
    }
    append(p, q);
    return p->n++;
}

void lam_params_turn(lam_params *p, int i)
{
    if (!p->failed)
        p->list[i].turned = 1;
}

void lam_params_set_apart(lam_params *p, int i)
{
    if (!p->failed)
        p->list[i].apart = 1;
}

void lam_params_set_maps(lam_params *p, int i, int maps)
{
    if (p->failed)
        return;
    assert(p->list[i].rank == 2 && p->list[i].dim[0].groups % maps == 0);
    p->list[i].role = LAM_ROLE_MATRIX;
    p->list[i].maps = maps;
}

void lam_params_set_vector(lam_params *p, int i)
{
    if (!p->failed)
        p->list[i].role = LAM_ROLE_VECTOR;
}

int lam_param_is_hidden(const lam_param *q)
{
    return q->role == LAM_ROLE_MATRIX && !q->apart;
}

void lam_params_arrange(lam_params *p)
{
    p->total = 0;
    for (int hidden = 0; hidden < 2; hidden++) {
        for (int i = 0; i < p->n; i++)
            if (lam_param_is_hidden(&p->list[i]) == hidden)
                append(p, &p->list[i]);
        if (!hidden)
            p->rest = p->total;
    }
}

size_t lam_param_count(const lam_param *q)
{
    size_t n = 1;
    for (int d = 0; d < q->rank; d++)
        n *= (size_t)q->dim[d].groups * (size_t)q->dim[d].size;
    return n;
}

int lam_param_is_plain(const lam_param *q)
{
    return q->stored == lam_param_count(q) && !q->turned;
}

lam_shape lam_param_shape(const lam_param *q)
{
    lam_shape shape = {.rank = q->rank};
    for (int d = 0; d < q->rank; d++)
        shape.dim[d] = (int64_t)q->dim[d].groups * q->dim[d].size;
    return shape;
}

int lam_params_find(const lam_params *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->list[i].name, name) == 0)
            return i;
    return -1;
}

lam_status lam_params_place(lam_params *p, lam_dev *dev)
{
    if (p->failed)
        return lam_fail(LAM_ERR_MEMORY, "parameter table: no memory");
    p->dev = dev;
    if (p->store != LAM_ACT)
        LAM_TRY(lam_params_place_narrow(p));
    LAM_TRY(dev->ops->alloc(dev, &p->master, p->total * lam_class_size(dev, LAM_WIDE)));
    if (lam_params_one_copy(dev)) {
        p->weight = p->master;
        return LAM_OK;
    }
    return dev->ops->alloc(dev, &p->weight, p->total * lam_class_size(dev, LAM_ACT));
}

lam_status lam_params_place_grad(lam_params *p)
{
    if (p->store != LAM_ACT)
        return lam_fail(LAM_ERR_ARG, "weights in bf16 or int8 cannot be trained");
    return p->grad
               ? LAM_OK
               : p->dev->ops->alloc(p->dev, &p->grad, p->total * lam_class_size(p->dev, LAM_WIDE));
}

void lam_params_free(lam_params *p)
{
    if (p->dev) {
        if (p->weight != p->master)
            p->dev->ops->release(p->dev, p->weight);
        p->dev->ops->release(p->dev, p->master);
        p->dev->ops->release(p->dev, p->grad);
        p->dev->ops->release(p->dev, p->narrow);
        p->dev->ops->release(p->dev, p->scale);
    }
    free(p->list);
    *p = (lam_params){0};
}

lam_weights lam_weight(const lam_params *p, int i)
{
    const lam_param *q = &p->list[i];
    if (!lam_param_is_narrow(p, q))
        return (lam_weights){lam_at(p->dev, LAM_ACT, p->weight, q->offset), LAM_ACT, NULL};
    const int scaled = p->store == LAM_BYTE;
    return (lam_weights){lam_at(p->dev, p->store, p->narrow, q->offset), p->store,
                         scaled ? lam_at(p->dev, LAM_WIDE, p->scale, q->row) : NULL};
}

void *lam_vector(const lam_params *p, int i)
{
    return lam_at(p->dev, LAM_WIDE, p->master, p->list[i].offset);
}

void *lam_grad(const lam_params *p, int i)
{
    p->list[i].used = 1;
    return lam_at(p->dev, LAM_WIDE, p->grad, p->list[i].offset);
}

static size_t stored_length(const lam_dim *dim)
{
    return (size_t)dim->groups * (size_t)dim->ld;
}

/* The place of the k-th true element of a parameter in its stretch. */
static size_t stored_index(const lam_param *q, size_t k)
{
    size_t index = 0, stride = 1;
    for (int d = q->rank - 1; d >= 0; d--) {
        const lam_dim *dim = &q->dim[d];
        const size_t length = (size_t)dim->groups * (size_t)dim->size, size = (size_t)dim->size;
        const size_t i = k % length, place = i / size * (size_t)dim->ld + i % size;
        k /= length;
        size_t step = stride;
        if (q->turned && d == q->rank - 1) /* strides of the last two change places */
            step = stored_length(dim - 1);
        if (q->turned && d == q->rank - 2)
            step = 1;
        index += place * step;
        stride *= stored_length(dim);
    }
    return index;
}

static lam_status get_narrow(const lam_params *p, int i, double *host)
{
    const lam_param *q = &p->list[i];
    const size_t n = lam_param_count(q);
    double *padded = malloc(q->stored * sizeof *padded + 1);
    if (!padded)
        return lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory", q->name);
    const lam_status status = lam_params_take_all(p, i, padded);
    for (size_t k = 0; k < n && status == LAM_OK; k++)
        host[k] = padded[stored_index(q, k)];
    free(padded);
    return status;
}

lam_status lam_params_get(const lam_params *p, const void *flat, int i, double *host)
{
    if (lam_param_is_narrow(p, &p->list[i]))
        return get_narrow(p, i, host);
    const lam_param *q = &p->list[i];
    const size_t size = lam_class_size(p->dev, LAM_WIDE), n = lam_param_count(q);
    char *raw = malloc(q->stored * size + 1);
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory", q->name);
    const lam_status status = p->dev->ops->download(
        p->dev, raw, lam_at(p->dev, LAM_WIDE, flat, q->offset), q->stored * size);
    if (status == LAM_OK && lam_param_is_plain(q))
        lam_convert(host, LAM_F64, raw, p->dev->wide, n);
    else if (status == LAM_OK)
        for (size_t k = 0; k < n; k++)
            lam_convert(&host[k], LAM_F64, raw + stored_index(q, k) * size, p->dev->wide, 1);
    free(raw);
    return status;
}

static void upload_as(lam_params *p, void *flat, lam_class type, const lam_param *q,
                      const double *padded, char *raw)
{
    lam_to_class(p->dev, type, raw, padded, LAM_F64, q->stored);
    p->dev->ops->upload(p->dev, lam_at(p->dev, type, flat, q->offset), raw,
                        q->stored * lam_class_size(p->dev, type));
}

lam_status lam_params_set(lam_params *p, void *flat, int i, const double *host)
{
    const lam_param *q = &p->list[i];
    const size_t n = lam_param_count(q);
    double *padded = calloc(q->stored + 1, sizeof *padded);
    char *raw = malloc(q->stored * sizeof(double) + 1);
    if (!padded || !raw) {
        free(padded);
        free(raw);
        return lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory", q->name);
    }
    if (lam_param_is_plain(q))
        memcpy(padded, host, n * sizeof *padded);
    else
        for (size_t k = 0; k < n; k++)
            padded[stored_index(q, k)] = host[k];
    lam_status status = LAM_OK;
    if (lam_param_is_narrow(p, q)) {
        status =
            lam_params_put_rows(p, i, 0, (size_t)q->dim[0].groups * (size_t)q->dim[0].ld, padded);
    } else {
        upload_as(p, flat, LAM_WIDE, q, padded, raw);
        if (flat == p->master && p->weight != p->master)
            upload_as(p, p->weight, LAM_ACT, q, padded, raw);
        status = p->dev->ops->sync(p->dev); /* raw goes away */
    }
    free(padded);
    free(raw);
    return status;
}

static double draw(lam_rng *rng, const lam_param *q, const lam_init_rule *rule)
{
    switch (q->init) {
    case LAM_INIT_ZERO:
        return 0.0;
    case LAM_INIT_LINEAR:
        if (rule->uniform)
            return rule->range * (2.0 * lam_rng_uniform(rng) - 1.0);
        return q->scale * lam_rng_normal(rng);
    case LAM_INIT_NORMAL:
        return q->scale * lam_rng_normal(rng);
    case LAM_INIT_GAIN:
        return 1.0 + q->scale * lam_rng_normal(rng);
    case LAM_INIT_UNIFORM:
        return q->scale * (2.0 * lam_rng_uniform(rng) - 1.0);
    }
    return 0.0;
}

lam_status lam_params_init(lam_params *p, const lam_init_rule *rule)
{
    for (int i = 0; i < p->n; i++) {
        const size_t n = lam_param_count(&p->list[i]);
        double *host = malloc(n * sizeof *host + 1);
        if (!host)
            return lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory", p->list[i].name);
        lam_rng rng = {.key = rule->seed, .stream = (uint64_t)i + 1};
        for (size_t k = 0; k < n; k++)
            host[k] = (float)draw(&rng, &p->list[i], rule); /* the same start on every device */
        const lam_status status = lam_params_set(p, p->master, i, host);
        free(host);
        LAM_TRY(status);
    }
    return LAM_OK;
}
