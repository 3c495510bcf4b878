/* torchfile_fuzz.c -- whatever the bytes, opening them as a file of PyTorch fails with a message, or every
 * tensor in its top dictionary fails with one or can be read to its last element.
 *
 * The way through zip, pickle and tensors together.  Checksums would hide the inside from a fuzzer: an
 * input that is no archive is taken for the pickle of one, with a storage of 64 bytes. */
#include "io/torchfile.h"

#include "io/zip.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

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

/* ---- a stored archive around a pickle ---- */

typedef struct buffer {
    unsigned char *p;
    size_t n;
} buffer;

static void put(buffer *b, uint32_t value, int width)
{
    for (int i = 0; i < width; i++)
        b->p[b->n++] = (unsigned char)(value >> 8 * i);
}

static void put_bytes(buffer *b, const void *data, size_t n)
{
    if (n > 0)
        memcpy(b->p + b->n, data, n);
    b->n += n;
}

/* The fields that a local header and a directory entry share. */
static void put_header(buffer *b, const char *name, const void *data, size_t n)
{
    put(b, 20, 2); /* version needed */
    put(b, 0, 4);  /* flags, stored */
    put(b, 0, 4);  /* time, date */
    put(b, (uint32_t)crc32_z(0, data, n), 4);
    put(b, (uint32_t)n, 4);
    put(b, (uint32_t)n, 4);
    put(b, (uint32_t)strlen(name), 2);
    put(b, 0, 2); /* extra */
}

static void use_pickle(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a/data.pkl", "a/data/0"};
    static const unsigned char storage[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const void *const parts[] = {data, storage};
    const size_t sizes[] = {size, sizeof storage};
    uint32_t at[2];
    buffer b = {malloc(size + 1024), 0};
    require(b.p != NULL);
    for (int i = 0; i < 2; i++) {
        at[i] = (uint32_t)b.n;
        put_bytes(&b, "PK\3\4", 4);
        put_header(&b, names[i], parts[i], sizes[i]);
        put_bytes(&b, names[i], strlen(names[i]));
        put_bytes(&b, parts[i], sizes[i]);
    }
    const uint32_t directory = (uint32_t)b.n;
    for (int i = 0; i < 2; i++) {
        put_bytes(&b, "PK\1\2", 4);
        put(&b, 20, 2);
        put_header(&b, names[i], parts[i], sizes[i]);
        put(&b, 0, 4); /* comment, disk */
        put(&b, 0, 4); /* attributes, inside and */
        put(&b, 0, 2); /* outside */
        put(&b, at[i], 4);
        put_bytes(&b, names[i], strlen(names[i]));
    }
    const uint32_t length = (uint32_t)b.n - directory;
    put_bytes(&b, "PK\5\6", 4);
    put(&b, 0, 4);
    put(&b, 2, 2);
    put(&b, 2, 2);
    put(&b, length, 4);
    put(&b, directory, 4);
    put(&b, 0, 2);
    use_file(b.p, b.n);
    free(b.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2 && memcmp(data, "PK", 2) == 0)
        use_file(data, size);
    else
        use_pickle(data, size);
    return 0;
}
