/* torch_archive.h -- an archive of PyTorch's kind around any pickle, for fuzz targets.
 *
 * Checksums would hide the inside of an archive from a fuzzer; so an input that is no archive becomes the
 * pickle of one, stored, beside a storage "0" of 64 bytes. */
#ifndef TEST_TORCH_ARCHIVE_H
#define TEST_TORCH_ARCHIVE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct buffer {
    unsigned char *p;
    size_t n;
} buffer;

static inline void put(buffer *b, uint32_t value, int width)
{
    for (int i = 0; i < width; i++)
        b->p[b->n++] = (unsigned char)(value >> 8 * i);
}

static inline void put_bytes(buffer *b, const void *data, size_t n)
{
    if (n > 0)
        memcpy(b->p + b->n, data, n);
    b->n += n;
}

/* The fields that a local header and a directory entry share. */
static inline void put_header(buffer *b, const char *name, const void *data, size_t n)
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

/* Hands the archive around a pickle to `use`. */
static inline void use_pickle(const uint8_t *data, size_t size, void (*use)(const void *, size_t))
{
    static const char *const names[] = {"a/data.pkl", "a/data/0"};
    static const unsigned char storage[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const void *const parts[] = {data, storage};
    const size_t sizes[] = {size, sizeof storage};
    uint32_t at[2];
    buffer b = {malloc(size + 1024), 0};
    if (!b.p)
        abort();
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
    use(b.p, b.n);
    free(b.p);
}

#endif
