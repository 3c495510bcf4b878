/* seal.c -- see seal.h.
 *
 * A line of the record is "CRC32 BYTES NAME". The last line covers the lines above it, so that damage to
 * the record is not mistaken for damage to a file it lists.
 *
 * Files are read, not mapped: an unreadable sector is then an error instead of a signal. */
#include "core/seal.h"

#include "core/file.h"
#include "core/file_guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static const char RECORD[] = "CRC32SUMS";

enum {
    CHUNK = 1 << 16,
    MAX_LINE = NAME_MAX + 32,
    MAX_RECORD = 1 << 18 /* a line for each leaf of a run */
};

typedef struct sum {
    uint32_t crc;
    long long bytes;
} sum;

static sum sum_of(const void *data, size_t size)
{
    return (sum){(uint32_t)crc32_z(0, data, size), (long long)size};
}

/* A record that is written must be finished, whoever wants to end the program. */
typedef enum purpose { TO_WRITE, TO_CHECK } purpose;

static lam_status sum_all(sum *out, int fd, const char *path, purpose why)
{
    unsigned char chunk[CHUNK];
    for (ssize_t n = 1; n > 0;) {
        if (why == TO_CHECK)
            LAM_TRY(lam_read_check(path));
        n = read(fd, chunk, sizeof chunk);
        if (n < 0)
            return lam_guard_fail(path, "read", errno);
        out->crc = (uint32_t)crc32_z(out->crc, chunk, (size_t)n);
        out->bytes += n;
    }
    return LAM_OK;
}

static lam_status sum_file(sum *out, const char *path)
{
    int fd;
    *out = sum_of("", 0);
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY));
    const lam_status status = sum_all(out, fd, path, TO_WRITE);
    close(fd);
    return status;
}

static int print_line(char line[MAX_LINE], sum s, const char *name)
{
    return snprintf(line, MAX_LINE, "%08x %lld %s\n", (unsigned)s.crc, s.bytes, name);
}

/* ---- writing ---- */

static int is_sealed(const struct dirent *e)
{
    return e->d_name[0] != '.' && strcmp(e->d_name, RECORD) != 0;
}

static lam_status add_line(char text[MAX_RECORD], size_t *used, sum s, const char *name)
{
    char line[MAX_LINE];
    const size_t n = (size_t)print_line(line, s, name);
    if (n >= MAX_RECORD - *used)
        return lam_fail(LAM_ERR_IO, "%s: more names than %d bytes hold", RECORD, MAX_RECORD);
    memcpy(text + *used, line, n);
    *used += n;
    return LAM_OK;
}

static lam_status add_file(char text[MAX_RECORD], size_t *used, const char *dir, const char *name)
{
    char path[PATH_MAX];
    sum s;
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    LAM_TRY(sum_file(&s, path));
    return add_line(text, used, s, name);
}

lam_status lam_seal_write(const char *dir)
{
    char path[PATH_MAX], text[MAX_RECORD];
    size_t used = 0;
    struct dirent **list;
    LAM_TRY(lam_path_join(path, sizeof path, dir, RECORD));
    const int n = scandir(dir, &list, is_sealed, alphasort);
    if (n < 0)
        return lam_guard_fail(dir, "read", errno);
    lam_status status = LAM_OK;
    for (int i = 0; i < n; i++) {
        if (status == LAM_OK)
            status = add_file(text, &used, dir, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    LAM_TRY(status);
    LAM_TRY(add_line(text, &used, sum_of(text, used), RECORD));
    return lam_file_save(path, text, used);
}

/* ---- checking ---- */

/* Does the last line fit the ones above it?  If so it is taken off. */
static int unseal(char *text, size_t size)
{
    char line[MAX_LINE];
    size_t above = size > 0 ? size - 1 : 0; /* the newline of the last line is not looked at */
    while (above > 0 && text[above - 1] != '\n')
        above--;
    const size_t n = (size_t)print_line(line, sum_of(text, above), RECORD);
    if (n != size - above || memcmp(line, text + above, n) != 0)
        return 0;
    text[above] = '\0';
    return 1;
}

static lam_status check_line(const char *dir, const char *name, sum then)
{
    char path[PATH_MAX];
    sum now = sum_of("", 0);
    int fd;
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY));
    const long long bytes = (long long)lseek(fd, 0, SEEK_END);
    lam_status status = LAM_OK;
    if (bytes != then.bytes) /* however long it is, it need not be read */
        status = lam_fail(LAM_ERR_FORMAT, "%s: damaged: %lld bytes, written were %lld", path, bytes,
                          then.bytes);
    else if (lseek(fd, 0, SEEK_SET) == 0)
        status = sum_all(&now, fd, path, TO_CHECK);
    close(fd);
    LAM_TRY(status);
    if (now.crc == then.crc)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT, "%s: damaged: its CRC-32 is %08x, written was %08x", path,
                    (unsigned)now.crc, (unsigned)then.crc);
}

static lam_status check_lines(char *text, const char *dir, const char *path, const char *only)
{
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;) {
        unsigned crc;
        sum then;
        int at = 0;
        if (sscanf(line, "%8x %lld %n", &crc, &then.bytes, &at) < 2 || at == 0 ||
            strchr(line + at, '/'))
            return lam_fail(LAM_ERR_FORMAT, "%s: '%s' is not a checksum, a length and a name", path,
                            line);
        then.crc = crc;
        if (!only || strcmp(only, line + at) == 0)
            LAM_TRY(check_line(dir, line + at, then));
    }
    return LAM_OK;
}

lam_status lam_seal_check(const char *dir, const char *name)
{
    char path[PATH_MAX], *text;
    size_t size;
    LAM_TRY(lam_path_join(path, sizeof path, dir, RECORD));
    if (!lam_path_exists(path))
        return LAM_OK;
    LAM_TRY(lam_file_load(&text, &size, path, MAX_RECORD));
    const lam_status status =
        unseal(text, size)
            ? check_lines(text, dir, path, name)
            : lam_fail(LAM_ERR_FORMAT, "%s: damaged: its last line does not fit the others", path);
    free(text);
    return status;
}
