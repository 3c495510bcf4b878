/* params_io.c -- see params_io.h.
 *
 * One tensor at a time is in host memory: a file may be larger than what is free. */
#include "nn/params_io.h"

#include <stdio.h>
#include <stdlib.h>

enum { FULL_NAME = LAM_NAME_MAX + 16 };

static const char *full_name(char out[FULL_NAME], const char *prefix, const lam_param *param)
{
    snprintf(out, FULL_NAME, "%s%s", prefix, param->name);
    return out;
}

lam_status lam_params_add_to(lam_st_writer *w, const lam_params *p, const char *prefix,
                             lam_dtype dtype)
{
    char name[FULL_NAME];
    for (int i = 0; i < p->n; i++) {
        const lam_shape shape = lam_param_shape(&p->list[i]);
        LAM_TRY(lam_st_writer_add(w, full_name(name, prefix, &p->list[i]), dtype, &shape));
    }
    return LAM_OK;
}

static lam_status write_one(lam_st_writer *w, const lam_params *p, const void *flat, int i,
                            lam_dtype dtype)
{
    const size_t n = lam_param_count(&p->list[i]), size = lam_dtype_size(dtype);
    double *const host = malloc(n * sizeof *host + 1);
    void *const narrow = malloc(n * size + 1);
    lam_status status =
        host && narrow
            ? lam_params_get(p, flat, i, host)
            : lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory to save it", p->list[i].name);
    if (status == LAM_OK) {
        lam_convert(narrow, dtype, host, LAM_F64, n);
        status = lam_st_writer_data(w, narrow, n * size);
    }
    free(host);
    free(narrow);
    return status;
}

lam_status lam_params_write(lam_st_writer *w, const lam_params *p, const void *flat,
                            lam_dtype dtype)
{
    for (int i = 0; i < p->n; i++)
        LAM_TRY(write_one(w, p, flat, i, dtype));
    return LAM_OK;
}

static int is_float(lam_dtype dtype)
{
    return dtype == LAM_F32 || dtype == LAM_F16 || dtype == LAM_BF16 || dtype == LAM_F64;
}

static lam_status check_one(const lam_safetensors *st, const lam_param *param, const char *name)
{
    char have[128], want[128];
    const lam_st_tensor *const tensor = lam_st_find(st, name);
    const lam_shape shape = lam_param_shape(param);
    if (!tensor)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is missing", lam_st_path(st), name);
    if (!is_float(tensor->dtype))
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, must be F32, F16, BF16 or F64",
                        lam_st_path(st), name, lam_dtype_name(tensor->dtype));
    if (!lam_shape_equal(&tensor->shape, &shape))
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, the configuration makes it %s",
                        lam_st_path(st), name, lam_shape_text(&tensor->shape, have, sizeof have),
                        lam_shape_text(&shape, want, sizeof want));
    return LAM_OK;
}

lam_status lam_params_check(const lam_safetensors *st, const lam_params *p, const char *prefix)
{
    char name[FULL_NAME];
    for (int i = 0; i < p->n; i++)
        LAM_TRY(check_one(st, &p->list[i], full_name(name, prefix, &p->list[i])));
    return LAM_OK;
}

lam_status lam_params_read(const lam_safetensors *st, lam_params *p, void *flat, const char *prefix)
{
    char name[FULL_NAME];
    lam_status status = LAM_OK;
    for (int i = 0; i < p->n && status == LAM_OK; i++) {
        const size_t n = lam_param_count(&p->list[i]);
        double *const host = malloc(n * sizeof *host + 1);
        status =
            host ? lam_st_read(st, full_name(name, prefix, &p->list[i]), host, LAM_F64, n)
                 : lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory to load it", p->list[i].name);
        if (status == LAM_OK)
            status = lam_params_set(p, flat, i, host);
        free(host);
    }
    return status;
}
