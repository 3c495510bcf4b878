/* torchfile_fuzz.c -- whatever the bytes, opening them as a file of PyTorch fails with a message, or every
 * tensor in its top dictionary fails with one or can be read to its last element.
 *
 * The way through zip, pickle and tensors together.  An input that is no archive is taken for the pickle of
 * one. */
#include "io/torchfile.h"

#include "fuzz/torch_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

static void use_tensor(lam_torch *t, const lam_py *node)
{
    lam_strided x;
    if (lam_torch_tensor(t, node, "x", &x) != LAM_OK) {
        require(strncmp(lam_error(), "input: ", 7) == 0);
        return;
    }
    const size_t n = lam_shape_count(&x.shape);
    double *copy = malloc((n + 1) * sizeof *copy);
    require(copy != NULL);
    lam_strided_copy(copy, LAM_F64, &x, 0, n);
    if (n > 1) {
        double again;
        lam_strided_copy(&again, LAM_F64, &x, n - 1, 1);
        require(memcmp(&again, &copy[n - 1], sizeof again) == 0);
    }
    free(copy);
}

static void use_file(const void *data, size_t size)
{
    lam_torch *t;
    if (lam_torch_parse(&t, "input", data, size) != LAM_OK) {
        require(t == NULL && strncmp(lam_error(), "input: ", 7) == 0);
        return;
    }
    const lam_py_list *pairs = lam_py_pairs(lam_torch_root(t));
    for (size_t i = 1; pairs && i < pairs->n && i < 64; i += 2)
        if (lam_torch_is_tensor(pairs->v[i]))
            use_tensor(t, pairs->v[i]);
    lam_torch_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2 && memcmp(data, "PK", 2) == 0)
        use_file(data, size);
    else
        use_pickle(data, size, use_file);
    return 0;
}
