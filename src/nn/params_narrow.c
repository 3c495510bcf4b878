/* params_narrow.c -- matrices in bf16 or int8, for inference: how they divide from the vectors, and how
 * their rows go in and come out.  A row of a stored matrix is everything behind its first dimension. */
#include "nn/params_int.h"

#include "core/arena.h"
#include "core/quantize.h"

#include <stdlib.h>
#include <string.h>

int lam_param_may_narrow(const lam_param *q)
{
    /* Products, convolutions and tables; what has more dimensions (r_emb) attention reads as it is. */
    return (q->rank == 2 || q->rank == 3) && q->role != LAM_ROLE_VECTOR;
}

int lam_param_is_narrow(const lam_params *p, const lam_param *q)
{
    return p->store != LAM_ACT && lam_param_may_narrow(q);
}

static size_t rows_of(const lam_param *q)
{
    return (size_t)q->dim[0].groups * (size_t)q->dim[0].ld;
}

/* Places in two vectors instead of one: matrices, and everything else. */
static lam_status divide(lam_params *p)
{
    size_t total[2] = {0, 0}; /* not narrow, narrow */
    p->rows = 0;
    for (int i = 0; i < p->n; i++) {
        lam_param *q = &p->list[i];
        size_t *end = &total[lam_param_is_narrow(p, q)];
        q->offset = q->joined ? *end : (*end + LAM_ALIGN - 1) / LAM_ALIGN * LAM_ALIGN;
        *end = q->offset + q->stored;
        if (!lam_param_is_narrow(p, q))
            continue;
        q->row = p->rows;
        p->rows += rows_of(q);
        if (q->stored / rows_of(q) > LAM_NARROW_ROW)
            return lam_fail(LAM_ERR_UNSUPPORTED,
                            "%s: rows of %zu weights in bf16 or int8, at most %d", q->name,
                            q->stored / rows_of(q), LAM_NARROW_ROW);
    }
    p->total = total[0];
    p->narrow_total = total[1];
    return LAM_OK;
}

lam_status lam_params_place_narrow(lam_params *p)
{
    lam_dev *dev = p->dev;
    if (!dev->narrow)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "device %s: weights in bf16 or int8 are for cpu and ref", dev->ops->name);
    LAM_TRY(divide(p));
    LAM_TRY(dev->ops->alloc(dev, &p->narrow, p->narrow_total * lam_class_size(dev, p->store)));
    return dev->ops->alloc(dev, &p->scale, p->rows * lam_class_size(dev, LAM_WIDE));
}

/* One row in its new type, and its scale. */
static lam_status narrow_row(const lam_params *p, const lam_param *q, void *out, float *scale,
                             const double *row, size_t n)
{
    if (p->store == LAM_HALF)
        lam_convert(out, LAM_BF16, row, LAM_F64, n);
    else if (lam_quantize(out, scale, row, n) != 0)
        return lam_fail(LAM_ERR_NUMERIC, "parameter %s: a weight is not finite", q->name);
    return LAM_OK;
}

lam_status lam_params_put_rows(lam_params *p, int i, size_t first, size_t rows,
                               const double *padded)
{
    lam_dev *dev = p->dev;
    const lam_param *q = &p->list[i];
    const size_t n = q->stored / rows_of(q), size = lam_class_size(dev, p->store);
    char *narrow = malloc(rows * n * size + 1);
    float *scale = calloc(rows + 1, sizeof *scale);
    double *wide = malloc((rows + 1) * sizeof *wide); /* scales as the device has them */
    lam_status status = narrow && scale && wide
                            ? LAM_OK
                            : lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory", q->name);
    for (size_t r = 0; r < rows && status == LAM_OK; r++)
        status = narrow_row(p, q, narrow + r * n * size, &scale[r], padded + r * n, n);
    if (status == LAM_OK) {
        lam_convert(wide, dev->wide, scale, LAM_F32, rows);
        dev->ops->upload(dev, lam_at(dev, p->store, p->narrow, q->offset + first * n), narrow,
                         rows * n * size);
        dev->ops->upload(dev, lam_at(dev, LAM_WIDE, p->scale, q->row + first), wide,
                         rows * lam_class_size(dev, LAM_WIDE));
        status = dev->ops->sync(dev); /* the copies go away */
    }
    free(narrow);
    free(scale);
    free(wide);
    return status;
}

lam_status lam_params_take_all(const lam_params *p, int i, double *padded)
{
    lam_dev *dev = p->dev;
    const lam_param *q = &p->list[i];
    const size_t rows = rows_of(q), n = q->stored / rows;
    char *narrow = malloc(q->stored * sizeof(uint16_t) + 1);
    void *wide = malloc((rows + 1) * sizeof(double));
    float *scale = malloc((rows + 1) * sizeof *scale);
    lam_status status = narrow && scale && wide
                            ? LAM_OK
                            : lam_fail(LAM_ERR_MEMORY, "parameter %s: no memory", q->name);
    if (status == LAM_OK)
        status = dev->ops->download(dev, narrow, lam_at(dev, p->store, p->narrow, q->offset),
                                    q->stored * lam_class_size(dev, p->store));
    if (status == LAM_OK)
        status = dev->ops->download(dev, wide, lam_at(dev, LAM_WIDE, p->scale, q->row),
                                    rows * lam_class_size(dev, LAM_WIDE));
    if (status == LAM_OK && p->store == LAM_HALF)
        lam_convert(padded, LAM_F64, narrow, LAM_BF16, q->stored);
    if (status == LAM_OK && p->store == LAM_BYTE) {
        lam_convert(scale, LAM_F32, wide, dev->wide, rows);
        for (size_t r = 0; r < rows; r++)
            lam_dequantize(padded + r * n, (const int8_t *)narrow + r * n, scale[r], n);
    }
    free(narrow);
    free(wide);
    free(scale);
    return status;
}

size_t lam_params_bytes(const lam_params *p)
{
    const lam_dev *dev = p->dev;
    const size_t own = lam_params_one_copy(dev) ? 0 : lam_class_size(dev, LAM_ACT);
    const size_t flat = p->total * (lam_class_size(dev, LAM_WIDE) + own);
    return flat + p->narrow_total * lam_class_size(dev, p->store) +
           p->rows * lam_class_size(dev, LAM_WIDE);
}
