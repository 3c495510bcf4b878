/* mutate_tree.c -- damage to a folder: another kind of thing where a file was; and the choice of what is damaged. */
#include "fuzz/cli/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void link_to(const char *target, const char *path, story *s)
{
    tree_remove(path);
    if (symlink(target, path) != 0)
        die("cannot link", path);
    tell(s, "a link to %s", target);
}

/* ../ as often as it takes from the folder of `path` to the root, and then out of it. */
static void link_outside(rng *r, const char *path, const char *inside, story *s)
{
    static const char *const targets[] = {"outside/file", "outside/folder", "outside/zero",
                                          "outside/zero", "outside/none"};
    char target[PATH_ROOM] = "../";
    for (const char *p = inside; *p; p++)
        if (*p == '/')
            strcat(target, "../");
    strcat(target, targets[rng_below(r, 5)]);
    link_to(target, path, s);
}

static void make_folder(const char *path, story *s)
{
    tree_remove(path);
    if (mkdir(path, 0755) != 0)
        die("cannot make", path);
    tell(s, "a folder");
}

static void make_pipe(const char *path, story *s)
{
    tree_remove(path);
    if (mkfifo(path, 0644) != 0)
        die("cannot make", path);
    tell(s, "a pipe");
}

/* As long as a disk: nobody may read all of it, or take memory for it. */
static void make_sparse(rng *r, const char *path, story *s)
{
    struct stat st;
    const int exponent = 28 + (int)rng_below(r, 10);
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) || truncate(path, (off_t)1 << exponent) != 0)
        return;
    tell(s, "2^%d bytes long", exponent);
}

/* What another one is. */
static void replace_by(const char *path, const char *other, story *s)
{
    struct stat a, b;
    if (lstat(path, &a) != 0 || lstat(other, &b) != 0 || !S_ISREG(a.st_mode) || !S_ISREG(b.st_mode))
        return;
    blob bytes = blob_read(other);
    blob_write(&bytes, path);
    blob_free(&bytes);
    tell(s, "as %s", strrchr(other, '/') + 1);
}

/* Is it a word of the command, or of a list in it? */
static int is_named(const char *inside, const char *command)
{
    const size_t n = strlen(inside);
    for (const char *p = command; (p = strstr(p, inside)); p++)
        if (p > command && p[-1] == '/' && (p[n] == '\0' || p[n] == ' ' || p[n] == ','))
            return 1;
    return 0;
}

/* Something else where a file or folder was. */
static void mutate_entry(rng *r, const char *root, const char *inside, const char *other,
                         const char *command, story *s)
{
    char path[PATH_ROOM], from[PATH_ROOM];
    path_in(path, root, inside);
    path_in(from, root, other);
    switch (rng_below(r, 9)) {
    case 0:
        tree_remove(path);
        tell(s, "gone");
        break;
    case 1:
        make_folder(path, s);
        break;
    case 2:
        if (!is_named(inside, command))
            make_pipe(path, s);
        break;
    case 3:
    case 4:
        link_outside(r, path, inside, s);
        break;
    case 5:
        link_to(strrchr(path, '/') + 1, path, s); /* to itself */
        break;
    case 6:
        link_to(rng_one_in(r, 2) ? "." : "..", path, s);
        break;
    case 7:
        make_sparse(r, path, s);
        break;
    default:
        replace_by(path, from, s);
    }
}

static int is_kept(const char *path, char *const kept[])
{
    for (; *kept; kept++) { /* it, or a folder on the way to it */
        const size_t n = strlen(path);
        if (strncmp(*kept, path, n) == 0 && ((*kept)[n] == '\0' || (*kept)[n] == '/'))
            return 1;
    }
    return 0;
}

static void mutate_file(rng *r, const char *root, const tree *t, int i, story *s)
{
    char path[PATH_ROOM];
    blob other = {0};
    path_in(path, root, t->at[i].path);
    blob b = blob_read(path);
    const int text = rng_below(r, 5) < 3 && mutate_text(r, &b, s);
    if (!text) {
        const int k = (int)rng_below(r, (size_t)t->n);
        struct stat st;
        char from[PATH_ROOM];
        path_in(from, root, t->at[k].path);
        if (lstat(from, &st) == 0 && S_ISREG(st.st_mode))
            other = blob_read(from);
        mutate_bytes(r, &b, &other, s);
    }
    blob_write(&b, path);
    blob_free(&b);
    blob_free(&other);
}

void mutate_tree(rng *r, const char *root, char *const kept[], const char *command, story *s)
{
    static tree t;
    const int rounds = 1 + (rng_one_in(r, 3) ? 1 + (int)rng_below(r, 2) : 0);
    for (int round = 0; round < rounds; round++) {
        tree_list(&t, root);
        if (t.n == 0)
            return;
        const int i = (int)rng_below(r, (size_t)t.n), k = (int)rng_below(r, (size_t)t.n);
        tell(s, "%s%s: ", round > 0 ? "; " : "", t.at[i].path);
        if (S_ISREG(t.at[i].mode) && t.at[i].size <= BLOB_MAX && !rng_one_in(r, 8))
            mutate_file(r, root, &t, i, s);
        else if (!is_kept(t.at[i].path, kept))
            mutate_entry(r, root, t.at[i].path, t.at[k].path, command, s);
    }
}
