/* run_paths.c -- see run_paths.h. */
#include "report/run_paths.h"

#include "core/file.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static lam_status add(lam_run_paths *p, const char *path)
{
    if (p->n == p->room) {
        const int room = p->room ? 2 * p->room : 16;
        char **const grown = realloc(p->list, (size_t)room * sizeof *grown);
        if (!grown)
            return lam_fail(LAM_ERR_MEMORY, "no memory for %d runs", room);
        p->list = grown;
        p->room = room;
    }
    p->list[p->n] = strdup(path);
    return p->list[p->n++] ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
}

static int is_run(const char *dir)
{
    char path[PATH_MAX];
    return lam_path_join(path, sizeof path, dir, "metrics.jsonl") == LAM_OK &&
           lam_path_exists(path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static lam_status add_runs_in(lam_run_paths *p, const char *dir)
{
    const int first = p->n;
    char path[PATH_MAX];
    lam_status status = LAM_OK;
    DIR *const folder = opendir(dir);
    for (struct dirent *e; folder && status == LAM_OK && (e = readdir(folder));)
        if (e->d_name[0] != '.' && lam_path_join(path, sizeof path, dir, e->d_name) == LAM_OK &&
            (is_run(path) || strstr(e->d_name, ".metrics.jsonl")))
            status = add(p, path);
    if (folder)
        closedir(folder);
    if (p->n > first)
        qsort(p->list + first, (size_t)(p->n - first), sizeof *p->list, by_name);
    return status == LAM_OK && p->n == first ? add(p, dir) : status;
}

lam_status lam_run_paths_find(lam_run_paths *out, int n, char *const *given)
{
    lam_status status = LAM_OK;
    *out = (lam_run_paths){0};
    for (int i = 0; i < n && status == LAM_OK; i++)
        status = is_run(given[i]) ? add(out, given[i]) : add_runs_in(out, given[i]);
    if (status != LAM_OK)
        lam_run_paths_free(out);
    return status;
}

void lam_run_paths_free(lam_run_paths *paths)
{
    for (int i = 0; i < paths->n; i++)
        free(paths->list[i]);
    free(paths->list);
    *paths = (lam_run_paths){0};
}
