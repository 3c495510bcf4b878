/* instream.c -- the window on the packed bytes, recognising the packing, and plain files. */
#include "data/instream.h"

#include "core/budget.h"
#include "core/file.h"
#include "data/instream_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { WAIT_MS = 500 }; /* between two questions whether to go on waiting */

static lam_status plain_open(lam_instream *in, const char *entry)
{
    (void)in, (void)entry;
    return LAM_OK;
}

static lam_status plain_read(lam_instream *in, unsigned char *buffer, size_t size, size_t *got)
{
    LAM_TRY(lam_instream_fill(in));
    *got = in->end - in->at < size ? in->end - in->at : size;
    memcpy(buffer, in->window + in->at, *got);
    in->at += *got;
    return LAM_OK;
}

static void plain_close(lam_instream *in)
{
    (void)in;
}

static const lam_unpacker unpack_plain = {"plain", "", 0, plain_open, plain_read, plain_close};

/* The next bytes, at most `size`; none at the end.  Waiting for them is given up when the program is to end: asked
 * before each wait, and now and then during one, since a signal may come just before it begins. */
static lam_status read_some(lam_instream *in, void *out, size_t size, size_t *got)
{
    for (;;) {
        struct pollfd source = {.fd = in->fd, .events = POLLIN};
        if (in->waits)
            LAM_TRY(lam_read_check(in->path));
        const int ready = in->waits ? poll(&source, 1, WAIT_MS) : 1;
        const ssize_t n = ready > 0 ? read(in->fd, out, size) : -1;
        if (n >= 0) {
            *got = (size_t)n;
            return LAM_OK;
        }
        if (ready == 0 || errno == EAGAIN || (errno == EINTR && lam_read_stop))
            continue;
        return lam_fail(errno == EINTR ? LAM_ERR_INTERRUPTED : LAM_ERR_IO,
                        "%s: cannot read at byte %llu: %s", in->path,
                        (unsigned long long)(in->window_from + in->end), strerror(errno));
    }
}

lam_status lam_instream_fill(lam_instream *in)
{
    if (in->at < in->end || in->at_eof)
        return LAM_OK;
    in->window_from += in->end;
    in->at = in->end = 0;
    LAM_TRY(read_some(in, in->window, sizeof in->window, &in->end));
    in->at_eof = in->end == 0;
    return LAM_OK;
}

lam_status lam_instream_take(lam_instream *in, void *out, size_t size)
{
    unsigned char *to = out;
    while (size > 0) {
        LAM_TRY(lam_instream_fill(in));
        const size_t n = in->end - in->at < size ? in->end - in->at : size;
        if (n == 0)
            return lam_instream_truncated(in);
        memcpy(to, in->window + in->at, n);
        in->at += n;
        to += n;
        size -= n;
    }
    return LAM_OK;
}

lam_status lam_instream_truncated(const lam_instream *in)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: ends inside its %s data at byte %llu", in->path,
                    in->unpacker->name, (unsigned long long)lam_instream_offset(in));
}

lam_status lam_instream_corrupt(const lam_instream *in, const char *why)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: %s data is corrupt at byte %llu: %s", in->path,
                    in->unpacker->name, (unsigned long long)lam_instream_offset(in), why);
}

/* Reads until the window holds `want` bytes or the file ends: a pipe may give less at first. */
static lam_status fill_at_least(lam_instream *in, size_t want)
{
    LAM_TRY(lam_instream_fill(in));
    while (in->end < want && !in->at_eof) {
        size_t n;
        LAM_TRY(read_some(in, in->window + in->end, sizeof in->window - in->end, &n));
        if (n == 0)
            break;
        in->end += n;
    }
    return LAM_OK;
}

static const lam_unpacker *recognise(const lam_instream *in)
{
    static const lam_unpacker *const all[] = {&lam_unpack_gzip, &lam_unpack_zip, &lam_unpack_xz,
                                              &lam_unpack_zstd};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (in->end >= all[i]->magic_size &&
            memcmp(in->window, all[i]->magic, all[i]->magic_size) == 0)
            return all[i];
    return &unpack_plain;
}

static lam_status open_file(lam_instream *in, const char *path)
{
    struct stat info;
    const int is_stdin = strcmp(path, "-") == 0;
    /* NONBLOCK: a named pipe is waited for by read_some(), which can be stopped. */
    in->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (in->fd < 0 || fstat(in->fd, &info) != 0)
        return lam_fail(LAM_ERR_IO, "%s: cannot open: %s", in->path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return lam_fail(LAM_ERR_IO, "%s: is a folder, not a text", in->path);
    in->waits = S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || isatty(in->fd);
    in->size = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    if (in->waits || S_ISREG(info.st_mode) || info.st_rdev == makedev(1, 3)) /* /dev/null */
        return LAM_OK;
    return lam_fail(LAM_ERR_IO, "%s: is a device, not a text", in->path);
}

lam_status lam_instream_open(lam_instream **out, const char *path, const char *entry)
{
    *out = NULL;
    lam_instream *in = calloc(1, sizeof *in);
    if (in == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a read buffer", path);
    in->fd = -1;
    in->path = strcmp(path, "-") == 0 ? "standard input" : path;

    lam_status status = open_file(in, path);
    if (status == LAM_OK)
        status = fill_at_least(in, 8);
    if (status == LAM_OK) {
        const lam_unpacker *unpacker = recognise(in);
        if (entry != NULL && unpacker != &lam_unpack_zip)
            status = lam_fail(LAM_ERR_FORMAT, "%s: not a zip archive, so it has no '%s'", in->path,
                              entry);
        else {
            in->unpacker = unpacker;
            status = unpacker->open(in, entry);
        }
    }
    if (status != LAM_OK)
        lam_instream_close(in);
    else
        *out = in;
    return status;
}

void lam_instream_close(lam_instream *in)
{
    if (in == NULL)
        return;
    if (in->unpacker != NULL)
        in->unpacker->close(in);
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    free(in);
}

lam_status lam_instream_read(lam_instream *in, void *buffer, size_t size, size_t *got)
{
    *got = 0;
    return size == 0 ? LAM_OK : in->unpacker->read(in, buffer, size, got);
}

const char *lam_instream_format(const lam_instream *in)
{
    return in->unpacker->name;
}

uint64_t lam_instream_offset(const lam_instream *in)
{
    return in->window_from + in->at;
}

uint64_t lam_instream_size(const lam_instream *in)
{
    return in->size;
}

/* Is `used` more than any text becomes that is packed so small?  Of a pipe the part that was read counts. */
static lam_status check_ratio(const lam_instream *in, size_t used)
{
    const uint64_t packed = in->size > 0 ? in->size : lam_instream_offset(in);
    const uint64_t most = LAM_INSTREAM_PACKED + LAM_INSTREAM_TIMES * packed;
    if (in->unpacker == &unpack_plain || used <= most)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT,
                    "%s: %llu packed bytes hold more than %llu: unpack it before, if that is right",
                    in->path, (unsigned long long)packed, (unsigned long long)most);
}

/* Makes room for a block more, at most `limit` bytes and the NUL. */
static lam_status grow(char **data, size_t *room, size_t used, const char *path, size_t limit)
{
    enum { BLOCK = 1 << 16 };
    if (used > limit)
        return lam_fail(LAM_ERR_FORMAT, "%s: more than %zu bytes of text", path, limit);
    if (*room - used > BLOCK)
        return LAM_OK;
    const size_t more = 2 * *room + 2 * BLOCK;
    LAM_TRY(lam_budget_ask(path, more));
    char *moved = realloc(*data, more);
    if (moved == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu bytes", path, more);
    *data = moved;
    *room = more;
    return LAM_OK;
}

lam_status lam_instream_load(char **out, size_t *size, const char *path, size_t limit)
{
    lam_instream *in;
    char *data = NULL;
    size_t room = 0, used = 0, got = 1;
    *out = NULL;
    *size = 0;
    LAM_TRY(lam_instream_open(&in, path, NULL));
    lam_status status = LAM_OK;
    while (status == LAM_OK && got > 0) {
        status = grow(&data, &room, used, path, limit);
        if (status == LAM_OK)
            status = lam_instream_read(in, data + used, room - used - 1, &got);
        used += status == LAM_OK ? got : 0;
        if (status == LAM_OK)
            status = check_ratio(in, used);
    }
    lam_instream_close(in);
    if (status != LAM_OK) {
        free(data);
        return status;
    }
    data[used] = '\0';
    *out = data;
    *size = used;
    return LAM_OK;
}
