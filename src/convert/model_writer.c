/* model_writer.c -- see model_writer.h.
 *
 * Floating-point types are converted piece by piece. int8 is for matrices, row by row, followed by a tensor
 * of their scales; all other tensors are then float32. */
#include "convert/model_writer.h"

#include "convert/huggingface.h"
#include "core/file.h"
#include "core/quantize.h"
#include "io/json.h"
#include "model/folder.h"
#include "nn/params_io.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD_NAME = 64 }; /* bytes of a file's name */
enum { PIECE = 1 << 16 }; /* elements at a time */

lam_status lam_model_writer_check(const char *dir, int replace)
{
    return lam_own_target(dir, &lam_folder_kind, replace);
}

/* ---- one tensor ---- */

static lam_dtype type_of(const lam_model_writer *d, const lam_param *param)
{
    if (d->dtype != LAM_I8)
        return d->dtype;
    return lam_param_may_narrow(param) ? LAM_I8 : LAM_F32;
}

/* The name of its scales; returns 0 if it will have none. */
static int scale_name(const lam_model_writer *d, int i, char out[LAM_TENSOR_NAME_MAX])
{
    const lam_param *param = &d->params->list[i];
    snprintf(out, LAM_TENSOR_NAME_MAX, "%s%s", param->name, LAM_SCALE_SUFFIX);
    return type_of(d, param) == LAM_I8;
}

size_t lam_model_writer_bytes(const lam_model_writer *d, int i)
{
    const lam_param *param = &d->params->list[i];
    const lam_dtype type = type_of(d, param);
    const size_t scales = (size_t)lam_param_shape(param).dim[0] * sizeof(float);
    return lam_param_count(param) * lam_dtype_size(type) + (type == LAM_I8 ? scales : 0);
}

/* Its tensor, and that of its scales if it becomes int8. */
static lam_status declare(const lam_model_writer *d, lam_st_writer *w, int i)
{
    char scale[LAM_TENSOR_NAME_MAX];
    const lam_param *param = &d->params->list[i];
    const lam_shape shape = lam_param_shape(param), rows = {.rank = 1, .dim = {shape.dim[0]}};
    LAM_TRY(lam_st_writer_add(w, param->name, type_of(d, param), &shape));
    if (!scale_name(d, i, scale))
        return LAM_OK;
    return lam_st_writer_add(w, scale, LAM_F32, &rows);
}

/* Names the tensor, of which element `first` is not finite, and counts all that are not. */
static lam_status not_finite(const lam_model_writer *d, const lam_param *param, size_t first)
{
    enum { FEW = 512 };
    double x[FEW];
    const size_t count = lam_param_count(param);
    size_t bad = 0;
    for (size_t at = first; at < count; at += FEW) {
        const size_t n = count - at < FEW ? count - at : FEW;
        lam_tensors_copy(x, d->tensors, param->name, at, n);
        for (size_t i = 0; i < n; i++)
            bad += isfinite(x[i]) ? 0 : 1;
    }
    return lam_fail(LAM_ERR_NUMERIC,
                    "%s: tensor %s: %zu of %zu numbers are not finite, the first is element %zu; "
                    "use a checkpoint from before training diverged",
                    d->tensors->label, param->name, bad, count, first);
}

/* Elements [at, at + n) of a tensor, as they are and in their new type. */
typedef struct piece {
    size_t at, n;
    const double *wide;
    const void *narrow;
} piece;

/* Finite, and still so in the new type? */
static lam_status check_numbers(const lam_model_writer *d, const lam_param *param, const piece *p)
{
    const lam_dtype type = type_of(d, param);
    const size_t finite = lam_finite_count(p->wide, LAM_F64, p->n);
    const size_t kept = lam_finite_count(p->narrow, type, p->n);
    if (finite < p->n)
        return not_finite(d, param, p->at + finite);
    if (kept < p->n)
        return lam_fail(LAM_ERR_NUMERIC, "%s: tensor %s: %g is too large for %s", d->tensors->label,
                        param->name, p->wide[kept], lam_dtype_name(type));
    return LAM_OK;
}

/* Numbers of the tensor, unless somebody asked to stop. */
static lam_status put(const lam_model_writer *d, lam_st_writer *w, const void *data, size_t size)
{
    if (d->stop && d->stop())
        return lam_fail(LAM_ERR_INTERRUPTED, "stopped while writing %s", d->dir);
    return lam_st_writer_data(w, data, size);
}

static lam_status write_pieces(const lam_model_writer *d, lam_st_writer *w, const lam_param *param)
{
    const lam_dtype type = type_of(d, param);
    const size_t count = lam_param_count(param);
    double *wide = malloc(PIECE * sizeof *wide);
    float *narrow = malloc(PIECE * sizeof *narrow);
    lam_status status = wide && narrow ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory for a piece");
    for (size_t at = 0; at < count && status == LAM_OK; at += PIECE) {
        const size_t n = count - at < PIECE ? count - at : PIECE;
        lam_tensors_copy(wide, d->tensors, param->name, at, n);
        lam_convert(narrow, type, wide, LAM_F64, n);
        status = check_numbers(d, param, &(piece){at, n, wide, narrow});
        if (status == LAM_OK)
            status = put(d, w, narrow, n * lam_dtype_size(type));
    }
    free(wide);
    free(narrow);
    return status;
}

static lam_status write_rows(const lam_model_writer *d, lam_st_writer *w, const lam_param *param)
{
    const size_t rows = (size_t)lam_param_shape(param).dim[0], n = lam_param_count(param) / rows;
    double *wide = malloc(n * sizeof *wide + 1);
    int8_t *narrow = malloc(n + 1);
    float *scale = malloc(rows * sizeof *scale + 1);
    lam_status status = wide && narrow && scale
                            ? LAM_OK
                            : lam_fail(LAM_ERR_MEMORY, "tensor %s: no memory", param->name);
    for (size_t r = 0; r < rows && status == LAM_OK; r++) {
        lam_tensors_copy(wide, d->tensors, param->name, r * n, n);
        const size_t finite = lam_finite_count(wide, LAM_F64, n);
        if (finite < n)
            status = not_finite(d, param, r * n + finite);
        else if (lam_quantize(narrow, &scale[r], wide, n) != 0)
            status =
                lam_fail(LAM_ERR_NUMERIC, "%s: tensor %s: row %zu has a number too large for int8",
                         d->tensors->label, param->name, r);
        else
            status = put(d, w, narrow, n);
    }
    if (status == LAM_OK)
        status = put(d, w, scale, rows * sizeof *scale);
    free(wide);
    free(narrow);
    free(scale);
    return status;
}

static lam_status write_data(const lam_model_writer *d, lam_st_writer *w, int i)
{
    const lam_param *param = &d->params->list[i];
    return type_of(d, param) == LAM_I8 ? write_rows(d, w, param) : write_pieces(d, w, param);
}

/* ---- which tensor goes where ---- */

/* shard[i]: the file of parameter i, in order, each as full as it may be; a tensor is never cut. */
static int divide(const lam_model_writer *d, int *shard)
{
    int files = 0;
    size_t filled = 0;
    for (int i = 0; i < d->params->n; i++) {
        const size_t bytes = lam_model_writer_bytes(d, i);
        if (i == 0 || (d->max_shard > 0 && filled + bytes > (size_t)d->max_shard)) {
            files++;
            filled = 0;
        }
        filled += bytes;
        shard[i] = files - 1;
    }
    return files;
}

static void shard_name(char out[SHARD_NAME], int file, int files)
{
    if (files == 1)
        snprintf(out, SHARD_NAME, "model.safetensors");
    else
        snprintf(out, SHARD_NAME, "model-%05d-of-%05d.safetensors", file + 1, files);
}

/* ---- files ---- */

static lam_status write_file(const lam_model_writer *d, lam_st_writer *w, const int *shard,
                             int file)
{
    LAM_TRY(lam_st_writer_meta(w, "format", "pt"));
    for (int i = 0; i < d->params->n; i++)
        if (shard[i] == file)
            LAM_TRY(declare(d, w, i));
    LAM_TRY(lam_st_writer_begin(w));
    for (int i = 0; i < d->params->n; i++)
        if (shard[i] == file)
            LAM_TRY(write_data(d, w, i));
    return LAM_OK;
}

static lam_status save_file(const lam_model_writer *d, const char *dir, const int *shard, int file,
                            int files)
{
    char name[SHARD_NAME], path[PATH_MAX];
    lam_st_writer *w;
    shard_name(name, file, files);
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    LAM_TRY(lam_st_writer_create(&w, path));
    return lam_st_writer_end(w, write_file(d, w, shard, file));
}

static lam_status save_index(const lam_model_writer *d, const char *dir, const int *shard,
                             int files)
{
    char name[SHARD_NAME], scale[LAM_TENSOR_NAME_MAX], path[PATH_MAX];
    size_t total = 0;
    LAM_TRY(lam_path_join(path, sizeof path, dir, "model.safetensors.index.json"));
    json_t *map = json_object();
    for (int i = 0; i < d->params->n; i++) {
        shard_name(name, shard[i], files);
        map = lam_json_set(map, d->params->list[i].name, json_string(name));
        if (scale_name(d, i, scale))
            map = lam_json_set(map, scale, json_string(name));
        total += lam_model_writer_bytes(d, i);
    }
    json_t *root = json_pack("{s:{s:I}}", "metadata", "total_size", (json_int_t)total);
    return lam_json_save(path, lam_json_set(root, "weight_map", map), JSON_INDENT(2));
}

static lam_status save_weights(const lam_model_writer *d, const char *dir, int *files)
{
    int *shard = malloc((size_t)d->params->n * sizeof *shard + 1);
    if (!shard)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", dir);
    *files = divide(d, shard);
    lam_status status = LAM_OK;
    for (int file = 0; file < *files && status == LAM_OK; file++)
        status = save_file(d, dir, shard, file, *files);
    if (status == LAM_OK && *files > 1)
        status = save_index(d, dir, shard, *files);
    free(shard);
    return status;
}

typedef struct job {
    const lam_model_writer *d;
    int *files;
} job;

static lam_status fill(void *user, const char *dir)
{
    const job *j = user;
    char path[PATH_MAX];
    LAM_TRY(j->d->hf ? lam_hf_write(dir, j->d->cfg, j->d->dtype, j->d->vocab)
                     : lam_folder_write_config(dir, j->d->cfg));
    if (j->d->vocab) {
        LAM_TRY(lam_path_join(path, sizeof path, dir, "vocab.json"));
        LAM_TRY(lam_vocab_save(j->d->vocab, path));
    }
    return save_weights(j->d, dir, j->files);
}

lam_status lam_model_writer_run(const lam_model_writer *d, int *files)
{
    *files = 0;
    return lam_own_write(d->dir, &lam_folder_kind, d->replace, fill, &(job){d, files});
}
