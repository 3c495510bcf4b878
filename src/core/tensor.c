/* tensor.c -- names and sizes of element types, and shapes.  Conversion is in convert.c. */
#include "core/tensor.h"

#include "core/size.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[LAM_DTYPES] = {
    [LAM_F64] = {"F64", 8},   [LAM_F32] = {"F32", 4}, [LAM_F16] = {"F16", 2},
    [LAM_BF16] = {"BF16", 2}, [LAM_I64] = {"I64", 8}, [LAM_I32] = {"I32", 4},
    [LAM_I16] = {"I16", 2},   [LAM_I8] = {"I8", 1},   [LAM_U64] = {"U64", 8},
    [LAM_U32] = {"U32", 4},   [LAM_U16] = {"U16", 2}, [LAM_U8] = {"U8", 1},
    [LAM_BOOL] = {"BOOL", 1},
};

size_t lam_dtype_size(lam_dtype dtype)
{
    assert(dtype < LAM_DTYPES);
    return types[dtype].size;
}

int lam_dtype_is_float(lam_dtype dtype)
{
    return dtype == LAM_F64 || dtype == LAM_F32 || dtype == LAM_F16 || dtype == LAM_BF16;
}

const char *lam_dtype_name(lam_dtype dtype)
{
    assert(dtype < LAM_DTYPES);
    return types[dtype].name;
}

lam_dtype lam_dtype_find(const char *name)
{
    lam_dtype dtype = 0;
    while (dtype < LAM_DTYPES && strcmp(types[dtype].name, name) != 0)
        dtype++;
    return dtype;
}

size_t lam_shape_count(const lam_shape *shape)
{
    size_t count = 1;
    bool empty = false;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t dim = shape->dim[i];
        if (dim < 0)
            return SIZE_MAX;
        empty |= dim == 0;
        lam_size_muladd(&count, count, (size_t)dim, 0); /* SIZE_MAX stays, unless there is a 0 */
    }
    return empty ? 0 : count;
}

int lam_shape_equal(const lam_shape *a, const lam_shape *b)
{
    if (a->rank != b->rank)
        return 0;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return 0;
    return 1;
}

char *lam_shape_text(const lam_shape *shape, char *text, size_t size)
{
    char whole[2 + LAM_MAX_DIMS * 22 + 1]; /* a dimension has at most 20 characters */
    char *at = whole;
    at += sprintf(at, "[");
    for (int i = 0; i < shape->rank; i++)
        at += sprintf(at, "%s%lld", i ? ", " : "", (long long)shape->dim[i]);
    sprintf(at, "]");
    snprintf(text, size, "%s", whole);
    return text;
}
