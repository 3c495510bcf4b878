/* tree.c -- folders of the fuzzer: listed, copied, compared, removed. */
#include "fuzz/cli/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void list_below(tree *t, const char *root, const char *inside)
{
    char folder[PATH_ROOM];
    struct dirent **names = NULL;
    path_in(folder, root, inside);
    const int n = scandir(folder, &names, NULL, NULL);
    for (int i = 0; i < n; i++) {
        char path[NAME_ROOM], whole[PATH_ROOM];
        struct stat st;
        const char *const name = names[i]->d_name;
        const int length = snprintf(path, sizeof path, "%s%s%s", inside, *inside ? "/" : "", name);
        path_in(whole, root, path);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && lstat(whole, &st) == 0) {
            if (t->n == TREE_MAX || length >= NAME_ROOM)
                die("too much in", folder);
            strcpy(t->at[t->n].path, path);
            t->at[t->n].mode = st.st_mode;
            t->at[t->n].size = (long long)st.st_size;
            t->at[t->n].time = (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
            t->at[t->n].node = (long long)st.st_ino;
            t->n++;
            if (S_ISDIR(st.st_mode))
                list_below(t, root, path);
        }
        free(names[i]);
    }
    free(names);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(a, b); /* the path is the first field */
}

void tree_list(tree *t, const char *folder)
{
    t->n = 0;
    list_below(t, folder, "");
    qsort(t->at, (size_t)t->n, sizeof t->at[0],
          by_path); /* a folder still comes before what is in it */
}

static void copy_entry(const char *from, const char *to, unsigned mode, long long size)
{
    if (S_ISDIR(mode)) {
        if (mkdir(to, 0755) != 0)
            die("cannot make", to);
    } else if (S_ISREG(mode)) {
        char bytes[1 << 16];
        ssize_t n;
        const int in = open(from, O_RDONLY),
                  out = open(to, O_WRONLY | O_CREAT | O_EXCL, mode & 0777);
        if (in < 0 || out < 0)
            die("cannot copy", from);
        for (long long done = 0; done < BLOB_MAX && (n = read(in, bytes, sizeof bytes)) > 0;
             done += n)
            if (write(out, bytes, (size_t)n) != n)
                die("cannot write", to);
        if (ftruncate(out, (off_t)size) != 0) /* the rest is a hole in both */
            die("cannot write", to);
        close(in);
        close(out);
    } else if (S_ISLNK(mode)) {
        char target[PATH_ROOM];
        const ssize_t n = readlink(from, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        if (symlink(target, to) != 0)
            die("cannot link", to);
    } else if (S_ISFIFO(mode) && mkfifo(to, 0644) != 0) {
        die("cannot make", to);
    }
}

void tree_copy(const char *from, const char *to)
{
    static tree t;
    tree_list(&t, from);
    if (mkdir(to, 0755) != 0)
        die("cannot make", to);
    for (int i = 0; i < t.n; i++) {
        char source[PATH_ROOM], target[PATH_ROOM];
        path_in(source, from, t.at[i].path);
        path_in(target, to, t.at[i].path);
        copy_entry(source, target, t.at[i].mode, t.at[i].size);
    }
}

void tree_remove(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return;
    if (S_ISDIR(st.st_mode)) {
        struct dirent **names = NULL;
        const int n = scandir(path, &names, NULL, NULL);
        for (int i = 0; i < n; i++) {
            char inside[PATH_ROOM];
            path_in(inside, path, names[i]->d_name);
            if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0)
                tree_remove(inside);
            free(names[i]);
        }
        free(names);
    }
    if (remove(path) != 0 && errno != ENOENT)
        die("cannot remove", path);
}

static int is_allowed(const char *path, char *const allowed[])
{
    for (; *allowed; allowed++) {
        const size_t n = strlen(*allowed);
        if (strncmp(path, *allowed, n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return 1;
    }
    return 0;
}

static int order(const tree *a, int i, const tree *b, int k)
{
    if (i == a->n || k == b->n)
        return k == b->n ? -1 : 1;
    return strcmp(a->at[i].path, b->at[k].path);
}

static int same(const tree *a, int i, const tree *b, int k)
{
    return a->at[i].mode == b->at[k].mode && a->at[i].size == b->at[k].size &&
           a->at[i].time == b->at[k].time && a->at[i].node == b->at[k].node;
}

const char *tree_difference(const tree *a, const tree *b, char *const allowed[])
{
    int i = 0, k = 0;
    while (i < a->n || k < b->n) {
        const int which = order(a, i, b, k);
        const char *const path = which <= 0 ? a->at[i].path : b->at[k].path;
        const int differs = which != 0 || !same(a, i, b, k);
        i += which <= 0;
        k += which >= 0;
        if (differs && !is_allowed(path, allowed))
            return path;
    }
    return NULL;
}
