/* file_guard.c -- write, fsync and rename with one place to inject a failure. */
#include "core/file_guard.h"

#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int (*lam_file_fault)(const char *what);

static int fault(const char *what)
{
    return lam_file_fault ? lam_file_fault(what) : 0;
}

int lam_guard_open_beside(char *temporary, size_t size, const char *path, unsigned mode)
{
    for (int i = 0; i < 1000; i++) {
        const int length = snprintf(temporary, size, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        if (length < 0 || (size_t)length >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int lam_guard_write(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        const int error = fault("write");
        if (error)
            return error;
        const ssize_t n = write(fd, at, size);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

int lam_guard_fsync(int fd)
{
    const int error = fault("fsync");
    if (error)
        return error;
    /* EINVAL: this kind of file or file system has nothing to flush (some folders, some mounts). */
    return fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
}

int lam_guard_fsync_path(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    const int error = lam_guard_fsync(fd);
    close(fd);
    return error;
}

int lam_guard_fsync_parent(const char *path)
{
    char folder[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder)
        return ENAMETOOLONG;
    char *const slash = strrchr(folder, '/');
    if (!slash)
        return lam_guard_fsync_path(".");
    slash[slash == folder] = '\0'; /* "/name" lives in "/" */
    return lam_guard_fsync_path(folder);
}

int lam_guard_rename(const char *from, const char *to)
{
    const int error = fault("rename");
    if (error)
        return error;
    return rename(from, to) == 0 ? 0 : errno;
}

int lam_guard_exchange(const char *a, const char *b)
{
    const int error = fault("exchange");
    if (error)
        return error;
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0 ? 0 : errno;
}

lam_status lam_guard_fail(const char *path, const char *verb, int error)
{
    const int full = error == ENOSPC || error == EDQUOT;
    /* EINTR: a signal that we handle ended a wait (for the other end of a pipe). */
    return lam_fail(error == EINTR ? LAM_ERR_INTERRUPTED : LAM_ERR_IO, "%s: cannot %s: %s", path,
                    verb, full ? "no space left on the device" : strerror(error));
}
