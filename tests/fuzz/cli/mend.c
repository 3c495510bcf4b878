/* mend.c -- checksums made right again after damage, so that the fuzzer gets behind them.
 *
 * Token files, CRC32SUMS of a checkpoint, snapshots, and stored entries of zip archives (docs/formats.md). */
#include "fuzz/cli/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static uint32_t crc_of(const unsigned char *p, size_t n)
{
    return (uint32_t)crc32_z(0, p, n);
}

static size_t number_at(const blob *b, size_t at, size_t width)
{
    uint64_t value = 0;
    memcpy(&value, b->p + at, width);
    return (size_t)value;
}

static void put_crc(blob *b, size_t at, uint32_t crc)
{
    memcpy(b->p + at, &crc, sizeof crc);
}

static int mend_tokens(blob *b)
{
    if (b->n < 64 || memcmp(b->p, "LAMEMOTK", 8) != 0)
        return 0;
    put_crc(b, 28, crc_of(b->p + 64, b->n - 64));
    put_crc(b, 60, crc_of(b->p, 60));
    return 1;
}

static int mend_snapshot(blob *b)
{
    static const char mark[] = "lamemo snapshot 3";
    if (b->n < 64 || b->p[8] != '{' ||
        !memmem(b->p, b->n < 4096 ? b->n : 4096, mark, sizeof mark - 1))
        return 0;
    put_crc(b, b->n - 4, crc_of(b->p, b->n - 4));
    return 1;
}

/* The directory's entry for the file at `offset` gets its checksum. */
static void mend_directory(blob *b, size_t at, size_t offset, uint32_t crc)
{
    for (; at + 46 <= b->n && memcmp(b->p + at, "PK\1\2", 4) == 0;
         at += 46 + number_at(b, at + 28, 2) + number_at(b, at + 30, 2) + number_at(b, at + 32, 2))
        if (number_at(b, at + 42, 4) == offset)
            put_crc(b, at + 16, crc);
}

static int mend_zip(blob *b)
{
    if (b->n < 30 || memcmp(b->p, "PK\3\4", 4) != 0)
        return 0;
    const unsigned char *const directory = memmem(b->p, b->n, "PK\1\2", 4);
    size_t at = 0;
    while (directory && at + 30 <= b->n && memcmp(b->p + at, "PK\3\4", 4) == 0) {
        const size_t data = at + 30 + number_at(b, at + 26, 2) + number_at(b, at + 28, 2);
        const size_t packed = number_at(b, at + 18, 4);
        if (data > b->n || packed > b->n - data)
            break;
        if (number_at(b, at + 8, 2) == 0) {
            const uint32_t crc = crc_of(b->p + data, packed);
            put_crc(b, at + 14, crc);
            mend_directory(b, (size_t)(directory - b->p), at, crc);
        }
        at = data + packed;
    }
    return 1;
}

/* A line CRC BYTES NAME for each file that it named, and one for the lines. */
static void mend_sums(const char *path)
{
    blob b = blob_read(path);
    char text[1 << 14], line[256], folder[PATH_ROOM];
    size_t n = 0;
    blob_replace(&b, b.n, 0, "\n", 2); /* ends as a string */
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    char *save = NULL;
    for (char *p = strtok_r((char *)b.p, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
        char name[128], file[PATH_ROOM];
        struct stat st;
        if (sscanf(p, "%*8x %*u %127[^/\n]", name) != 1 || strcmp(name, "CRC32SUMS") == 0)
            continue;
        path_in(file, folder, name);
        if (lstat(file, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > BLOB_MAX)
            continue;
        blob bytes = blob_read(file);
        snprintf(line, sizeof line, "%08x %zu %s\n", (unsigned)crc_of(bytes.p, bytes.n), bytes.n,
                 name);
        blob_free(&bytes);
        if (n + strlen(line) + 64 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", line);
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "%08x %zu CRC32SUMS\n",
                          (unsigned)crc_of((unsigned char *)text, n), n);
    blob_free(&b);
    blob_replace(&b, 0, 0, text, n);
    blob_write(&b, path);
    blob_free(&b);
}

void mend_tree(const char *root)
{
    static tree t;
    tree_list(&t, root);
    for (int sums = 0; sums < 2; sums++) /* sums of what is mended */
        for (int i = 0; i < t.n; i++) {
            char path[PATH_ROOM];
            const size_t length = strlen(t.at[i].path);
            const int is_sums = length >= 9 && strcmp(t.at[i].path + length - 9, "CRC32SUMS") == 0;
            path_in(path, root, t.at[i].path);
            if (!S_ISREG(t.at[i].mode) || t.at[i].size > BLOB_MAX || is_sums != sums)
                continue;
            if (is_sums) {
                mend_sums(path);
                continue;
            }
            blob b = blob_read(path);
            if (mend_tokens(&b) || mend_snapshot(&b) || mend_zip(&b))
                blob_write(&b, path);
            blob_free(&b);
        }
}
