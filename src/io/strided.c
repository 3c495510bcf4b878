/* strided.c -- see strided.h. Contiguous runs of the last dimension are converted at once. */
#include "io/strided.h"

#include <math.h>

lam_strided lam_strided_plain(lam_dtype dtype, const lam_shape *shape, const void *data)
{
    lam_strided t = {.dtype = dtype, .shape = *shape, .data = data};
    int64_t step = 1;
    if (lam_shape_count(shape) == 0) /* then products of the other dimensions need not fit */
        return t;
    for (int i = shape->rank - 1; i >= 0; i--) {
        t.stride[i] = step;
        step *= shape->dim[i];
    }
    return t;
}

/* Where element k lies, and how many that follow lie right behind it. */
static int64_t place_of(const lam_strided *t, size_t k, size_t *run)
{
    int64_t at = 0;
    *run = 1;
    for (int i = t->shape.rank - 1; i >= 0; i--) {
        const size_t n = (size_t)t->shape.dim[i], index = k % n;
        if (i == t->shape.rank - 1 && t->stride[i] == 1)
            *run = n - index;
        at += (int64_t)index * t->stride[i];
        k /= n;
    }
    return at;
}

void lam_strided_copy(void *dst, lam_dtype dtype, const lam_strided *from, size_t first, size_t n)
{
    const size_t out = lam_dtype_size(dtype);
    const int64_t in = (int64_t)lam_dtype_size(from->dtype);
    for (size_t done = 0; done < n;) {
        size_t run;
        const int64_t at = place_of(from, first + done, &run);
        run = run < n - done ? run : n - done;
        lam_convert((char *)dst + done * out, dtype, (const char *)from->data + at * in,
                    from->dtype, run);
        done += run;
    }
}

int lam_strided_equal(const lam_strided *a, const lam_strided *b)
{
    enum { PIECE = 512 };
    double x[PIECE], y[PIECE];
    const size_t count = lam_shape_count(&a->shape);
    for (size_t at = 0; at < count; at += PIECE) {
        const size_t n = count - at < PIECE ? count - at : PIECE;
        lam_strided_copy(x, LAM_F64, a, at, n);
        lam_strided_copy(y, LAM_F64, b, at, n);
        for (size_t i = 0; i < n; i++)
            if (x[i] != y[i] && !(isnan(x[i]) && isnan(y[i])))
                return 0;
    }
    return 1;
}
