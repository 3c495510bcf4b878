/* strided.h -- a tensor with arbitrary strides, as other programs store it. */
#ifndef LAM_IO_STRIDED_H
#define LAM_IO_STRIDED_H

#include "core/tensor.h"

typedef struct lam_strided {
    lam_dtype dtype;
    lam_shape shape;
    int64_t stride[LAM_MAX_DIMS]; /* elements from one index to the next; below 0: backwards */
    const void *data;             /* the first element, at any address; borrowed */
} lam_strided;

/* Row-major data, whose elements can be counted in an int64_t; strides are 0 where there is no element. */
lam_strided lam_strided_plain(lam_dtype dtype, const lam_shape *shape, const void *data);

/* Copies elements [first, first + n), counted in row-major order, into dst as `dtype`. */
void lam_strided_copy(void *dst, lam_dtype dtype, const lam_strided *from, size_t first, size_t n);

/* Are all elements equal, as numbers (NaN equals NaN)?  The shapes must be. */
int lam_strided_equal(const lam_strided *a, const lam_strided *b);

#endif
