/* own.c -- see own.h. */
#include "core/own.h"

#include "core/file_guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 4096 }; /* bytes in which a mark is looked for */

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

/* ---- folders that take a name ---- */

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

/* A new folder beside `place` that nobody else has. */
static lam_status make_beside(char temporary[PATH_MAX], const char *place)
{
    char parent[PATH_MAX];
    strcpy(parent, place);
    char *const slash = strrchr(parent, '/');
    if (slash && slash > parent) {
        *slash = '\0';
        LAM_TRY(lam_dir_make(parent));
    }
    int error = EEXIST;
    for (int i = 0; error == EEXIST && i < 1000; i++) {
        const int n = snprintf(temporary, PATH_MAX, "%s.%ld-%d.tmp", place, (long)getpid(), i);
        error = n >= PATH_MAX ? ENAMETOOLONG : mkdir(temporary, 0777) == 0 ? 0 : errno;
    }
    return error ? lam_guard_fail(place, "make the folder", error) : LAM_OK;
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
    const lam_status status = lam_own_target(dir, kind, replace);
    if (status != LAM_OK)
        return lam_fail(status, "%s (it was not so when this began)", lam_error());
    return replace ? lam_dir_replace(place, temporary) : lam_dir_place(place, temporary);
}

lam_status lam_own_write(const char *dir, const lam_kind *kind, int replace, lam_dir_filler *fill,
                         void *user)
{
    char place[PATH_MAX], temporary[PATH_MAX], message[1024];
    LAM_TRY(lam_own_target(dir, kind, replace));
    LAM_TRY(place_of(place, dir));
    LAM_TRY(make_beside(temporary, place));
    lam_status status = fill(user, temporary);
    if (status == LAM_OK)
        status = publish(dir, place, temporary, kind, replace);
    if (status == LAM_OK)
        return LAM_OK;
    snprintf(message, sizeof message, "%s", lam_error()); /* removing may fail too */
    (void)lam_dir_remove(temporary);
    return fail_for(dir, status, message, temporary);
}
