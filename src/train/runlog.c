/* runlog.c -- see runlog.h.  Every record is one write(), so that readers see whole lines. */
#include "train/runlog_int.h"

#include "core/file.h"
#include "core/log.h"
#include "core/printable.h"
#include "data/json_name.h"
#include "io/json.h"
#include "train/tfevents.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LINE = 2048 };

struct lam_runlog {
    char dir[PATH_MAX];
    int fd[LAM_RECORDS];
    char path[LAM_RECORDS][PATH_MAX];
    char events_name[256];
};

static lam_status failed(const lam_runlog *r, int which, const char *verb)
{
    return lam_fail(LAM_ERR_IO, "%s: cannot %s: %s", r->path[which], verb,
                    errno == ENOSPC || errno == EDQUOT ? "no space left on the device"
                                                       : strerror(errno));
}

static lam_status append(lam_runlog *r, int which, const void *data, size_t size)
{
    for (const char *at = data; size > 0;) {
        const ssize_t n = write(r->fd[which], at, size);
        if (n < 0 && errno != EINTR)
            return failed(r, which, "write");
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return LAM_OK;
}

static lam_status open_one(lam_runlog *r, int which, const char *name)
{
    LAM_TRY(lam_path_join(r->path[which], sizeof r->path[which], r->dir, name));
    LAM_TRY(lam_file_open(&r->fd[which], r->path[which], O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW));
    /* A name that nobody recorded is that of a file we make. */
    return lam_runlog_check(r->fd[which], which, LAM_NAMED, r->path[which]);
}

/* A file that is shorter stays as it is. */
static lam_status cut(lam_runlog *r, int which, int64_t mark)
{
    const off_t size = lseek(r->fd[which], 0, SEEK_END);
    return size > mark && ftruncate(r->fd[which], (off_t)mark) != 0 ? failed(r, which, "cut")
                                                                    : LAM_OK;
}

static double wall_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lam_status lock(lam_runlog *r, const char *dir)
{
    if ((size_t)snprintf(r->dir, sizeof r->dir, "%s", dir) >= sizeof r->dir)
        return lam_fail(LAM_ERR_ARG, "%s: path longer than %zu bytes", dir, sizeof r->dir);
    LAM_TRY(open_one(r, LAM_RECORD_LOG, lam_runlog_names[LAM_RECORD_LOG]));
    if (flock(r->fd[LAM_RECORD_LOG], LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return lam_fail(LAM_ERR_IO, "%s: another process is training here", dir);
    return LAM_OK;
}

lam_status lam_runlog_open(lam_runlog **out, const char *dir)
{
    *out = NULL;
    lam_runlog *r = calloc(1, sizeof *r);
    if (!r)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", dir);
    for (int i = 0; i < LAM_RECORDS; i++)
        r->fd[i] = -1;
    const lam_status status = lock(r, dir);
    if (status == LAM_OK)
        *out = r;
    else
        lam_runlog_close(r);
    return status;
}

lam_status lam_runlog_begin(lam_runlog *r, const lam_log_marks *marks)
{
    char host[128] = "localhost";
    (void)gethostname(host, sizeof host - 1);
    snprintf(r->events_name, sizeof r->events_name, "%s%lld.%s", LAM_EVENTS_PREFIX,
             (long long)wall_clock(), host);
    if (marks && lam_runlog_events_name(marks->events_name))
        strcpy(r->events_name, marks->events_name);
    const lam_log_marks none = {0};
    const lam_log_marks *m = marks ? marks : &none;
    LAM_TRY(open_one(r, LAM_RECORD_METRICS, lam_runlog_names[LAM_RECORD_METRICS]));
    if (!marks)
        LAM_TRY(lam_runlog_remove_events(r->dir));
    LAM_TRY(open_one(r, LAM_RECORD_EVENTS, r->events_name));
    LAM_TRY(cut(r, LAM_RECORD_LOG, m->log));
    LAM_TRY(cut(r, LAM_RECORD_METRICS, m->metrics));
    LAM_TRY(cut(r, LAM_RECORD_EVENTS, m->events));
    if (lseek(r->fd[LAM_RECORD_EVENTS], 0, SEEK_END) == 0) {
        unsigned char frame[LAM_TFEVENT_MAX];
        LAM_TRY(append(r, LAM_RECORD_EVENTS, frame, lam_tfevent_version(frame, wall_clock())));
    }
    return LAM_OK;
}

void lam_runlog_close(lam_runlog *r)
{
    if (!r)
        return;
    for (int i = 0; i < LAM_RECORDS; i++)
        if (r->fd[i] >= 0)
            close(r->fd[i]);
    free(r);
}

lam_status lam_runlog_line(lam_runlog *r, const char *format, ...)
{
    char line[MAX_LINE];
    if (!r)
        return LAM_OK;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    lam_log(LAM_LOG_INFO, "%s", line);
    const size_t n = length < MAX_LINE - 2 ? (size_t)length : MAX_LINE - 2;
    line[n] = '\n';
    return append(r, LAM_RECORD_LOG, line, n + 1);
}

lam_status lam_runlog_record(lam_runlog *r, int64_t step, const lam_scalar *scalars, int n)
{
    char line[MAX_LINE];
    if (!r)
        return LAM_OK;
    size_t used = (size_t)snprintf(line, sizeof line, "{\"step\":%lld", (long long)step);
    for (int i = 0; i < n; i++) {
        const double v = scalars[i].value;
        used += (size_t)snprintf(line + used, sizeof line - used, ",\"%s\":", scalars[i].name);
        used +=
            (size_t)snprintf(line + used, sizeof line - used, isfinite(v) ? "%.10g" : "null", v);
        if (used > sizeof line - 128)
            return lam_fail(LAM_ERR_ARG, "%s: more than %d bytes in a record",
                            r->path[LAM_RECORD_METRICS], MAX_LINE);
    }
    memcpy(line + used, "}\n", 2);
    LAM_TRY(append(r, LAM_RECORD_METRICS, line, used + 2));

    unsigned char frame[LAM_TFEVENT_MAX];
    const double wall = wall_clock();
    for (int i = 0; i < n; i++)
        if (scalars[i].tag && isfinite(scalars[i].value))
            LAM_TRY(
                append(r, LAM_RECORD_EVENTS, frame,
                       lam_tfevent_scalar(frame, wall, step, scalars[i].tag, scalars[i].value)));
    return LAM_OK;
}

/* A row of metrics.jsonl that is more than numbers; released. */
static lam_status append_row(lam_runlog *r, json_t *row)
{
    char *line = NULL;
    size_t size = 0;
    if (!r) { /* not the process that writes */
        json_decref(row);
        return LAM_OK;
    }
    lam_status status =
        row ? lam_json_text(&line, &size, row, JSON_COMPACT | JSON_REAL_PRECISION(10))
            : lam_fail(LAM_ERR_MEMORY, "%s: no memory", r->path[LAM_RECORD_METRICS]);
    json_decref(row);
    if (status == LAM_OK) {
        line[size] = '\n'; /* in the place of its NUL */
        status = append(r, LAM_RECORD_METRICS, line, size + 1);
    }
    free(line);
    return status;
}

enum { SHOWN = 300 }; /* bytes of a text in train.log */

/* The beginning of the text, on one line: \n where one ends. */
static const char *show(char out[SHOWN * LAM_PRINTABLE_MAX], lam_log_text text)
{
    const size_t n = text.size < SHOWN ? text.size : SHOWN;
    char *to = out;
    *to = '\0';
    for (size_t at = 0; at < n; to += strlen(to))
        if (text.bytes[at] == '\n') {
            strcpy(to, "\\n");
            at++;
        } else
            at += lam_printable_next(to, text.bytes + at, n - at);
    return out;
}

/* Readers of JSON refuse a zero in a string: it becomes U+FFFD, too. */
static json_t *json_of(lam_log_text text)
{
    char *const copy = malloc(text.size + 1);
    for (size_t i = 0; copy && i < text.size; i++)
        copy[i] = text.bytes[i] != '\0' ? text.bytes[i] : '\xff';
    json_t *const value = copy ? lam_json_bytes(copy, text.size) : NULL;
    free(copy);
    return value;
}

lam_status lam_runlog_sample(lam_runlog *r, int64_t step, lam_log_text prompt, lam_log_text sample)
{
    char before[SHOWN * LAM_PRINTABLE_MAX], after[SHOWN * LAM_PRINTABLE_MAX];
    LAM_TRY(append_row(r, json_pack("{s:I, s:o, s:o}", "step", (json_int_t)step, "prompt",
                                    json_of(prompt), "sample", json_of(sample))));
    return lam_runlog_line(r, "step %7lld  sample: %s | %s", (long long)step, show(before, prompt),
                           show(after, sample));
}

/* Adds "lr 0.001 -> 0.0005" to a line. */
static void add_change(char *line, size_t size, const char *name, const json_t *before,
                       const json_t *after)
{
    const json_t *const both[] = {before, after};
    size_t used = strlen(line);
    used += (size_t)snprintf(line + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    for (int i = 0; i < 2 && used < size; i++) {
        char *text = json_dumps(both[i], JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
        used +=
            (size_t)snprintf(line + used, size - used, "%s%s", i ? " -> " : " ", text ? text : "?");
        free(text);
    }
}

lam_status lam_runlog_changes(lam_runlog *r, int64_t step, const json_t *before,
                              const json_t *after)
{
    char line[MAX_LINE / 2] = "";
    const char *name;
    json_t *now, *changed = json_object();
    json_object_foreach((json_t *)after, name, now) {
        json_t *const then = json_object_get(before, name);
        if (!then || json_equal(then, now))
            continue;
        json_object_set_new(changed, name, json_pack("[O, O]", then, now));
        if (strlen(line) + 128 < sizeof line)
            add_change(line, sizeof line, name, then, now);
    }
    if (json_object_size(changed) == 0) {
        json_decref(changed);
        return LAM_OK;
    }
    LAM_TRY(append_row(r, json_pack("{s:I, s:o}", "step", (json_int_t)step, "changed", changed)));
    return lam_runlog_line(r, "changed: %s", line);
}

lam_status lam_runlog_sync(lam_runlog *r, lam_log_marks *marks)
{
    int64_t *const at[LAM_RECORDS] = {&marks->metrics, &marks->log, &marks->events};
    if (!r)
        return LAM_OK;
    for (int i = 0; i < LAM_RECORDS; i++) {
        if (fsync(r->fd[i]) != 0 && errno != EINVAL)
            return failed(r, i, "sync");
        *at[i] = lseek(r->fd[i], 0, SEEK_END);
    }
    strcpy(marks->events_name, r->events_name);
    return LAM_OK;
}
