/* torchfile_fuzz.c -- whatever the bytes, opening them as a file of PyTorch fails with a message, or every
 * tensor in its top dictionary fails with one or can be read to its last element.
 *
 * The way through zip, pickle and tensors together.  An input that is no archive is taken for the pickle of
 * one.  What is unpacked and described stays in proportion to the file. */
#include "io/torchfile.h"

#include "fuzz/memory.h"
#include "fuzz/torch_archive.h"
#include "io/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

static void use_tensor(lam_torch *t, const lam_py *node)
{
    enum { PIECE = 512 };
    double piece[PIECE], last = 0.0, again;
    lam_strided x;
    if (lam_torch_tensor(t, node, "x", &x) != LAM_OK) {
        require(strncmp(lam_error(), "input: ", 7) == 0);
        return;
    }
    const size_t count = lam_shape_count(&x.shape);
    for (size_t at = 0; at < count; at += PIECE) {
        const size_t n = count - at < PIECE ? count - at : PIECE;
        lam_strided_copy(piece, LAM_F64, &x, at, n);
        last = piece[n - 1];
    }
    if (count > 0) {
        lam_strided_copy(&again, LAM_F64, &x, count - 1, 1);
        require(memcmp(&again, &last, sizeof again) == 0);
    }
}

static void use_file(const void *data, size_t size)
{
    enum { DESCRIBED = 1 << 25, RATIO = 64 };
    lam_torch *t;
    memory_begin();
    const lam_status status = lam_torch_parse(&t, "input", data, size);
    require(status == LAM_OK || (t == NULL && strncmp(lam_error(), "input: ", 7) == 0));
    const lam_py_list *pairs = t ? lam_py_pairs(lam_torch_root(t)) : NULL;
    for (size_t i = 1; pairs && i < pairs->n && i < 64; i += 2)
        if (lam_torch_is_tensor(pairs->v[i]))
            use_tensor(t, pairs->v[i]);
    lam_torch_close(t);
    require(memory_peak() <= LAM_ZIP_FLOOR + DESCRIBED + RATIO * size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2 && memcmp(data, "PK", 2) == 0)
        use_file(data, size);
    else
        use_pickle(data, size, use_file);
    return 0;
}
