/* file.c -- writes whole files or none, and loads small ones.
 *
 * Atomicity comes from the order: write a temporary file in the same folder, fsync it, rename it, fsync the
 * folder. If a step fails, the temporary file is removed and `path` stays as it was (if only the last step
 * fails, the new file is there, whole). After a failed write an object can no longer publish. */
#include "core/file.h"

#include "core/budget.h"
#include "core/file_guard.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

struct lam_outfile {
    int fd;
    int broken; /* a write failed */
    size_t used;
    char path[PATH_MAX];
    char temporary[PATH_MAX];
    char buffer[BUFFER];
};

lam_status lam_outfile_open(lam_outfile **out, const char *path)
{
    *out = NULL;
    lam_outfile *const file = malloc(sizeof *file);
    if (!file)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a write buffer", path);
    file->broken = 0;
    file->used = 0;
    file->fd = lam_guard_open_beside(file->temporary, sizeof file->temporary, path, 0666);
    if (file->fd < 0) {
        const int error = errno;
        free(file);
        return lam_guard_fail(path, "create", error);
    }
    strcpy(file->path, path); /* it fits: the temporary name is longer */
    *out = file;
    return LAM_OK;
}

static lam_status push(lam_outfile *file, const void *data, size_t size)
{
    const int error = lam_guard_write(file->fd, data, size);
    file->broken |= error != 0;
    return error ? lam_guard_fail(file->path, "write", error) : LAM_OK;
}

static lam_status flush(lam_outfile *file)
{
    const size_t used = file->used;
    file->used = 0;
    return push(file, file->buffer, used);
}

lam_status lam_outfile_write(lam_outfile *file, const void *data, size_t size)
{
    if (size > BUFFER - file->used)
        LAM_TRY(flush(file));
    if (size > BUFFER)
        return push(file, data, size);
    if (size > 0)
        memcpy(file->buffer + file->used, data, size);
    file->used += size;
    return LAM_OK;
}

lam_status lam_outfile_patch(lam_outfile *file, size_t offset, const void *data, size_t size)
{
    LAM_TRY(flush(file));
    const off_t end = lseek(file->fd, 0, SEEK_CUR);
    assert(end >= 0 && offset + size <= (size_t)end);
    if (lseek(file->fd, (off_t)offset, SEEK_SET) < 0)
        return lam_guard_fail(file->path, "write", errno);
    LAM_TRY(push(file, data, size));
    return lseek(file->fd, end, SEEK_SET) == end ? LAM_OK
                                                 : lam_guard_fail(file->path, "write", errno);
}

lam_status lam_outfile_finish(lam_outfile *file)
{
    lam_status status = LAM_OK;
    int error;

    if (file->broken) {
        status = lam_fail(LAM_ERR_IO, "%s: not saved: an earlier write failed", file->path);
        goto done;
    }
    status = flush(file);
    if (status != LAM_OK)
        goto done;
    error = lam_guard_fsync(file->fd);
    if (close(file->fd) != 0 && !error)
        error = errno; /* some network file systems report a lost write only here */
    file->fd = -1;
    if (!error)
        error = lam_guard_rename(file->temporary, file->path);
    if (error) {
        status = lam_guard_fail(file->path, "save", error);
        goto done;
    }
    file->temporary[0] = '\0';
    error = lam_guard_fsync_parent(file->path);
    if (error)
        status = lam_guard_fail(file->path, "sync the folder of", error);
done:
    lam_outfile_abort(file);
    return status;
}

void lam_outfile_abort(lam_outfile *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary[0] != '\0')
        unlink(file->temporary);
    free(file);
}

lam_status lam_file_open(int *fd, const char *path, int flags)
{
    struct stat info;
    *fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (*fd < 0) {
        const int error = errno;
        if ((flags & O_NOFOLLOW) && lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
            return lam_fail(LAM_ERR_IO, "%s: a link, which is not followed: remove it", path);
        return lam_guard_fail(path, "open", error);
    }
    if (fstat(*fd, &info) == 0 && S_ISREG(info.st_mode))
        return LAM_OK;
    close(*fd);
    *fd = -1;
    return lam_fail(LAM_ERR_IO, "%s: not a regular file", path);
}

lam_status lam_file_save(const char *path, const void *data, size_t size)
{
    lam_outfile *file;
    LAM_TRY(lam_outfile_open(&file, path));
    const lam_status status = lam_outfile_write(file, data, size);
    if (status == LAM_OK)
        return lam_outfile_finish(file);
    lam_outfile_abort(file);
    return status;
}

int (*lam_read_stop)(void);

lam_status lam_read_check(const char *path)
{
    return lam_read_stop && lam_read_stop()
               ? lam_fail(LAM_ERR_INTERRUPTED, "%s: stopped while it was read", path)
               : LAM_OK;
}

/* Reads up to `limit` + 1 bytes: one more than allowed shows that there is more.  The size that a file has when it is
 * opened is only a hint: it may grow, and files of /proc have none.  Then the buffer grows by doubling. */
static lam_status read_all(char **text, size_t *size, int fd, const char *path, size_t limit)
{
    struct stat info = {0};
    size_t room = 0;
    if (fstat(fd, &info) == 0 && info.st_size > 0 && (uintmax_t)info.st_size > limit)
        return lam_fail(LAM_ERR_FORMAT, "%s: longer than %zu bytes", path, limit);
    for (;;) {
        if (*size + 1 >= room) {
            room = room ? 2 * room : info.st_size > 4096 ? (size_t)info.st_size + 2 : 4096;
            LAM_TRY(lam_budget_ask(path, room));
            char *const grown = realloc(*text, room);
            if (!grown)
                return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu bytes", path, room);
            *text = grown;
        }
        const ssize_t n = read(fd, *text + *size, room - *size - 1);
        if (n == 0)
            break;
        if (n < 0)
            return lam_guard_fail(path, "read", errno);
        *size += (size_t)n;
        if (*size > limit)
            return lam_fail(LAM_ERR_FORMAT, "%s: longer than %zu bytes", path, limit);
    }
    (*text)[*size] = '\0';
    return LAM_OK;
}

lam_status lam_file_load(char **out, size_t *size, const char *path, size_t limit)
{
    int fd;
    *out = NULL;
    *size = 0;
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY));
    const lam_status status = read_all(out, size, fd, path, limit);
    close(fd);
    if (status != LAM_OK) {
        free(*out);
        *out = NULL;
        *size = 0;
    }
    return status;
}
