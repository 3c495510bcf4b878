/* pack_jobs.c -- see pack_jobs.h. */
#include "cli/pack_jobs.h"

#include "cli/stop.h"
#include "core/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the model ---- */

lam_status lam_pack_engine(lam_pack_job *j, const char *model)
{
    if (j->engine && strcmp(j->name, model) == 0)
        return LAM_OK;
    lam_engine_close(j->engine);
    j->engine = NULL;
    if (!j->dev) {
        lam_device_options exact = j->o->device;
        exact.numerics = 1; /* what one machine encodes another must decode */
        LAM_TRY(lam_device_open(&j->dev, &exact));
    }
    if (snprintf(j->name, sizeof j->name, "%s", model) >= (int)sizeof j->name)
        return lam_fail(LAM_ERR_IO, "%s: the name is too long", model);
    return lam_engine_open(&j->engine, model, j->dev, &(lam_storage){0});
}

/* ---- progress ---- */

int lam_pack_progress(void *user, double part)
{
    lam_pack_job *const j = user;
    if (lam_progress_due(&j->line)) {
        char left[32] = "";
        const double done = (double)j->done + part * (double)j->block;
        const double seconds = lam_progress_seconds(&j->line), rate = done / seconds;
        if (j->total > 0 && rate > 0.0) {
            char time[24];
            const double rest = (double)j->total > done ? ((double)j->total - done) / rate : 0.0;
            snprintf(left, sizeof left, ", %s left", lam_format_time(time, sizeof time, rest));
        }
        if (j->total > 0)
            lam_progress_show(&j->line, "%s: %3.0f %%, %.1f kB/s%s", j->source.path,
                              100.0 * done / (double)j->total, rate / 1000.0, left);
        else
            lam_progress_show(&j->line, "%s: %.0f kB, %.1f kB/s", j->source.path, done / 1000.0,
                              rate / 1000.0);
    }
    return lam_stop_signal() != 0;
}

/* ---- files ---- */

lam_status lam_pack_target(lam_pack_job *j,
                           lam_status (*named)(char out[PATH_MAX], const char *path))
{
    const lam_pack_options *const o = j->o;
    char path[PATH_MAX] = "";
    lam_target_kind kind = LAM_TARGET_FILE;
    if (o->test)
        kind = LAM_TARGET_NONE;
    else if (o->to_stdout || (j->source.standard && !o->out))
        kind = LAM_TARGET_STDOUT;
    else if (o->out)
        snprintf(path, sizeof path, "%s", o->out);
    else
        LAM_TRY(named(path, j->source.path));
    if (kind == LAM_TARGET_STDOUT && named == lam_packed_name && isatty(STDOUT_FILENO) && !o->force)
        return lam_fail(LAM_ERR_IO,
                        "an archive is not written to a terminal; -f does it all the same");
    return lam_target_open(&j->target, kind, path, o->force);
}

/* Is the source removed when all went well? */
static bool removes(const lam_pack_options *o)
{
    return !o->keep && !o->to_stdout && !o->out && !o->test && !o->list && !o->range;
}

static lam_status do_file(lam_pack_job *j, const char *path, lam_pack_file *one)
{
    j->done = j->total = j->block = 0;
    j->target = (lam_target){.kind = LAM_TARGET_NONE, .fd = -1};
    LAM_TRY(lam_source_open(&j->source, path, removes(j->o) && !j->o->force));
    if (S_ISREG(j->source.info.st_mode))
        j->total = (uint64_t)j->source.info.st_size;
    lam_progress_open(&j->line, j->args->quiet || j->o->list);
    lam_status status = one(j);
    lam_progress_close(&j->line);
    if (status == LAM_OK)
        status = lam_target_finish(&j->target, &j->source);
    lam_target_abort(&j->target);
    if (status == LAM_OK && removes(j->o))
        status = lam_source_remove(&j->source);
    lam_source_close(&j->source);
    return status;
}

/* Does the message begin with the name?  "n" alone would also begin "not an archive". */
static bool names(const char *message, const char *name)
{
    const size_t n = strlen(name);
    return n > 0 && strncmp(message, name, n) == 0 && (message[n] == ':' || message[n] == ' ');
}

/* Puts the file's name in front of the message, unless it is there. */
static lam_status blame(lam_pack_job *j, lam_status status)
{
    if (status == LAM_OK || status == LAM_ERR_INTERRUPTED || status == LAM_ERR_ARG)
        return status;
    if (names(lam_error(), j->source.path) || names(lam_error(), j->target.path))
        return status;
    return lam_fail(status, "%s: %s", j->source.path, lam_error());
}

static lam_status check(const lam_args *args, const lam_pack_options *o)
{
    if (o->out && args->n_operands > 1)
        return lam_fail(LAM_ERR_ARG, "--out %s: for one source, not for %d", o->out,
                        args->n_operands);
    if ((o->out != NULL) + o->to_stdout + o->test + o->list > 1)
        return lam_fail(LAM_ERR_ARG,
                        "of --stdout, --out, --test and --list only one can be chosen");
    if (o->json && !o->list)
        return lam_fail(LAM_ERR_ARG, "--json goes with --list");
    return LAM_OK;
}

/* All of them, whatever happens to one; but a wrong option or a signal ends it. */
static lam_status do_files(lam_pack_job *j, char *const *paths, int n, lam_pack_file *one)
{
    lam_status worst = LAM_OK;
    int failed = 0;
    for (int i = 0; i < n; i++) {
        const lam_status status = blame(j, do_file(j, paths[i], one));
        if (status == LAM_OK)
            continue;
        if (n == 1 || status == LAM_ERR_ARG || status == LAM_ERR_INTERRUPTED)
            return status;
        failed++;
        worst = status;
        lam_log(LAM_LOG_ERROR, "%s", lam_error());
    }
    return failed == 0 ? LAM_OK : lam_fail(worst, "%d of %d files failed", failed, n);
}

lam_status lam_pack_run(const lam_args *args, lam_pack_file *one)
{
    static char standard[] = "-", *const alone[] = {standard};
    lam_pack_job j = {.o = args->options, .args = args, .first = true};
    LAM_TRY(check(args, j.o));
    const lam_status status = do_files(&j, args->n_operands > 0 ? args->operands : alone,
                                       args->n_operands > 0 ? args->n_operands : 1, one);
    lam_engine_close(j.engine);
    if (j.dev)
        j.dev->ops->close(j.dev);
    return status;
}
