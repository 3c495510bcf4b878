/* run_folder.c -- see run_folder.h. */
#include "train/run_folder.h"

#include "model/folder.h"
#include "train/checkpoint.h"
#include "train/runlog.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LAST, BEST, PARTS };
static const char *const names[PARTS] = {"last", "best"};

static const lam_kind *kind_of(int part)
{
    return part == LAST ? &lam_checkpoint_kind : &lam_folder_kind;
}

static lam_status path_of(char path[PATH_MAX], const char *dir, int part, const char *suffix)
{
    char name[16];
    snprintf(name, sizeof name, "%s%s", names[part], suffix);
    return lam_path_join(path, PATH_MAX, dir, name);
}

/* The folder, and what a crash leaves beside it (core/file.h). */
static lam_status look_at_part(int there[3], const char *dir, int part)
{
    static const char *const suffixes[3] = {"", ".old", ".new"};
    char path[PATH_MAX];
    for (int i = 0; i < 3; i++) {
        LAM_TRY(path_of(path, dir, part, suffixes[i]));
        LAM_TRY(lam_path_look(&there[i], path));
        LAM_TRY(i == 0 ? lam_own_folder(path, kind_of(part)) : lam_own_rest(path, kind_of(part)));
    }
    return LAM_OK;
}

lam_status lam_run_look(lam_run_found *out, const char *dir)
{
    int last[3], best[3];
    *out = (lam_run_found){0};
    LAM_TRY(lam_dir_may_make(dir));
    LAM_TRY(look_at_part(last, dir, LAST));
    LAM_TRY(look_at_part(best, dir, BEST));
    LAM_TRY(lam_runlog_look(&out->records, dir));
    out->last = last[0] || last[1];
    out->best = best[0];
    if (out->last || out->best || out->records || last[2] || best[1] || best[2])
        return LAM_OK;
    return lam_own_room(dir, "run");
}

static lam_status remove_one(const char *dir, int part, const char *suffix)
{
    char path[PATH_MAX];
    LAM_TRY(path_of(path, dir, part, suffix));
    return lam_dir_remove(path);
}

static lam_status discard(const char *dir, int part)
{
    char path[PATH_MAX], rest[PATH_MAX];
    LAM_TRY(path_of(path, dir, part, ""));
    LAM_TRY(path_of(rest, dir, part, ".new"));
    return rename(path, rest) == 0 || errno == ENOENT
               ? LAM_OK
               : lam_fail(LAM_ERR_IO, "%s: cannot remove: %s", path, strerror(errno));
}

/* Under the names of what a crash leaves first: half a checkpoint must not be taken for one.  last goes before best: a
 * run that has lost its best model could be resumed, and would miss it at its end. */
lam_status lam_run_remove(const char *dir)
{
    for (int part = 0; part < PARTS; part++) {
        LAM_TRY(remove_one(dir, part, ".old"));
        LAM_TRY(remove_one(dir, part, ".new"));
    }
    for (int part = 0; part < PARTS; part++)
        LAM_TRY(discard(dir, part));
    for (int part = 0; part < PARTS; part++)
        LAM_TRY(remove_one(dir, part, ".new"));
    return LAM_OK;
}
