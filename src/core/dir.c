/* dir.c -- paths, and folders that are replaced as a whole.
 *
 * A checkpoint is a folder: several files that belong together.  The new one is complete and on disk
 * before its name changes hands, so a reader always finds one of the two, never a mixture. */
#include "core/file.h"

#include "core/file_guard.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
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

lam_status lam_dir_may_make(const char *path)
{
    char part[PATH_MAX];
    LAM_TRY(path_with(part, path, ""));
    while (!lam_path_exists(part)) { /* up to where something is */
        char *const slash = strrchr(part, '/');
        if (slash)
            slash[slash == part] = '\0';
        else
            strcpy(part, ".");
    }
    if (!lam_path_is_folder(part))
        return lam_guard_fail(part, "make the folder", ENOTDIR);
    return access(part, W_OK | X_OK) == 0 ? LAM_OK : lam_guard_fail(path, "write there", errno);
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

lam_status lam_dir_replace(const char *target, const char *temporary)
{
    char to[PATH_MAX], from[PATH_MAX], old[PATH_MAX];
    LAM_TRY(path_with(to, target, ""));
    LAM_TRY(path_with(from, temporary, ""));
    LAM_TRY(path_with(old, target, ".old"));

    int error = for_each_entry(from, fsync_entry);
    if (error)
        return lam_guard_fail(from, "sync", error);

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

/* A message about a folder whose name nobody knows becomes one about its target. */
static lam_status fail_for(const char *target, lam_status status, const char *message,
                           const char *temporary)
{
    const char *const at = strstr(message, temporary);
    if (!at)
        return lam_fail(status, "%s", message);
    return lam_fail(status, "%.*s%s%s", (int)(at - message), message, target,
                    at + strlen(temporary));
}

/* The folder that a link points to: it may be on another, larger disk, and the link is to stay. */
static int follow(char out[PATH_MAX], const char *link)
{
    struct stat info;
    return lstat(link, &info) == 0 && S_ISLNK(info.st_mode) && lam_path_is_folder(link) &&
           realpath(link, out);
}

lam_status lam_dir_write(const char *target, const char *suffix, lam_dir_filler *fill, void *user)
{
    char temporary[PATH_MAX], to[PATH_MAX], place[PATH_MAX], own[32], message[1024];
    snprintf(own, sizeof own, ".%ld.tmp", (long)getpid());
    LAM_TRY(path_with(to, target, ""));
    if (suffix || !follow(place, to)) /* lam_dir_recover() looks beside the name itself */
        strcpy(place, to);
    LAM_TRY(path_with(temporary, place, suffix ? suffix : own));
    lam_status status = lam_dir_remove(temporary);
    if (status == LAM_OK ||
        !lam_path_exists(temporary)) /* why we cannot see it, making it will say */
        status = lam_dir_make(temporary);
    if (status == LAM_OK)
        status = fill(user, temporary);
    if (status == LAM_OK)
        status = lam_dir_replace(place, temporary);
    if (status == LAM_OK)
        return LAM_OK;
    snprintf(message, sizeof message, "%s", lam_error()); /* removing may fail too */
    (void)lam_dir_remove(temporary);
    return fail_for(suffix ? temporary : to, status, message, temporary);
}

static int is_one_of(const char *name, const char *const *patterns)
{
    while (*patterns && fnmatch(*patterns, name, 0) != 0)
        patterns++;
    return *patterns != NULL;
}

/* Looks at the names in a folder: how many there are, and the first that is none of `ours`. */
static int count_names(const char *path, const char *const *ours, char stranger[NAME_MAX + 1])
{
    DIR *dir = opendir(path);
    int n = 0;
    stranger[0] = '\0';
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        n++;
        if (stranger[0] == '\0' && !is_one_of(e->d_name, ours))
            snprintf(stranger, NAME_MAX + 1, "%s", e->d_name);
    }
    if (dir)
        closedir(dir);
    return dir ? n : -1;
}

lam_status lam_dir_may_write(const char *dir, const char *what, const char *const *names,
                             int replace)
{
    char stranger[NAME_MAX + 1];
    int there;
    LAM_TRY(lam_path_look(&there, dir));
    if (!there || count_names(dir, names, stranger) == 0)
        return LAM_OK;
    LAM_TRY(lam_dir_look(&there, dir, names[0]));
    if (!there)
        return lam_fail(LAM_ERR_IO, "%s: exists and is not a %s folder", dir, what);
    if (!replace)
        return lam_fail(LAM_ERR_IO, "%s: there is a %s already; --replace replaces it", dir, what);
    if (stranger[0] != '\0')
        return lam_fail(LAM_ERR_IO,
                        "%s: holds %s, which is no part of a %s: --replace would remove it", dir,
                        stranger, what);
    return LAM_OK;
}
