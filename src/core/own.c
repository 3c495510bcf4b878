/* own.c -- see own.h. */
#include "core/own.h"

#include "core/file_guard.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 4096 }; /* bytes in which a mark is looked for */

/* In a folder that lam_own_write has not finished: whoever writes the folder holds a lock on this file. */
static const char UNFINISHED[] = ".lamemo-unfinished";
static const char UNFINISHED_TEXT[] =
    "lamemo writes this folder; without a lamemo at work it can be removed.\n";

/* ---- files ---- */

/* The first bytes of a file, which is not reached through a link. */
static lam_status read_head(char head[HEAD], size_t *size, const char *path)
{
    int fd;
    *size = 0;
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY | O_NOFOLLOW));
    const ssize_t n = pread(fd, head, HEAD, 0);
    const int error = n < 0 ? errno : 0;
    close(fd);
    if (error)
        return lam_guard_fail(path, "read", error);
    *size = (size_t)n;
    return LAM_OK;
}

lam_status lam_own_file(const char *path, const char *mark)
{
    char head[HEAD];
    size_t size;
    struct stat info;
    if (lstat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return LAM_OK;
    LAM_TRY(read_head(head, &size, path));
    if (size == 0 || memmem(head, size, mark, strlen(mark)))
        return LAM_OK;
    return lam_fail(LAM_ERR_IO, "%s: there is a file already that lamemo did not write", path);
}

/* ---- folders ---- */

typedef enum extent { WHOLE, REST } extent; /* REST: as a crash left it */

static int is_one_of(const char *name, const char *const *patterns, extent e)
{
    char temporary[NAME_MAX + 1]; /* file.c's name of a file that is being written */
    if (e == REST && strcmp(name, UNFINISHED) == 0)
        return 1;
    for (; *patterns; patterns++) {
        snprintf(temporary, sizeof temporary, "%s.[0-9]*-[0-9]*.tmp", *patterns);
        if (fnmatch(*patterns, name, 0) == 0 || (e == REST && fnmatch(temporary, name, 0) == 0))
            return 1;
    }
    return 0;
}

/* What is in a folder. */
typedef struct contents {
    int n;                       /* names */
    char stranger[NAME_MAX + 1]; /* the first that is no part of the kind; "": none */
    char odd[NAME_MAX + 1];      /* the first that is called so, but is no regular file; "": none */
    char first[NAME_MAX + 1];    /* the first that is not an empty file; "": none */
} contents;

static void note(contents *c, int folder, const char *name, const lam_kind *kind, extent e)
{
    struct stat info = {0};
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return; /* gone by now: somebody is at work */
    const int regular = S_ISREG(info.st_mode);
    const int known = kind && is_one_of(name, kind->names, e);
    c->n++;
    if (c->first[0] == '\0' && !(regular && info.st_size == 0))
        snprintf(c->first, sizeof c->first, "%s", name);
    if (c->stranger[0] == '\0' && !known)
        snprintf(c->stranger, sizeof c->stranger, "%s", name);
    if (c->odd[0] == '\0' && known && !regular)
        snprintf(c->odd, sizeof c->odd, "%s", name);
}

/* A missing folder has nothing in it. */
static lam_status list(contents *c, const char *path, const lam_kind *kind, extent e)
{
    *c = (contents){0};
    DIR *const folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? LAM_OK : lam_guard_fail(path, "read", errno);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            note(c, dirfd(folder), entry->d_name, kind, e);
    closedir(folder);
    return LAM_OK;
}

static int is_marked(const char *path, const lam_mark *marks)
{
    char file[PATH_MAX], head[HEAD];
    size_t size;
    for (; marks->name; marks++)
        if (lam_path_join(file, sizeof file, path, marks->name) == LAM_OK &&
            read_head(head, &size, file) == LAM_OK &&
            memmem(head, size, marks->text, strlen(marks->text)))
            return 1;
    return 0;
}

static lam_status own_folder(const char *path, const lam_kind *kind, extent e)
{
    struct stat info;
    contents c;
    if (lstat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return LAM_OK;
    if (S_ISLNK(info.st_mode))
        return lam_fail(LAM_ERR_IO, "%s: a link, which is not followed: remove it", path);
    LAM_TRY(list(&c, path, kind, e));
    if (c.stranger[0] != '\0')
        return lam_fail(LAM_ERR_IO, "%s: holds %s, which is no part of a %s: move it away", path,
                        c.stranger, kind->what);
    if (c.odd[0] != '\0')
        return lam_fail(LAM_ERR_IO, "%s/%s: not a regular file: move it away", path, c.odd);
    if (c.n > 0 && e == WHOLE && !is_marked(path, kind->marks))
        return lam_fail(LAM_ERR_IO, "%s: not a %s that lamemo wrote: move it away", path,
                        kind->what);
    return LAM_OK;
}

lam_status lam_own_folder(const char *path, const lam_kind *kind)
{
    return own_folder(path, kind, WHOLE);
}

lam_status lam_own_rest(const char *path, const lam_kind *kind)
{
    return own_folder(path, kind, REST);
}

lam_status lam_own_room(const char *dir, const char *what)
{
    contents c;
    LAM_TRY(list(&c, dir, NULL, WHOLE));
    if (c.first[0] == '\0')
        return LAM_OK;
    return lam_fail(LAM_ERR_IO, "%s: holds %s and is not a %s folder: name a new or an empty one",
                    dir, c.first, what);
}

/* ---- folders that replace others ---- */

/* A folder that cannot be given another name: found only after the work, this would cost it. */
static lam_status can_move(const char *dir)
{
    struct stat own, above, here;
    char parent[PATH_MAX];
    LAM_TRY(lam_path_join(parent, sizeof parent, dir, ".."));
    if (stat(dir, &own) != 0 || stat(parent, &above) != 0)
        return lam_guard_fail(dir, "open", errno);
    if (stat(".", &here) == 0 && own.st_dev == here.st_dev && own.st_ino == here.st_ino)
        return lam_fail(LAM_ERR_IO,
                        "%s: the working folder cannot be replaced: name one in it, or call lamemo "
                        "from elsewhere",
                        dir);
    if (own.st_dev != above.st_dev)
        return lam_fail(LAM_ERR_IO, "%s: a mount point cannot be replaced: name a folder in it",
                        dir);
    return access(parent, W_OK | X_OK) == 0 ? LAM_OK : lam_guard_fail(parent, "write there", errno);
}

/* The folder itself, where `dir` is a link to it or ends in "/."; without slashes at the end. */
static lam_status place_of(char place[PATH_MAX], const char *dir)
{
    if (realpath(dir, place))
        return LAM_OK;
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (n >= PATH_MAX)
        return lam_fail(LAM_ERR_ARG, "%s: path longer than %d bytes", dir, PATH_MAX);
    memcpy(place, dir, n);
    place[n] = '\0';
    const char *const slash = strrchr(place, '/'), *const name = slash ? slash + 1 : place;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return lam_fail(LAM_ERR_ARG, "%s: '%s' cannot be the name of a new folder", dir, name);
    return LAM_OK;
}

lam_status lam_own_target(const char *dir, const lam_kind *kind, int replace)
{
    char place[PATH_MAX];
    contents c;
    int there;
    LAM_TRY(lam_dir_may_make(dir));
    LAM_TRY(place_of(place, dir));
    LAM_TRY(lam_path_look(&there, dir));
    if (!there)
        return LAM_OK;
    LAM_TRY(can_move(dir));
    LAM_TRY(list(&c, dir, kind, WHOLE));
    if (c.n == 0)
        return LAM_OK;
    if (!is_marked(dir, kind->marks))
        return lam_fail(LAM_ERR_IO, "%s: exists and is not a %s folder", dir, kind->what);
    if (!replace && c.stranger[0] != '\0')
        return lam_fail(LAM_ERR_IO, "%s: holds %s, which is no part of a %s: name another folder",
                        dir, c.stranger, kind->what);
    if (!replace)
        return lam_fail(LAM_ERR_IO, "%s: there is a %s already; --replace replaces it", dir,
                        kind->what);
    if (c.stranger[0] != '\0')
        return lam_fail(LAM_ERR_IO,
                        "%s: holds %s, which is no part of a %s: --replace would remove it", dir,
                        c.stranger, kind->what);
    if (c.odd[0] != '\0')
        return lam_fail(LAM_ERR_IO, "%s/%s: not a regular file: move it away", dir, c.odd);
    return LAM_OK;
}

/* The folder that `place` is in, and its name there. */
static const char *name_in(char parent[PATH_MAX], const char *place)
{
    const char *const slash = strrchr(place, '/');
    strcpy(parent, slash ? place : ".");
    if (slash)
        parent[slash == place ? 1 : slash - place] = '\0';
    return slash ? slash + 1 : place;
}

/* A new folder beside `place` that nobody else has. */
static lam_status make_beside(char temporary[PATH_MAX], const char *place)
{
    char parent[PATH_MAX];
    name_in(parent, place);
    LAM_TRY(lam_dir_make(parent));
    int error = EEXIST;
    for (int i = 0; error == EEXIST && i < 1000; i++) {
        const int n = snprintf(temporary, PATH_MAX, "%s.%ld-%d.tmp", place, (long)getpid(), i);
        error = n >= PATH_MAX ? ENAMETOOLONG : mkdir(temporary, 0777) == 0 ? 0 : errno;
    }
    return error ? lam_guard_fail(place, "make the folder", error) : LAM_OK;
}

/* Puts our mark into a folder that is about to be filled; *lock, for the caller to close, says that we are alive. */
static lam_status mark_unfinished(int *lock, const char *temporary, const char *place)
{
    char path[PATH_MAX];
    LAM_TRY(lam_path_join(path, sizeof path, temporary, UNFINISHED));
    *lock = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*lock < 0)
        return lam_guard_fail(place, "make the folder", errno);
    (void)flock(*lock,
                LOCK_EX | LOCK_NB); /* where it cannot be locked, the process number counts alone */
    const int error = lam_guard_write(*lock, UNFINISHED_TEXT, sizeof UNFINISHED_TEXT - 1);
    return error ? lam_guard_fail(place, "write", error) : LAM_OK;
}

/* ---- leftovers of killed processes ---- */

/* Is `name` that of a folder which make_beside() made for `base`, by a process that is no more? */
static int is_orphan(const char *name, const char *base)
{
    const size_t n = strlen(base);
    long pid;
    int number, end = 0;
    if (strncmp(name, base, n) != 0 ||
        sscanf(name + n, ".%9ld-%4d.tmp%n", &pid, &number, &end) != 2 || end == 0 ||
        name[n + (size_t)end] != '\0' || pid <= 0)
        return 0;
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Nobody holds the lock: a process of another machine or container may be alive. */
static int is_free(const char *mark)
{
    int fd;
    if (lam_file_open(&fd, mark, O_RDONLY | O_NOFOLLOW) != LAM_OK)
        return 0;
    const int locked = flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    return !locked && lam_own_file(mark, UNFINISHED_TEXT) == LAM_OK;
}

/* By a mark, and with nothing else in it.  Without the mark of an unfinished one it was replaced by a finished one. */
static int is_ours(const char *path, const lam_kind *kind)
{
    char mark[PATH_MAX];
    struct stat info;
    int unfinished;
    if (lstat(path, &info) != 0 || !S_ISDIR(info.st_mode) || lam_own_rest(path, kind) != LAM_OK ||
        lam_path_join(mark, sizeof mark, path, UNFINISHED) != LAM_OK ||
        lam_path_look(&unfinished, mark) != LAM_OK)
        return 0;
    return unfinished ? is_free(mark) : is_marked(path, kind->marks);
}

static void remove_orphans(const char *place, const lam_kind *kind)
{
    char parent[PATH_MAX], path[PATH_MAX];
    const char *const base = name_in(parent, place);
    DIR *const folder = opendir(parent);
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (!is_orphan(entry->d_name, base) ||
            lam_path_join(path, sizeof path, parent, entry->d_name) != LAM_OK ||
            !is_ours(path, kind))
            continue;
        if (lam_dir_remove(path) == LAM_OK)
            lam_log(LAM_LOG_INFO, "%s: removed, an earlier run was killed while it wrote this",
                    path);
        else
            lam_log(LAM_LOG_WARN, "%s", lam_error());
    }
    closedir(folder);
}

/* A message about a folder whose name nobody knows becomes one about the user's. */
static lam_status fail_for(const char *dir, lam_status status, const char *message,
                           const char *temporary)
{
    const char *const at = strstr(message, temporary);
    if (!at)
        return lam_fail(status, "%s", message);
    return lam_fail(status, "%.*s%s%s", (int)(at - message), message, dir, at + strlen(temporary));
}

static lam_status publish(const char *dir, const char *place, const char *temporary,
                          const lam_kind *kind, int replace)
{
    char mark[PATH_MAX];
    const lam_status status = lam_own_target(dir, kind, replace);
    if (status != LAM_OK)
        return lam_fail(status, "%s (it was not so when this began)", lam_error());
    LAM_TRY(lam_path_join(mark, sizeof mark, temporary, UNFINISHED));
    if (unlink(mark) != 0)
        return lam_guard_fail(mark, "remove", errno);
    return replace ? lam_dir_replace(place, temporary) : lam_dir_place(place, temporary);
}

lam_status lam_own_write(const char *dir, const lam_kind *kind, int replace, lam_dir_filler *fill,
                         void *user)
{
    char place[PATH_MAX], temporary[PATH_MAX], message[1024];
    int lock = -1;
    LAM_TRY(lam_own_target(dir, kind, replace));
    LAM_TRY(place_of(place, dir));
    remove_orphans(place, kind);
    LAM_TRY(make_beside(temporary, place));
    lam_status status = mark_unfinished(&lock, temporary, dir);
    if (status == LAM_OK)
        status = fill(user, temporary);
    if (status == LAM_OK)
        status = publish(dir, place, temporary, kind, replace);
    if (lock >= 0)
        close(lock);
    if (status == LAM_OK)
        return LAM_OK;
    snprintf(message, sizeof message, "%s", lam_error()); /* removing may fail too */
    (void)lam_dir_remove(temporary);
    return fail_for(dir, status, message, temporary);
}
