/* packing.c -- see packing.h. */
#include "cli/packing.h"

#include "core/file.h"
#include "core/file_guard.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static lam_status fail(const char *path, const char *verb)
{
    return lam_guard_fail(path, verb, errno);
}

/* ---- sources ---- */

static lam_status check_source(const lam_source *s, bool strict)
{
    if (S_ISDIR(s->info.st_mode))
        return lam_fail(LAM_ERR_IO, "%s: is a folder", s->path);
    if (!S_ISREG(s->info.st_mode))
        return lam_fail(LAM_ERR_IO, "%s: not a regular file", s->path);
    if (strict && s->info.st_nlink > 1)
        return lam_fail(LAM_ERR_IO,
                        "%s: has %lld names (hard links); -k keeps them, -f removes this one",
                        s->path, (long long)s->info.st_nlink);
    if (strict && (s->info.st_mode & (S_ISUID | S_ISGID | S_ISVTX)) != 0)
        return lam_fail(LAM_ERR_IO,
                        "%s: has the set-user-ID, set-group-ID or sticky bit; -f goes on", s->path);
    return LAM_OK;
}

lam_status lam_source_open(lam_source *s, const char *path, bool strict)
{
    *s = (lam_source){.fd = STDIN_FILENO, .path = path};
    if (strcmp(path, "-") == 0) {
        s->standard = true;
        s->path = "standard input";
        return fstat(s->fd, &s->info) == 0 ? LAM_OK : fail(s->path, "read");
    }
    /* A named pipe without a writer must not be waited for. */
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (strict ? O_NOFOLLOW : 0));
    if (s->fd < 0)
        return errno == ELOOP ? lam_fail(LAM_ERR_IO, "%s: is a link; -k, -c and -f follow it", path)
                              : fail(path, "open");
    lam_status status = fstat(s->fd, &s->info) == 0 ? check_source(s, strict) : fail(path, "read");
    if (status != LAM_OK)
        lam_source_close(s);
    return status;
}

lam_status lam_source_read(lam_source *s, void *bytes, size_t room, size_t *n)
{
    *n = 0;
    for (;;) {
        LAM_TRY(lam_read_check(s->path));
        const ssize_t k = read(s->fd, bytes, room);
        if (k >= 0) {
            *n = (size_t)k;
            return LAM_OK;
        }
        if (errno != EINTR)
            return fail(s->path, "read");
    }
}

void lam_source_close(lam_source *s)
{
    if (!s->standard && s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

lam_status lam_source_remove(lam_source *s)
{
    struct stat now;
    lam_source_close(s);
    if (s->standard)
        return LAM_OK;
    if (lstat(s->path, &now) != 0)
        return fail(s->path, "remove");
    if (!S_ISLNK(now.st_mode) && (now.st_dev != s->info.st_dev || now.st_ino != s->info.st_ino))
        return lam_fail(LAM_ERR_IO, "%s: another file has taken its name: not removed", s->path);
    return unlink(s->path) == 0 ? LAM_OK : fail(s->path, "remove");
}

/* ---- targets ---- */

static lam_status create(lam_target *t, const char *path)
{
    struct stat info;
    if (snprintf(t->path, sizeof t->path, "%s", path) >= (int)sizeof t->path)
        return lam_fail(LAM_ERR_IO, "%s: the name is too long", path);
    if (!t->force && lstat(path, &info) == 0)
        return lam_fail(LAM_ERR_IO, "%s: exists already; -f replaces it", path);
    t->fd = lam_guard_open_beside(t->temporary, sizeof t->temporary, path, 0600);
    if (t->fd >= 0)
        return LAM_OK;
    t->temporary[0] = '\0';
    return fail(path, "create");
}

lam_status lam_target_open(lam_target *t, lam_target_kind kind, const char *path, bool force)
{
    t->kind = kind;
    t->fd = kind == LAM_TARGET_STDOUT ? STDOUT_FILENO : -1;
    t->force = force;
    t->written = 0;
    t->path[0] = t->temporary[0] = '\0';
    return kind == LAM_TARGET_FILE ? create(t, path) : LAM_OK;
}

lam_status lam_target_write(void *user, const void *bytes, size_t n)
{
    lam_target *const t = user;
    t->written += n;
    const char *const name = t->kind == LAM_TARGET_STDOUT ? "standard output" : t->path;
    const int error = t->kind != LAM_TARGET_NONE ? lam_guard_write(t->fd, bytes, n) : 0;
    return error == 0 ? LAM_OK : lam_guard_fail(name, "write", error);
}

/* Owner first: it may take bits of the mode away.  Who may not give the group away must not let it read, either. */
static lam_status copy_attributes(const lam_target *t, const lam_source *s)
{
    mode_t mode = s->info.st_mode & 0777;
    if (fchown(t->fd, s->info.st_uid, (gid_t)-1) != 0 && geteuid() == 0)
        lam_log(LAM_LOG_WARN, "%s: cannot set the owner: %s", t->path, strerror(errno));
    if (fchown(t->fd, (uid_t)-1, s->info.st_gid) != 0)
        mode &= ((mode & 0070) >> 3 & (mode & 0007)) << 3 | 0707;
    if (fchmod(t->fd, mode) != 0)
        return fail(t->path, "set the mode of");
    const struct timespec times[2] = {s->info.st_atim, s->info.st_mtim};
    return futimens(t->fd, times) == 0 ? LAM_OK : fail(t->path, "set the times of");
}

/* Takes the name; without --force never that of a file that appeared meanwhile. */
static lam_status publish(lam_target *t)
{
    int failed = t->force ? rename(t->temporary, t->path)
                          : renameat2(AT_FDCWD, t->temporary, AT_FDCWD, t->path, RENAME_NOREPLACE);
    if (failed != 0 && !t->force && (errno == EINVAL || errno == ENOSYS)) {
        failed = link(t->temporary, t->path);
        if (failed == 0)
            unlink(t->temporary);
    }
    if (failed != 0 && errno == EEXIST)
        return lam_fail(LAM_ERR_IO, "%s: exists already; -f replaces it", t->path);
    if (failed != 0)
        return fail(t->path, "create");
    t->temporary[0] = '\0';
    const int error = lam_guard_fsync_parent(t->path);
    return error == 0 ? LAM_OK : lam_guard_fail(t->path, "sync the folder of", error);
}

lam_status lam_target_finish(lam_target *t, const lam_source *s)
{
    if (t->kind != LAM_TARGET_FILE)
        return LAM_OK;
    if (!s->standard)
        LAM_TRY(copy_attributes(t, s));
    else if (fchmod(t->fd, 0666 & ~umask(umask(0))) != 0)
        return fail(t->path, "set the mode of");
    if (fsync(t->fd) != 0)
        return fail(t->path, "write");
    const int fd = t->fd;
    t->fd = -1;
    if (close(fd) != 0)
        return fail(t->path, "write");
    return publish(t);
}

void lam_target_abort(lam_target *t)
{
    if (t->kind != LAM_TARGET_FILE)
        return;
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
    if (t->temporary[0] != '\0')
        unlink(t->temporary);
    t->temporary[0] = '\0';
}

/* ---- names ---- */

/* Does something stand before the suffix, in the last part of the path? */
static bool has_suffix(const char *path)
{
    const size_t n = strlen(path), k = strlen(LAM_SUFFIX);
    return n > k && strcmp(path + n - k, LAM_SUFFIX) == 0 && path[n - k - 1] != '/';
}

lam_status lam_packed_name(char out[PATH_MAX], const char *path)
{
    if (has_suffix(path))
        return lam_fail(
            LAM_ERR_IO,
            "%s: has the suffix " LAM_SUFFIX " already; -o or -c compresses it once more", path);
    return snprintf(out, PATH_MAX, "%s" LAM_SUFFIX, path) < PATH_MAX
               ? LAM_OK
               : lam_fail(LAM_ERR_IO, "%s: the name is too long", path);
}

lam_status lam_unpacked_name(char out[PATH_MAX], const char *path)
{
    if (!has_suffix(path))
        return lam_fail(LAM_ERR_IO,
                        "%s: has no suffix " LAM_SUFFIX "; use -o or -c to choose the output",
                        path);
    snprintf(out, PATH_MAX, "%.*s", (int)(strlen(path) - strlen(LAM_SUFFIX)), path);
    return LAM_OK;
}
