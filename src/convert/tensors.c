/* tensors.c -- see tensors.h.  Finding them in a PyTorch file is in torch_state.c. */
#include "convert/tensors.h"

#include "core/grow.h"
#include "nn/params_io.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *unwrapped(const char *name)
{
    static const char *const wraps[] = {"module.", "transformer."};
    for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++)
        while (strncmp(name, wraps[i], strlen(wraps[i])) == 0)
            name += strlen(wraps[i]);
    return name;
}

lam_status lam_tensors_go_on(const lam_tensors *all)
{
    if (all->stop && all->stop())
        return lam_fail(LAM_ERR_INTERRUPTED, "%s: stopped while reading it", all->label);
    return LAM_OK;
}

lam_status lam_tensors_add(lam_tensors *all, const char *name, const lam_strided *t)
{
    name = unwrapped(name);
    LAM_TRY(lam_tensors_go_on(all));
    if (all->n == LAM_TENSORS_MAX)
        return lam_fail(LAM_ERR_FORMAT, "%s: more than %d tensors", all->label, LAM_TENSORS_MAX);
    if (strlen(name) >= LAM_TENSOR_NAME_MAX)
        return lam_fail(LAM_ERR_FORMAT, "%s: a tensor's name is longer than %d bytes", all->label,
                        LAM_TENSOR_NAME_MAX - 1);
    if (lam_tensors_find(all, name))
        return lam_fail(LAM_ERR_FORMAT, "%s: two tensors are called %s", all->label, name);
    LAM_TRY(lam_grow(&all->list, &all->room, (size_t)all->n + 1, sizeof *all->list, "tensors"));
    lam_named *it = &all->list[all->n++];
    strcpy(it->name, name);
    it->t = *t;
    return LAM_OK;
}

void lam_tensors_free(lam_tensors *all)
{
    free(all->list);
    *all = (lam_tensors){0};
}

const lam_strided *lam_tensors_find(const lam_tensors *all, const char *name)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->list[i].name, name) == 0)
            return &all->list[i].t;
    return NULL;
}

const lam_strided *lam_tensors_at(const lam_tensors *all, const char *format, ...)
{
    char name[LAM_TENSOR_NAME_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return lam_tensors_find(all, name);
}

const lam_strided *lam_tensors_scales(const lam_tensors *all, const char *name)
{
    return lam_tensors_at(all, "%s%s", name, LAM_SCALE_SUFFIX);
}

void lam_tensors_copy(double *out, const lam_tensors *all, const char *name, size_t first, size_t n)
{
    const lam_strided *t = lam_tensors_find(all, name);
    const lam_strided *scales = t->dtype == LAM_I8 ? lam_tensors_scales(all, name) : NULL;
    lam_strided_copy(out, LAM_F64, t, first, n);
    if (!scales)
        return;
    const size_t row = lam_shape_count(&t->shape) / (size_t)t->shape.dim[0];
    double scale = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || (first + i) % row == 0)
            lam_strided_copy(&scale, LAM_F64, scales, (first + i) / row, 1);
        out[i] *= scale;
    }
}

lam_status lam_tensors_from_safetensors(lam_tensors *all, const lam_safetensors *st)
{
    for (int i = 0; i < lam_st_count(st); i++) {
        const lam_st_tensor *it = lam_st_at(st, i);
        const lam_strided t = lam_strided_plain(it->dtype, &it->shape, it->data);
        LAM_TRY(lam_tensors_add(all, it->name, &t));
    }
    return LAM_OK;
}
