/* params_io.c -- see params_io.h.
 *
 * A parameter stored as in files goes through in pieces, since one embedding table can be most of a model;
 * a padded or turned one is in host memory as a whole. */
#include "nn/params_io.h"

#include "core/quantize.h"
#include "nn/params_int.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FULL_NAME = LAM_NAME_MAX + 16, PIECE = 1 << 18 /* elements */ };

static const char *full_name(char out[FULL_NAME], const char *prefix, const lam_param *param)
{
    snprintf(out, FULL_NAME, "%s%s", prefix, param->name);
    return out;
}

static int has(const lam_flat *flat, const lam_param *param)
{
    return !flat->rest || !lam_param_is_hidden(param);
}

static lam_status no_memory(const lam_param *param)
{
    return lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory to load or save it", param->name);
}

static size_t piece_of(const lam_param *param, size_t at)
{
    return param->stored - at < PIECE ? param->stored - at : PIECE;
}

/* ---- writing ---- */

lam_status lam_params_add_to(lam_st_writer *w, const lam_params *p, const lam_flat *flat,
                             lam_dtype dtype)
{
    char name[FULL_NAME];
    for (int i = 0; i < p->n; i++) {
        const lam_shape shape = lam_param_shape(&p->list[i]);
        if (has(flat, &p->list[i]))
            LAM_TRY(
                lam_st_writer_add(w, full_name(name, flat->prefix, &p->list[i]), dtype, &shape));
    }
    return LAM_OK;
}

static lam_status write_pieces(lam_st_writer *w, const lam_params *p, const void *flat, int i,
                               lam_dtype dtype)
{
    const lam_param *const param = &p->list[i];
    const size_t wide = lam_class_size(p->dev, LAM_WIDE), size = lam_dtype_size(dtype);
    char *const raw = malloc(piece_of(param, 0) * wide + 1);
    char *const out = malloc(piece_of(param, 0) * size + 1);
    lam_status status = raw && out ? LAM_OK : no_memory(param);
    for (size_t at = 0; at < param->stored && status == LAM_OK; at += PIECE) {
        const size_t n = piece_of(param, at);
        status = p->dev->ops->download(
            p->dev, raw, lam_at(p->dev, LAM_WIDE, flat, param->offset + at), n * wide);
        if (status != LAM_OK)
            break;
        lam_convert(out, dtype, raw, p->dev->wide, n);
        status = lam_st_writer_data(w, out, n * size);
    }
    free(raw);
    free(out);
    return status;
}

static lam_status write_whole(lam_st_writer *w, const lam_params *p, const void *flat, int i,
                              lam_dtype dtype)
{
    const size_t n = lam_param_count(&p->list[i]), size = lam_dtype_size(dtype);
    double *const host = malloc(n * sizeof *host + 1);
    void *const out = malloc(n * size + 1);
    lam_status status = host && out ? lam_params_get(p, flat, i, host) : no_memory(&p->list[i]);
    if (status == LAM_OK) {
        lam_convert(out, dtype, host, LAM_F64, n);
        status = lam_st_writer_data(w, out, n * size);
    }
    free(host);
    free(out);
    return status;
}

lam_status lam_params_write(lam_st_writer *w, const lam_params *p, const lam_flat *flat,
                            lam_dtype dtype)
{
    for (int i = 0; i < p->n; i++)
        if (has(flat, &p->list[i]))
            LAM_TRY(lam_param_is_plain(&p->list[i]) && !lam_param_is_narrow(p, &p->list[i])
                        ? write_pieces(w, p, flat->at, i, dtype)
                        : write_whole(w, p, flat->at, i, dtype));
    return LAM_OK;
}

/* ---- reading ---- */

/* The scales of an int8 matrix, or NULL. */
static const lam_st_tensor *scales_of(const lam_safetensors *st, const char *name)
{
    char scale[FULL_NAME + sizeof LAM_SCALE_SUFFIX];
    snprintf(scale, sizeof scale, "%s%s", name, LAM_SCALE_SUFFIX);
    return lam_st_find(st, scale);
}

static lam_status check_scales(const lam_safetensors *st, const lam_shape *shape, const char *name)
{
    char have[128], want[128];
    const lam_st_tensor *const scales = scales_of(st, name);
    const lam_shape rows = {.rank = 1, .dim = {shape->dim[0]}};
    if (!scales)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is I8 and has no %s%s", lam_st_path(st),
                        name, name, LAM_SCALE_SUFFIX);
    if (scales->dtype != LAM_F32 || !lam_shape_equal(&scales->shape, &rows))
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s%s is %s %s, must be F32 %s", lam_st_path(st),
                        name, LAM_SCALE_SUFFIX, lam_dtype_name(scales->dtype),
                        lam_shape_text(&scales->shape, have, sizeof have),
                        lam_shape_text(&rows, want, sizeof want));
    for (int64_t i = 0; i < rows.dim[0]; i++) {
        float x;
        memcpy(&x, (const char *)scales->data + (size_t)i * sizeof x, sizeof x);
        if (!(isfinite(x) && x >= 0.0f))
            return lam_fail(LAM_ERR_FORMAT,
                            "%s: scale %lld of %s is %g, must be finite and not below 0",
                            lam_st_path(st), (long long)i, name, (double)x);
    }
    return LAM_OK;
}

/* A number that is not finite spoils everything that is computed with it. */
static lam_status check_finite(const lam_safetensors *st, const lam_st_tensor *tensor)
{
    const size_t n = lam_shape_count(&tensor->shape),
                 at = lam_finite_count(tensor->data, tensor->dtype, n);
    if (at == n)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT, "%s: element %zu of tensor %s is not finite", lam_st_path(st),
                    at, tensor->name);
}

static lam_status check_one(const lam_safetensors *st, const lam_param *param, const char *name)
{
    char have[128], want[128];
    const lam_st_tensor *const tensor = lam_st_find(st, name);
    const lam_shape shape = lam_param_shape(param);
    if (!tensor)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is missing", lam_st_path(st), name);
    const int whole = tensor->dtype == LAM_I8 && lam_param_may_narrow(param);
    if (!lam_dtype_is_float(tensor->dtype) && !whole)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, must be F32, F16, BF16 or F64%s",
                        lam_st_path(st), name, lam_dtype_name(tensor->dtype),
                        lam_param_may_narrow(param) ? ", or I8 with scales" : "");
    if (!lam_shape_equal(&tensor->shape, &shape))
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, the configuration makes it %s",
                        lam_st_path(st), name, lam_shape_text(&tensor->shape, have, sizeof have),
                        lam_shape_text(&shape, want, sizeof want));
    return whole ? check_scales(st, &shape, name) : check_finite(st, tensor);
}

int lam_params_know(const lam_params *p, const lam_safetensors *st, const char *name)
{
    const size_t length = strlen(name), suffix = strlen(LAM_SCALE_SUFFIX);
    char matrix[FULL_NAME];
    if (lam_params_find(p, name) >= 0)
        return 1;
    if (length <= suffix || length >= sizeof matrix ||
        strcmp(name + length - suffix, LAM_SCALE_SUFFIX) != 0)
        return 0;
    memcpy(matrix, name, length - suffix);
    matrix[length - suffix] = '\0';
    const lam_st_tensor *tensor = lam_st_find(st, matrix);
    return lam_params_find(p, matrix) >= 0 && tensor && tensor->dtype == LAM_I8;
}

lam_status lam_params_check(const lam_safetensors *st, const lam_params *p, const lam_flat *flat)
{
    char name[FULL_NAME];
    for (int i = 0; i < p->n; i++) {
        if (!has(flat, &p->list[i]))
            continue;
        LAM_TRY(lam_watch_tell(flat->watch, 0.5 * i / p->n));
        LAM_TRY(check_one(st, &p->list[i], full_name(name, flat->prefix, &p->list[i])));
    }
    return LAM_OK;
}

/* Some elements of a tensor, and their place in a flat vector. */
typedef struct piece {
    const void *data;
    lam_dtype dtype;
    size_t at, n;
} piece;

/* Converts in `raw`, which holds a piece of any type. */
static lam_status upload(const lam_params *p, lam_class type, void *flat, piece it, char *raw)
{
    lam_to_class(p->dev, type, raw, it.data, it.dtype, it.n);
    p->dev->ops->upload(p->dev, lam_at(p->dev, type, flat, it.at), raw,
                        it.n * lam_class_size(p->dev, type));
    return p->dev->ops->sync(p->dev); /* raw is used again */
}

static lam_status read_pieces(const lam_st_tensor *tensor, lam_params *p, void *flat, int i)
{
    const lam_param *const param = &p->list[i];
    const int weights = flat == p->master && p->weight != p->master;
    char *const raw = malloc(piece_of(param, 0) * sizeof(double) + 1);
    lam_status status = raw ? LAM_OK : no_memory(param);
    for (size_t at = 0; at < param->stored && status == LAM_OK; at += PIECE) {
        const piece it = {(const char *)tensor->data + at * lam_dtype_size(tensor->dtype),
                          tensor->dtype, param->offset + at, piece_of(param, at)};
        status = upload(p, LAM_WIDE, flat, it, raw);
        if (status == LAM_OK && weights)
            status = upload(p, LAM_ACT, p->weight, it, raw);
    }
    free(raw);
    return status;
}

/* A tensor of a file, and the scales it may have. */
typedef struct source {
    const lam_st_tensor *tensor, *scales;
} source;

/* Rows first .. first + rows, of n elements each, as doubles. */
static void rows_from(double *out, source from, size_t first, size_t rows, size_t n)
{
    const lam_dtype dtype = from.tensor->dtype;
    const char *data = (const char *)from.tensor->data + first * n * lam_dtype_size(dtype);
    if (dtype != LAM_I8) {
        lam_convert(out, LAM_F64, data, dtype, rows * n);
        return;
    }
    for (size_t r = 0; r < rows; r++) {
        float scale;
        memcpy(&scale, (const char *)from.scales->data + (first + r) * sizeof scale, sizeof scale);
        lam_dequantize(out + r * n, (const int8_t *)data + r * n, scale, n);
    }
}

static lam_status read_whole(source from, lam_params *p, void *flat, int i)
{
    const size_t n = lam_param_count(&p->list[i]), rows = (size_t)from.tensor->shape.dim[0];
    double *const host = malloc(n * sizeof *host + 1);
    if (!host)
        return no_memory(&p->list[i]);
    rows_from(host, from, 0, rows, n / rows);
    const lam_status status = lam_params_set(p, flat, i, host);
    free(host);
    return status;
}

/* For a narrow parameter that lies in memory as in the file. */
static lam_status read_rows(source from, lam_params *p, int i)
{
    const size_t rows = (size_t)from.tensor->shape.dim[0], n = p->list[i].stored / rows;
    const size_t most = PIECE / n > 0 ? PIECE / n : 1;
    double *const host = malloc(most * n * sizeof *host + 1);
    lam_status status = host ? LAM_OK : no_memory(&p->list[i]);
    for (size_t at = 0; at < rows && status == LAM_OK; at += most) {
        const size_t now = rows - at < most ? rows - at : most;
        rows_from(host, from, at, now, n);
        status = lam_params_put_rows(p, i, at, now, host);
    }
    free(host);
    return status;
}

static lam_status read_one(source from, lam_params *p, void *flat, int i)
{
    if (!lam_param_is_plain(&p->list[i]))
        return read_whole(from, p, flat, i);
    if (lam_param_is_narrow(p, &p->list[i]))
        return read_rows(from, p, i);
    return from.tensor->dtype == LAM_I8 ? read_whole(from, p, flat, i)
                                        : read_pieces(from.tensor, p, flat, i);
}

lam_status lam_params_read(const lam_safetensors *st, lam_params *p, const lam_flat *flat)
{
    char name[FULL_NAME];
    for (int i = 0; i < p->n; i++) {
        if (!has(flat, &p->list[i]))
            continue;
        LAM_TRY(lam_watch_tell(flat->watch, 0.5 + 0.5 * i / p->n));
        full_name(name, flat->prefix, &p->list[i]);
        const source from = {lam_st_find(st, name), scales_of(st, name)};
        assert(from.tensor); /* the file was checked */
        LAM_TRY(read_one(from, p, flat->at, i));
    }
    return LAM_OK;
}
