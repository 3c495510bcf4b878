/* dir.c -- paths, and folders that are replaced as a whole.
 *
 * A checkpoint is a folder of several files that belong together. The new folder is complete and on disk
 * before it takes over the name, so a reader always finds the old or the new one, never a mixture. */
#include "core/file.h"

#include "core/file_guard.h"
#include "core/log.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_FOLDERS = 16 }; /* descriptors nftw may hold; deeper trees work too */

int lam_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

lam_status lam_path_look(int *there, const char *path)
{
    struct stat info;
    *there = stat(path, &info) == 0;
    return *there || errno == ENOENT || errno == ENOTDIR ? LAM_OK
                                                         : lam_guard_fail(path, "open", errno);
}

int lam_path_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

lam_status lam_path_join(char *out, size_t size, const char *dir, const char *name)
{
    const size_t length = strlen(dir);
    const char *const slash = length > 0 && dir[length - 1] == '/' ? "" : "/";
    const int needed = snprintf(out, size, "%s%s%s", dir, slash, name);
    if (needed >= 0 && (size_t)needed < size)
        return LAM_OK;
    if (size > 0)
        out[0] = '\0';
    return lam_fail(LAM_ERR_ARG, "%s/%s: path longer than %zu bytes", dir, name, size);
}

lam_status lam_dir_look(int *there, const char *dir, const char *name)
{
    char path[PATH_MAX];
    *there = 0;
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    return lam_path_look(there, path);
}

/* `path` without slashes at its end, followed by `suffix`. */
static lam_status path_with(char out[PATH_MAX], const char *path, const char *suffix)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length == 0 || length + strlen(suffix) >= PATH_MAX)
        return lam_fail(LAM_ERR_ARG, "'%s': path is empty or longer than %d bytes", path, PATH_MAX);
    memcpy(out, path, length);
    strcpy(out + length, suffix);
    return LAM_OK;
}

static int make_one(const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return 0;
    const int error = errno;
    if (stat(path, &info) != 0)
        return error;
    return S_ISDIR(info.st_mode) ? 0 : ENOTDIR; /* "File exists" would not say what is wrong */
}

lam_status lam_dir_make(const char *path)
{
    char part[PATH_MAX];
    LAM_TRY(path_with(part, path, ""));
    for (char *at = part + 1;; at++) {
        const char was = *at;
        if (was != '/' && was != '\0')
            continue;
        *at = '\0';
        const int error = make_one(part);
        if (error)
            return lam_guard_fail(part, "make the folder", error);
        if (was == '\0')
            return LAM_OK;
        *at = was;
    }
}

/* Shortens `part` to where something is.  Every failure but a missing name ends the search: a folder that may not
 * be entered has nothing above it that would help. */
static lam_status climb(char part[PATH_MAX], struct stat *info)
{
    while (lstat(part, info) != 0) {
        const int missing = errno == ENOENT || errno == ENOTDIR; /* the latter: below a file */
        if (!missing || strcmp(part, ".") == 0 || strcmp(part, "/") == 0)
            return lam_guard_fail(part, "open", errno);
        char *const slash = strrchr(part, '/');
        if (slash)
            slash[slash == part] = '\0';
        else
            strcpy(part, ".");
    }
    return LAM_OK;
}

lam_status lam_dir_may_make(const char *path)
{
    char part[PATH_MAX];
    struct stat info, root;
    LAM_TRY(path_with(part, path, ""));
    LAM_TRY(climb(part, &info));
    if (S_ISLNK(info.st_mode) && stat(part, &info) != 0)
        return errno == ENOENT ? lam_fail(LAM_ERR_IO, "%s: a link to nothing: remove it", part)
                               : lam_guard_fail(part, "open", errno);
    if (!S_ISDIR(info.st_mode))
        return lam_guard_fail(part, "make the folder", ENOTDIR);
    if (lam_path_exists(path) && stat("/", &root) == 0 && info.st_dev == root.st_dev &&
        info.st_ino == root.st_ino)
        return lam_fail(LAM_ERR_IO, "%s: the root of all folders: name one in it", path);
    return access(part, W_OK | X_OK) == 0 ? LAM_OK : lam_guard_fail(path, "write there", errno);
}

lam_status lam_file_may_make(const char *path)
{
    char parent[PATH_MAX];
    LAM_TRY(path_with(parent, path, ""));
    char *const slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = '\0';
    return access(slash ? parent : ".", W_OK | X_OK) == 0 ? LAM_OK
                                                          : lam_guard_fail(path, "create", errno);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path) == 0 ? 0 : errno;
}

static int fsync_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)walk;
    return type == FTW_F || type == FTW_DP ? lam_guard_fsync_path(path) : 0;
}

typedef int visitor(const char *path, const struct stat *info, int type, struct FTW *walk);

/* Children first, links not followed.  Returns 0 or an errno value. */
static int for_each_entry(const char *path, visitor *visit)
{
    const int result = nftw(path, visit, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    return result < 0 ? errno : result;
}

lam_status lam_dir_remove(const char *path)
{
    const int error = for_each_entry(path, remove_entry);
    const int missing = error == ENOENT || error == ENOTDIR; /* the latter: below a file */
    return error && !missing ? lam_guard_fail(path, "remove", error) : LAM_OK;
}

/* Without RENAME_EXCHANGE: target -> target.old, temporary -> target.  Between the two there is no
 * `target`; lam_dir_recover() brings the old one back. */
static int swap_by_two_renames(const char *target, const char *temporary, const char *old)
{
    int error = lam_guard_rename(target, old);
    if (error)
        return error;
    error = lam_guard_rename(temporary, target);
    if (error)
        rename(old, target); /* not guarded: this is the way back */
    return error;
}

static lam_status sync_tree(const char *dir)
{
    const int error = for_each_entry(dir, fsync_entry);
    return error ? lam_guard_fail(dir, "sync", error) : LAM_OK;
}

lam_status lam_dir_place(const char *target, const char *temporary)
{
    LAM_TRY(sync_tree(temporary));
    int error = lam_guard_rename(temporary, target); /* which takes the place of an empty folder */
    if (error)
        return lam_guard_fail(target, "make the folder", error);
    error = lam_guard_fsync_parent(target);
    return error ? lam_guard_fail(target, "sync the folder of", error) : LAM_OK;
}

lam_status lam_dir_replace(const char *target, const char *temporary)
{
    char to[PATH_MAX], from[PATH_MAX], old[PATH_MAX];
    LAM_TRY(path_with(to, target, ""));
    LAM_TRY(path_with(from, temporary, ""));
    LAM_TRY(path_with(old, target, ".old"));
    LAM_TRY(sync_tree(from));

    int error;
    const char *leftover = NULL; /* where the old folder is afterwards */
    if (!lam_path_exists(to)) {
        error = lam_guard_rename(from, to);
    } else {
        leftover = from;
        error = lam_guard_exchange(from, to);
        if (error == ENOSYS || error == EINVAL) {
            leftover = old;
            LAM_TRY(lam_dir_remove(old)); /* `target` is whole, so this is a stale one */
            error = swap_by_two_renames(to, from, old);
        }
    }
    if (error)
        return lam_guard_fail(to, "replace the folder", error);
    error = lam_guard_fsync_parent(to);
    if (error)
        return lam_guard_fail(to, "sync the folder of", error);
    /* The new folder is in place and on disk; what is left of the old one is only untidy. */
    if (leftover && lam_dir_remove(leftover) != LAM_OK)
        lam_log(LAM_LOG_WARN, "%s", lam_error());
    return LAM_OK;
}

lam_status lam_dir_recover(const char *target)
{
    char to[PATH_MAX], old[PATH_MAX];
    LAM_TRY(path_with(to, target, ""));
    LAM_TRY(path_with(old, target, ".old"));
    if (!lam_path_exists(old))
        return LAM_OK;
    if (lam_path_exists(to))
        return lam_dir_remove(old);
    int error = lam_guard_rename(old, to);
    if (!error)
        error = lam_guard_fsync_parent(to);
    return error ? lam_guard_fail(to, "recover", error) : LAM_OK;
}

lam_status lam_dir_write(const char *target, const char *suffix, lam_dir_filler *fill, void *user)
{
    char temporary[PATH_MAX], message[1024];
    LAM_TRY(path_with(temporary, target, suffix));
    LAM_TRY(lam_dir_remove(temporary));
    LAM_TRY(lam_dir_make(temporary));
    lam_status status = fill(user, temporary);
    if (status == LAM_OK)
        status = lam_dir_replace(target, temporary);
    if (status == LAM_OK)
        return LAM_OK;
    snprintf(message, sizeof message, "%s", lam_error()); /* removing may fail too */
    (void)lam_dir_remove(temporary);
    return lam_fail(status, "%s", message);
}
