/* zip.c -- see zip.h: opens an archive and decompresses its entries. The directory is in zip_directory.c. */
#include "io/zip_int.h"

#include "core/little.h"
#include "core/size.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

lam_status lam_zip_parse(lam_zip **out, const char *label, const void *data, size_t size)
{
    *out = NULL;
    lam_zip *const zip = calloc(1, sizeof *zip);
    if (!zip || !(zip->label = strdup(label))) {
        free(zip);
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", label);
    }
    zip->data = data;
    zip->size = size;
    const lam_status status = lam_zip_read_directory(zip);
    if (status == LAM_OK)
        *out = zip;
    else
        lam_zip_close(zip);
    return status;
}

void lam_zip_close(lam_zip *zip)
{
    if (!zip)
        return;
    for (int i = 0; i < zip->count; i++) {
        free(zip->entries[i].name);
        free(zip->entries[i].unpacked);
    }
    free(zip->entries);
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

size_t lam_zip_size(const lam_zip *zip, int i)
{
    return zip->entries[i].size;
}

/* ---- reading bytes ---- */

/* The entry's bytes as they lie in the file, behind a header that repeats its name. */
static lam_status find_bytes(const lam_zip *zip, const lam_zip_entry *e, const unsigned char **out)
{
    enum { LOCAL = 30 };
    *out = NULL;
    if (zip->size < LOCAL || e->place > zip->size - LOCAL)
        return lam_fail(LAM_ERR_FORMAT, "%s: entry %s lies past the end of the file", zip->label,
                        e->name);
    const unsigned char *const header = zip->data + e->place;
    const size_t left = zip->size - LOCAL - (size_t)e->place;
    const size_t name = (size_t)lam_little(header + 26, 2);
    const size_t skip = name + (size_t)lam_little(header + 28, 2); /* with the extra field */
    if (memcmp(header, "PK\3\4", 4) != 0 || lam_little(header + 8, 2) != (uint64_t)e->method ||
        skip > left || name != strlen(e->name) || memcmp(header + LOCAL, e->name, name) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: entry %s is not where the directory says", zip->label,
                        e->name);
    if (e->packed > left - skip)
        return lam_fail(LAM_ERR_FORMAT, "%s: entry %s ends past the end of the file", zip->label,
                        e->name);
    *out = header + LOCAL + skip;
    return LAM_OK;
}

/* In pieces that zlib can count.  0: the bytes are not what was promised; -1: no memory. */
static int inflate_bytes(unsigned char *to, size_t size, const unsigned char *from, size_t packed)
{
    enum { PIECE = 1 << 30, RAW = -15 };
    z_stream z = {0};
    int result = inflateInit2(&z, RAW);
    if (result != Z_OK)
        return result == Z_MEM_ERROR ? -1 : 0;
    z.next_in = (unsigned char *)(uintptr_t)from;
    z.next_out = to;
    while (result == Z_OK) { /* Z_BUF_ERROR where neither side has a byte left */
        const size_t in = packed - (size_t)(z.next_in - from),
                     out = size - (size_t)(z.next_out - to);
        z.avail_in = in < PIECE ? (unsigned)in : PIECE;
        z.avail_out = out < PIECE ? (unsigned)out : PIECE;
        result = inflate(&z, Z_NO_FLUSH);
    }
    const int whole =
        result == Z_STREAM_END && z.next_in == from + packed && z.next_out == to + size;
    inflateEnd(&z);
    return result == Z_MEM_ERROR ? -1 : whole;
}

/* Before memory is taken: honest checkpoints are hardly compressed, and PyTorch does not try. */
static lam_status allow_inflating(lam_zip *zip, const lam_zip_entry *e)
{
    size_t limit, total;
    lam_size_muladd(&limit, zip->size, LAM_ZIP_RATIO, LAM_ZIP_FLOOR);
    if (!lam_size_muladd(&total, 1, e->size, zip->inflated) || total > limit)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: entry %s unpacks to %zu bytes; in all at most %zu, %d times the file, "
                        "are unpacked: pack it anew without compression",
                        zip->label, e->name, e->size, limit, LAM_ZIP_RATIO);
    zip->inflated = total;
    return LAM_OK;
}

static lam_status inflate_entry(lam_zip *zip, lam_zip_entry *e, const unsigned char *packed)
{
    LAM_TRY(allow_inflating(zip, e));
    unsigned char *const bytes = malloc(e->size + 1);
    const int whole = bytes ? inflate_bytes(bytes, e->size, packed, e->packed) : -1;
    if (whole <= 0) {
        free(bytes);
        return whole < 0 ? lam_fail(LAM_ERR_MEMORY, "%s: entry %s: no memory for %zu bytes",
                                    zip->label, e->name, e->size)
                         : lam_fail(LAM_ERR_FORMAT, "%s: entry %s cannot be unpacked", zip->label,
                                    e->name);
    }
    e->data = e->unpacked = bytes;
    return LAM_OK;
}

static lam_status load_entry(lam_zip *zip, lam_zip_entry *e)
{
    const unsigned char *bytes;
    LAM_TRY(find_bytes(zip, e, &bytes));
    if (e->method == LAM_ZIP_STORED)
        e->data = bytes;
    else
        LAM_TRY(inflate_entry(zip, e, bytes));
    if (crc32_z(0, e->data, e->size) == e->crc)
        return LAM_OK;
    e->data = NULL;
    free(e->unpacked);
    e->unpacked = NULL;
    return lam_fail(LAM_ERR_FORMAT, "%s: entry %s: its checksum is wrong", zip->label, e->name);
}

lam_status lam_zip_load(lam_zip *zip, int i, const void **data, size_t *size)
{
    lam_zip_entry *const e = &zip->entries[i];
    *data = NULL;
    *size = 0;
    if (!e->data)
        LAM_TRY(load_entry(zip, e));
    *data = e->data;
    *size = e->size;
    return LAM_OK;
}
