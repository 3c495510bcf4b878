/* tensor.h -- element types and shapes, and conversion between types. */
#ifndef LAM_CORE_TENSOR_H
#define LAM_CORE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

typedef enum lam_dtype {
    LAM_F64,
    LAM_F32,
    LAM_F16,
    LAM_BF16,
    LAM_I64,
    LAM_I32,
    LAM_I16,
    LAM_I8,
    LAM_U64,
    LAM_U32,
    LAM_U16,
    LAM_U8,
    LAM_BOOL,
    LAM_DTYPES /* how many there are */
} lam_dtype;

enum { LAM_MAX_DIMS = 8 };

typedef struct lam_shape {
    int rank; /* 0 is a scalar: one element */
    int64_t dim[LAM_MAX_DIMS];
} lam_shape;

size_t lam_dtype_size(lam_dtype dtype);
int lam_dtype_is_float(lam_dtype dtype);
const char *lam_dtype_name(lam_dtype dtype); /* the safetensors spelling: "F32", "BF16", ... */
/* Returns LAM_DTYPES if there is no such name. */
lam_dtype lam_dtype_find(const char *name);

/* Number of elements; SIZE_MAX when a dimension is negative, or when none is 0 and the product overflows. */
size_t lam_shape_count(const lam_shape *shape);
int lam_shape_equal(const lam_shape *a, const lam_shape *b);
/* Writes "[2, 3]" into text and returns it. */
char *lam_shape_text(const lam_shape *shape, char *text, size_t size);

/* dst[i] = src[i] with a change of type, for host memory; dst and src must not overlap unless they
 * are equal and of one type.  Any alignment will do.  Float to bf16/f16 rounds to nearest even;
 * float to integer truncates and saturates (NaN gives 0), integer to integer saturates; to bool,
 * everything but zero is true. */
void lam_convert(void *dst, lam_dtype dst_type, const void *src, lam_dtype src_type, size_t n);

/* How many of n numbers come before the first that is infinite or NaN; n where all are finite, as integers
 * always are.  Any alignment will do. */
size_t lam_finite_count(const void *data, lam_dtype dtype, size_t n);

#endif
