/* safetensors_fuzz.c -- whatever the bytes, parsing fails with a message or gives tensors that can be
 * read to their last byte. */
#include "io/safetensors.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

/* The declared bytes are inside the input, the shape accounts for them, the name finds the tensor. */
static size_t use_tensor(const lam_safetensors *st, const lam_st_tensor *t)
{
    const size_t n = lam_shape_count(&t->shape);
    require(n * lam_dtype_size(t->dtype) == t->bytes);
    require(lam_st_find(st, t->name) == t);

    double *const copy = malloc((n + 1) * sizeof *copy);
    require(copy != NULL);
    require(lam_st_read(st, t->name, copy, LAM_F64, n) == LAM_OK);
    require(lam_st_read(st, t->name, copy, LAM_F64, n + 1) == LAM_ERR_FORMAT);
    free(copy);
    return t->bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lam_safetensors *st;
    const lam_status status = lam_st_parse(&st, "input", data, size);
    if (status != LAM_OK) {
        require(status == LAM_ERR_FORMAT && st == NULL);
        require(strncmp(lam_error(), "input: ", 7) == 0);
        return 0;
    }
    size_t total = 0;
    for (int i = 0; i < lam_st_count(st); i++)
        total += use_tensor(st, lam_st_at(st, i));
    require(total < size); /* the data follows the header, so it is shorter than the file */
    lam_st_meta(st, "format");
    lam_st_close(st);
    return 0;
}
