/* instream_inflate.c -- gzip and zip, both deflate inside.
 *
 * A gzip file may be several members one after the other.  A zip archive is read front to back
 * through its local headers, so that it may come through a pipe; files that are not wanted are
 * skipped.  Encrypted files and methods other than stored and deflate are refused, and a stored file
 * whose size is not in front of it cannot be delimited. */
#include "core/file.h"
#include "core/little.h"
#include "data/instream_int.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- gzip ---- */

static lam_status zlib_failed(const lam_instream *in, const z_stream *z, int code)
{
    if (code == Z_MEM_ERROR)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory to unpack", in->path);
    return lam_instream_corrupt(in, z->msg != NULL ? z->msg : zError(code));
}

static lam_status gzip_open(lam_instream *in, const char *entry)
{
    (void)entry;
    z_stream *z = calloc(1, sizeof *z);
    if (z == NULL || inflateInit2(z, 16 + MAX_WBITS) != Z_OK) {
        free(z);
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory to unpack", in->path);
    }
    in->state = z;
    return LAM_OK;
}

/* Inflates into buffer until it is full, the stream ends (*ended) or the window is used up. */
static lam_status inflate_some(lam_instream *in, z_stream *z, unsigned char *buffer, size_t size,
                               size_t *got, int *ended)
{
    z->next_in = in->window + in->at;
    z->avail_in = (uInt)(in->end - in->at);
    z->next_out = buffer;
    z->avail_out = (uInt)(size < 1u << 30 ? size : 1u << 30);
    const uInt room = z->avail_out;
    const int code = inflate(z, Z_NO_FLUSH);
    in->at = in->end - z->avail_in;
    *got = room - z->avail_out;
    *ended = code == Z_STREAM_END;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? LAM_OK
                                                                       : zlib_failed(in, z, code);
}

static lam_status gzip_read(lam_instream *in, unsigned char *buffer, size_t size, size_t *got)
{
    z_stream *z = in->state;
    while (*got == 0) {
        int ended;
        LAM_TRY(lam_instream_fill(in));
        if (in->at == in->end) /* fine between members, where nothing has been fed yet */
            return z->total_in == 0 ? LAM_OK : lam_instream_truncated(in);
        LAM_TRY(inflate_some(in, z, buffer, size, got, &ended));
        if (ended)
            inflateReset(z); /* total_in becomes 0 */
    }
    return LAM_OK;
}

static void gzip_close(lam_instream *in)
{
    if (in->state != NULL)
        inflateEnd(in->state);
    free(in->state);
}

const lam_unpacker lam_unpack_gzip = {"gzip", "\x1f\x8b\x08", 3, gzip_open, gzip_read, gzip_close};

/* ---- zip ---- */

enum { ZIP_LOCAL = 0x04034b50, ZIP_DESCRIPTOR = 0x08074b50, STORED = 0, DEFLATED = 8 };

typedef struct zip {
    z_stream z;
    unsigned method, flags;
    int zip64;
    uint32_t crc, crc_want;
    uint64_t packed, unpacked; /* sizes by the header; unknown when flags has bit 3 */
    uint64_t left;             /* of a stored file */
    uint64_t produced;
    int done;
    char name[4096];
} zip;

/* Sizes above 4 GiB stand in extra field 1, in this order, each only if its short form is full. */
static lam_status read_extra(lam_instream *in, zip *f, size_t size)
{
    unsigned char field[4], body[65536];
    while (size >= 4) {
        LAM_TRY(lam_instream_take(in, field, 4));
        const size_t id = (size_t)lam_little(field, 2), len = (size_t)lam_little(field + 2, 2);
        size -= 4;
        if (len > size)
            return lam_instream_corrupt(in, "an extra field ends past its header");
        LAM_TRY(lam_instream_take(in, body, len));
        size -= len;
        size_t at = 0;
        if (id != 1)
            continue;
        f->zip64 = 1;
        if (f->unpacked == 0xffffffff && at + 8 <= len) {
            f->unpacked = lam_little(body + at, 8);
            at += 8;
        }
        if (f->packed == 0xffffffff && at + 8 <= len)
            f->packed = lam_little(body + at, 8);
    }
    return lam_instream_take(in, body, size);
}

static int is_file(const char *name)
{
    const size_t len = strlen(name);
    return len > 0 && name[len - 1] != '/';
}

/* Reads the header of the next file; *found is 0 when only the directory is left. */
static lam_status read_header(lam_instream *in, zip *f, int *found)
{
    unsigned char h[30];
    *found = 0;
    LAM_TRY(lam_instream_take(in, h, 4));
    if (lam_little(h, 4) != ZIP_LOCAL)
        return LAM_OK;
    LAM_TRY(lam_instream_take(in, h + 4, sizeof h - 4));
    f->flags = (unsigned)lam_little(h + 6, 2);
    f->method = (unsigned)lam_little(h + 8, 2);
    f->crc_want = (uint32_t)lam_little(h + 14, 4);
    f->packed = lam_little(h + 18, 4);
    f->unpacked = lam_little(h + 22, 4);
    f->crc = (uint32_t)crc32(0, NULL, 0);
    f->produced = 0;
    f->done = f->zip64 = 0;
    const size_t name = (size_t)lam_little(h + 26, 2), extra = (size_t)lam_little(h + 28, 2);
    if (name >= sizeof f->name)
        return lam_instream_corrupt(in, "a file name is longer than 4095 bytes");
    LAM_TRY(lam_instream_take(in, f->name, name));
    f->name[name] = '\0';
    LAM_TRY(read_extra(in, f, extra));
    f->left = f->packed;
    *found = 1;

    if (f->flags & 1)
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: '%s' is encrypted", in->path, f->name);
    if (f->method != STORED && f->method != DEFLATED)
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: '%s' is packed with zip method %u, not deflate",
                        in->path, f->name, f->method);
    if (f->method == STORED && (f->flags & 8) != 0 && f->packed == 0 && is_file(f->name))
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: '%s' is stored without its size", in->path,
                        f->name);
    inflateReset(&f->z);
    return LAM_OK;
}

/* After the data: size and checksum must be those announced, before it or after it. */
static lam_status finish_file(lam_instream *in, zip *f)
{
    f->done = 1;
    if (f->flags & 8) {
        unsigned char d[8];
        const int width = f->zip64 ? 8 : 4;
        LAM_TRY(lam_instream_take(in, d, 4));
        if (lam_little(d, 4) == ZIP_DESCRIPTOR)
            LAM_TRY(lam_instream_take(in, d, 4));
        f->crc_want = (uint32_t)lam_little(d, 4);
        LAM_TRY(lam_instream_take(in, d, (size_t)width));
        LAM_TRY(lam_instream_take(in, d, (size_t)width));
        f->unpacked = lam_little(d, width);
    }
    if (f->crc != f->crc_want || f->produced != f->unpacked)
        return lam_instream_corrupt(in, "checksum or size of the file is wrong");
    return LAM_OK;
}

static lam_status stored_some(lam_instream *in, zip *f, unsigned char *buffer, size_t size,
                              size_t *got)
{
    size_t n = in->end - in->at < size ? in->end - in->at : size;
    n = f->left < n ? (size_t)f->left : n;
    memcpy(buffer, in->window + in->at, n);
    in->at += n;
    f->left -= n;
    *got = n;
    return LAM_OK;
}

static lam_status zip_read(lam_instream *in, unsigned char *buffer, size_t size, size_t *got)
{
    zip *f = in->state;
    while (*got == 0 && !f->done) {
        int ended = f->method == STORED && f->left == 0;
        if (!ended) {
            LAM_TRY(lam_instream_fill(in));
            if (in->at == in->end)
                return lam_instream_truncated(in);
            if (f->method == STORED)
                LAM_TRY(stored_some(in, f, buffer, size, got));
            else
                LAM_TRY(inflate_some(in, &f->z, buffer, size, got, &ended));
        }
        f->crc = (uint32_t)crc32_z(f->crc, buffer, *got);
        f->produced += *got;
        if (ended)
            LAM_TRY(finish_file(in, f));
    }
    return LAM_OK;
}

static int is_wanted(const char *name, const char *entry)
{
    const char *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name;
    return is_file(name) && (entry == NULL || strcmp(name, entry) == 0 || strcmp(base, entry) == 0);
}

/* Reads on to the next file that is wanted; *found is 0 when there is none. */
static lam_status zip_seek(lam_instream *in, const char *entry, int *found)
{
    unsigned char skipped[8192];
    zip *f = in->state;
    for (;;) {
        size_t got;
        LAM_TRY(read_header(in, f, found));
        if (!*found || is_wanted(f->name, entry))
            return LAM_OK;
        do {
            got = 0;
            LAM_TRY(lam_read_check(in->path)); /* an archive may be large */
            LAM_TRY(zip_read(in, skipped, sizeof skipped, &got));
        } while (got > 0);
    }
}

static lam_status zip_open(lam_instream *in, const char *entry)
{
    int found;
    zip *f = calloc(1, sizeof *f);
    if (f == NULL || inflateInit2(&f->z, -MAX_WBITS) != Z_OK) {
        free(f);
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory to unpack", in->path);
    }
    in->state = f;
    LAM_TRY(zip_seek(in, entry, &found));
    if (!found)
        return lam_fail(LAM_ERR_FORMAT, "%s: the archive holds no file%s%s", in->path,
                        entry != NULL ? " called " : "", entry != NULL ? entry : "");
    return LAM_OK;
}

lam_status lam_instream_next(lam_instream *in, const char **name)
{
    unsigned char skipped[8192];
    int found = 0;
    size_t got;
    *name = NULL;
    if (in->unpacker != &lam_unpack_zip)
        return LAM_OK;
    do {
        got = 0;
        LAM_TRY(lam_read_check(in->path));
        LAM_TRY(zip_read(in, skipped, sizeof skipped, &got));
    } while (got > 0);
    LAM_TRY(zip_seek(in, NULL, &found));
    *name = found ? lam_instream_entry(in) : NULL;
    return LAM_OK;
}

const char *lam_instream_entry(const lam_instream *in)
{
    return in->unpacker == &lam_unpack_zip ? ((const zip *)in->state)->name : NULL;
}

static void zip_close(lam_instream *in)
{
    zip *f = in->state;
    if (f != NULL)
        inflateEnd(&f->z);
    free(f);
}

const lam_unpacker lam_unpack_zip = {"zip", "PK\x03\x04", 4, zip_open, zip_read, zip_close};
