/* zip.c -- see zip.h. */
#include "io/zip.h"

#include "core/file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unzip.h>
#include <zlib.h>

enum {
    MAX_ENTRIES = 1 << 20,
    MAX_NAME = 1024,
    MAX_RATIO = 1032, /* deflate cannot do better */
    STORED = 0,
    ENCRYPTED = 1 /* bit of the flags */
};

typedef struct entry {
    char *name;
    unz64_file_pos place; /* in the directory */
    size_t size, packed;
    int method;
    uint32_t crc;
    const void *data; /* once loaded */
    void *unpacked;   /* owned; NULL for stored ones */
} entry;

/* What minizip reads instead of a file. */
typedef struct bytes {
    const unsigned char *data;
    size_t size, at;
} bytes;

struct lam_zip {
    char *label;
    lam_map map; /* empty if the caller keeps the bytes */
    bytes in;
    unzFile file;
    entry *entries; /* sorted by name */
    int count;
};

/* ---- minizip's view of memory ---- */

static voidpf open_bytes(voidpf opaque, const void *name, int mode)
{
    (void)name;
    (void)mode;
    return opaque;
}

static uLong read_bytes(voidpf opaque, voidpf stream, void *out, uLong size)
{
    bytes *in = stream;
    (void)opaque;
    const size_t left = in->size - in->at, n = size < left ? size : left;
    if (n > 0)
        memcpy(out, in->data + in->at, n);
    in->at += n;
    return n;
}

static uLong write_nothing(voidpf opaque, voidpf stream, const void *data, uLong size)
{
    (void)opaque, (void)stream, (void)data, (void)size;
    return 0;
}

static ZPOS64_T tell_bytes(voidpf opaque, voidpf stream)
{
    (void)opaque;
    return ((bytes *)stream)->at;
}

static long seek_bytes(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin)
{
    bytes *in = stream;
    (void)opaque;
    const size_t from = origin == ZLIB_FILEFUNC_SEEK_CUR   ? in->at
                        : origin == ZLIB_FILEFUNC_SEEK_END ? in->size
                                                           : 0;
    if (offset > in->size - from)
        return -1;
    in->at = from + offset;
    return 0;
}

static int close_nothing(voidpf opaque, voidpf stream)
{
    (void)opaque, (void)stream;
    return 0;
}

/* ---- the directory ---- */

static lam_status broken(const lam_zip *zip, const char *what)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: not a whole zip archive: %s", zip->label, what);
}

/* The record that ends an archive, its comment included, ends the file.  minizip takes a cut one for an
 * archive without entries. */
static int ends_whole(const bytes *in)
{
    enum { RECORD = 22, COMMENT = 0xffff };
    for (size_t n = RECORD; n <= in->size && n <= RECORD + COMMENT; n++) {
        const unsigned char *at = in->data + in->size - n;
        if (memcmp(at, "PK\5\6", 4) == 0 && (size_t)(at[20] | at[21] << 8) == n - RECORD)
            return 1;
    }
    return 0;
}

static lam_status check_entry(const lam_zip *zip, const entry *e, const unz_file_info64 *info)
{
    if (info->flag & ENCRYPTED)
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: entry %s is encrypted", zip->label, e->name);
    if (e->method != STORED && e->method != Z_DEFLATED)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "%s: entry %s is packed by method %d, only stored and "
                        "deflate are read",
                        zip->label, e->name, e->method);
    if (info->compressed_size > zip->in.size ||
        (e->method == STORED && info->uncompressed_size != info->compressed_size) ||
        info->uncompressed_size / MAX_RATIO > info->compressed_size + 1)
        return lam_fail(LAM_ERR_FORMAT, "%s: entry %s: %llu bytes packed into %llu", zip->label,
                        e->name, (unsigned long long)info->uncompressed_size,
                        (unsigned long long)info->compressed_size);
    return LAM_OK;
}

static lam_status read_entry(lam_zip *zip)
{
    char name[MAX_NAME];
    unz_file_info64 info;
    entry *const e = &zip->entries[zip->count];
    if (unzGetCurrentFileInfo64(zip->file, &info, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK)
        return broken(zip, "its directory is cut");
    if (info.size_filename >= sizeof name || strlen(name) != info.size_filename)
        return broken(zip, "an entry's name is too long or holds a zero");
    if (unzGetFilePos64(zip->file, &e->place) != UNZ_OK)
        return broken(zip, "its directory is cut");
    e->name = strdup(name);
    if (!e->name)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for its directory", zip->label);
    zip->count++;
    e->method = (int)info.compression_method;
    e->crc = (uint32_t)info.crc;
    LAM_TRY(check_entry(zip, e, &info));
    e->size = (size_t)info.uncompressed_size;
    e->packed = (size_t)info.compressed_size;
    return LAM_OK;
}

static int compare_names(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static lam_status read_directory(lam_zip *zip)
{
    zlib_filefunc64_def reader = {open_bytes, read_bytes,    write_nothing, tell_bytes,
                                  seek_bytes, close_nothing, close_nothing, &zip->in};
    unz_global_info64 info;
    if (!ends_whole(&zip->in))
        return broken(zip, "no directory at its end");
    zip->file = unzOpen2_64(zip->label, &reader);
    if (!zip->file || unzGetGlobalInfo64(zip->file, &info) != UNZ_OK)
        return broken(zip, "its directory is cut");
    if (info.number_entry > MAX_ENTRIES)
        return lam_fail(LAM_ERR_FORMAT, "%s: %llu entries, at most %d are read", zip->label,
                        (unsigned long long)info.number_entry, MAX_ENTRIES);
    zip->entries = calloc((size_t)info.number_entry + 1, sizeof *zip->entries);
    if (!zip->entries)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for its directory", zip->label);
    for (ZPOS64_T i = 0; i < info.number_entry; i++) {
        const int found = i == 0 ? unzGoToFirstFile(zip->file) : unzGoToNextFile(zip->file);
        if (found != UNZ_OK)
            return broken(zip, "its directory is cut");
        LAM_TRY(read_entry(zip));
    }
    qsort(zip->entries, (size_t)zip->count, sizeof *zip->entries, compare_names);
    for (int i = 1; i < zip->count; i++)
        if (strcmp(zip->entries[i - 1].name, zip->entries[i].name) == 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: two entries are called %s", zip->label,
                            zip->entries[i].name);
    return LAM_OK;
}

lam_status lam_zip_parse(lam_zip **out, const char *label, const void *data, size_t size)
{
    *out = NULL;
    lam_zip *const zip = calloc(1, sizeof *zip);
    if (!zip || !(zip->label = strdup(label))) {
        free(zip);
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", label);
    }
    zip->in = (bytes){data, size, 0};
    const lam_status status = read_directory(zip);
    if (status == LAM_OK)
        *out = zip;
    else
        lam_zip_close(zip);
    return status;
}

lam_status lam_zip_open(lam_zip **out, const char *path)
{
    lam_map map;
    *out = NULL;
    LAM_TRY(lam_map_open(&map, path));
    const lam_status status = lam_zip_parse(out, path, map.data, map.size);
    if (status == LAM_OK)
        (*out)->map = map;
    else
        lam_map_close(&map);
    return status;
}

void lam_zip_close(lam_zip *zip)
{
    if (!zip)
        return;
    if (zip->file)
        unzClose(zip->file);
    for (int i = 0; i < zip->count; i++) {
        free(zip->entries[i].name);
        free(zip->entries[i].unpacked);
    }
    free(zip->entries);
    lam_map_close(&zip->map);
    free(zip->label);
    free(zip);
}

int lam_zip_count(const lam_zip *zip)
{
    return zip->count;
}

const char *lam_zip_name(const lam_zip *zip, int i)
{
    return zip->entries[i].name;
}

int lam_zip_find(const lam_zip *zip, const char *name)
{
    const entry wanted = {.name = (char *)(uintptr_t)name};
    const entry *found =
        bsearch(&wanted, zip->entries, (size_t)zip->count, sizeof wanted, compare_names);
    return found ? (int)(found - zip->entries) : -1;
}

/* ---- the bytes ---- */

/* Where the open entry's bytes lie, as they are. */
static lam_status view_stored(lam_zip *zip, entry *e)
{
    const ZPOS64_T at = unzGetCurrentFileZStreamPos64(zip->file);
    if (at > zip->in.size || e->size > zip->in.size - at)
        return lam_fail(LAM_ERR_FORMAT, "%s: entry %s ends past the end of the file", zip->label,
                        e->name);
    const unsigned char *const data = zip->in.data + at;
    if (crc32_z(0, data, e->size) != e->crc)
        return lam_fail(LAM_ERR_FORMAT, "%s: entry %s: its checksum is wrong", zip->label, e->name);
    e->data = data;
    return LAM_OK;
}

static lam_status inflate_entry(lam_zip *zip, entry *e)
{
    size_t done = 0;
    int n = 1;
    e->unpacked = malloc(e->size + 1);
    if (!e->unpacked)
        return lam_fail(LAM_ERR_MEMORY, "%s: entry %s: no memory for %zu bytes", zip->label,
                        e->name, e->size);
    while (done < e->size && n > 0) {
        const size_t left = e->size - done;
        n = unzReadCurrentFile(zip->file, (char *)e->unpacked + done,
                               left < 1 << 24 ? (unsigned)left : 1 << 24);
        done += n > 0 ? (size_t)n : 0;
    }
    if (done != e->size || crc32_z(0, e->unpacked, e->size) != e->crc) {
        free(e->unpacked);
        e->unpacked = NULL;
        return lam_fail(LAM_ERR_FORMAT, "%s: entry %s cannot be unpacked", zip->label, e->name);
    }
    e->data = e->unpacked;
    return LAM_OK;
}

lam_status lam_zip_load(lam_zip *zip, int i, const void **data, size_t *size)
{
    entry *const e = &zip->entries[i];
    *data = NULL;
    *size = 0;
    if (!e->data) {
        if (unzGoToFilePos64(zip->file, &e->place) != UNZ_OK ||
            unzOpenCurrentFile2(zip->file, NULL, NULL, e->method == STORED) != UNZ_OK)
            return lam_fail(LAM_ERR_FORMAT, "%s: entry %s is not where the directory says",
                            zip->label, e->name);
        const lam_status status = e->method == STORED ? view_stored(zip, e) : inflate_entry(zip, e);
        unzCloseCurrentFile(zip->file);
        LAM_TRY(status);
    }
    *data = e->data;
    *size = e->size;
    return LAM_OK;
}
