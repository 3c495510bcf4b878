/* zip_directory.c -- the central directory of a zip archive, including the 64-bit fields of Zip64.
 *
 * Not read by minizip, because version 1.1, which distributions ship, takes 0xffffffff ("see the extra
 * field" in Zip64) for a size or an offset. Section numbers refer to PKWARE's APPNOTE: 4.3.12 is an entry,
 * 4.3.14 to 4.3.16 end the archive, 4.5.3 is the extra field. */
#include "io/zip_int.h"

#include "core/little.h"
#include "core/size.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_ENTRIES = 1 << 20,
    MAX_NAME = 1024,
    MAX_RATIO = 1032, /* deflate cannot do better */
    ENCRYPTED = 1,    /* bit of the flags */
    ENTRY = 46,       /* bytes of the records, without what varies */
    END = 22,
    END64 = 56,
    LOCATOR = 20,
    ZIP64 = 1 /* id of the extra field */
};
static const uint64_t ELSEWHERE = 0xffffffff; /* in Zip64's extra field */

typedef struct directory {
    size_t at, end; /* of its records */
    uint64_t count;
} directory;

static lam_status broken(const lam_zip *zip, const char *what)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: not a whole zip archive: %s", zip->label, what);
}

/* ---- the end of the archive ---- */

/* Where the record that ends the archive begins: with its comment it ends the file.  SIZE_MAX: nowhere. */
static size_t find_end(const lam_zip *zip)
{
    enum { COMMENT = 0xffff };
    for (size_t n = END; n <= zip->size && n <= END + COMMENT; n++) {
        const unsigned char *at = zip->data + zip->size - n;
        if (memcmp(at, "PK\5\6", 4) == 0 && lam_little(at + 20, 2) == n - END)
            return zip->size - n;
    }
    return SIZE_MAX;
}

/* Zip64 has an end of its own, and a record just before the old one that says where. */
static lam_status find_directory(const lam_zip *zip, directory *out)
{
    const size_t end = find_end(zip);
    *out = (directory){0};
    if (end == SIZE_MAX)
        return broken(zip, "no directory at its end");
    const unsigned char *record = zip->data + end;
    uint64_t size = lam_little(record + 12, 4), at = lam_little(record + 16, 4);
    *out = (directory){.end = end, .count = lam_little(record + 10, 2)};
    if (end >= LOCATOR && memcmp(record - LOCATOR, "PK\6\7", 4) == 0) {
        const uint64_t place = lam_little(record - LOCATOR + 8, 8);
        if (end < LOCATOR + END64 || place > end - LOCATOR - END64 ||
            memcmp(zip->data + place, "PK\6\6", 4) != 0)
            return broken(zip, "no Zip64 directory where it should be");
        record = zip->data + place;
        *out = (directory){.end = (size_t)place, .count = lam_little(record + 32, 8)};
        size = lam_little(record + 40, 8);
        at = lam_little(record + 48, 8);
    }
    if (at > out->end || size > out->end - at)
        return broken(zip, "its directory is cut");
    out->at = (size_t)at;
    out->end = (size_t)(at + size);
    return LAM_OK;
}

/* ---- directory entries ---- */

/* Replaces those of the three numbers that stand in the extra field, in this order.  0: they do not. */
static int read_zip64(uint64_t *const numbers[3], const unsigned char *extra, size_t size)
{
    int wanted = 0;
    for (int i = 0; i < 3; i++)
        wanted += *numbers[i] == ELSEWHERE;
    while (wanted > 0 && size >= 4) {
        const uint64_t id = lam_little(extra, 2), length = lam_little(extra + 2, 2);
        extra += 4;
        size -= 4;
        if (length > size)
            return 0;
        if (id == ZIP64) {
            if (length < 8 * (uint64_t)wanted)
                return 0;
            for (int i = 0; i < 3; i++)
                if (*numbers[i] == ELSEWHERE) {
                    *numbers[i] = lam_little(extra, 8);
                    extra += 8;
                }
            return 1;
        }
        extra += length;
        size -= (size_t)length;
    }
    return wanted == 0;
}

static lam_status check_entry(const lam_zip *zip, const lam_zip_entry *e, uint64_t size,
                              uint64_t packed)
{
    if (e->method != LAM_ZIP_STORED && e->method != LAM_ZIP_DEFLATED)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "%s: entry %s is packed by method %d, only stored and deflate are read",
                        zip->label, e->name, e->method);
    if (packed > zip->size || (e->method == LAM_ZIP_STORED && size != packed) ||
        size / MAX_RATIO > packed + 1)
        return lam_fail(LAM_ERR_FORMAT, "%s: entry %s: %llu bytes packed into %llu", zip->label,
                        e->name, (unsigned long long)size, (unsigned long long)packed);
    return LAM_OK;
}

/* Adds the entry whose record begins at `record`; `left` bytes of the directory, of which it takes *used. */
static lam_status read_entry(lam_zip *zip, const unsigned char *record, size_t left, size_t *used)
{
    *used = 0;
    if (left < ENTRY || memcmp(record, "PK\1\2", 4) != 0)
        return broken(zip, "its directory is cut");
    const size_t name = (size_t)lam_little(record + 28, 2);
    const size_t extra = (size_t)lam_little(record + 30, 2);
    *used = ENTRY + name + extra + (size_t)lam_little(record + 32, 2);
    if (*used > left)
        return broken(zip, "its directory is cut");
    if (name >= MAX_NAME || memchr(record + ENTRY, '\0', name))
        return broken(zip, "an entry's name is too long or holds a zero");
    lam_zip_entry *const e = &zip->entries[zip->count];
    e->name = malloc(name + 1);
    if (!e->name)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for its directory", zip->label);
    memcpy(e->name, record + ENTRY, name);
    e->name[name] = '\0';
    zip->count++;
    e->method = (int)lam_little(record + 10, 2);
    e->crc = (uint32_t)lam_little(record + 16, 4);
    if (lam_little(record + 8, 2) & ENCRYPTED)
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: entry %s is encrypted", zip->label, e->name);
    uint64_t size = lam_little(record + 24, 4), packed = lam_little(record + 20, 4);
    e->place = lam_little(record + 42, 4);
    if (!read_zip64((uint64_t *const[]){&size, &packed, &e->place}, record + ENTRY + name, extra))
        return broken(zip, "an entry without the sizes that Zip64 promises");
    LAM_TRY(check_entry(zip, e, size, packed));
    e->size = (size_t)size;
    e->packed = (size_t)packed;
    return LAM_OK;
}

static int compare_names(const void *a, const void *b)
{
    const lam_zip_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* No name twice; and no bytes twice, or a small file would unpack, or be summed, without end. */
static lam_status check_all(const lam_zip *zip)
{
    size_t packed = 0;
    for (int i = 0; i < zip->count; i++) {
        if (i > 0 && strcmp(zip->entries[i - 1].name, zip->entries[i].name) == 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: two entries are called %s", zip->label,
                            zip->entries[i].name);
        if (!lam_size_muladd(&packed, 1, zip->entries[i].packed, packed) || packed > zip->size)
            return lam_fail(
                LAM_ERR_FORMAT,
                "%s: its entries overlap: together they are larger than the file of %zu bytes",
                zip->label, zip->size);
    }
    return LAM_OK;
}

lam_status lam_zip_read_directory(lam_zip *zip)
{
    directory d;
    LAM_TRY(find_directory(zip, &d));
    if (d.count > MAX_ENTRIES)
        return lam_fail(LAM_ERR_FORMAT, "%s: %llu entries, at most %d are read", zip->label,
                        (unsigned long long)d.count, MAX_ENTRIES);
    if (d.count > (d.end - d.at) / ENTRY)
        return broken(zip, "its directory is cut");
    zip->entries = calloc((size_t)d.count + 1, sizeof *zip->entries);
    if (!zip->entries)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for its directory", zip->label);
    for (size_t i = 0, at = d.at, used; i < d.count; i++, at += used)
        LAM_TRY(read_entry(zip, zip->data + at, d.end - at, &used));
    qsort(zip->entries, (size_t)zip->count, sizeof *zip->entries, compare_names);
    return check_all(zip);
}

int lam_zip_find(const lam_zip *zip, const char *name)
{
    const lam_zip_entry wanted = {.name = (char *)(uintptr_t)name};
    const lam_zip_entry *found =
        bsearch(&wanted, zip->entries, (size_t)zip->count, sizeof wanted, compare_names);
    return found ? (int)(found - zip->entries) : -1;
}
