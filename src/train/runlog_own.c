/* runlog_own.c -- which records in a folder are ours: their first bytes are such as we write, and links are not
 * followed. */
#include "train/runlog_int.h"

#include "core/file.h"
#include "train/tfevents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const lam_runlog_names[] = {"metrics.jsonl", "train.log"};

/* "{"step":N,"KEY": KEY is one of ours. */
static int is_record(const char *text)
{
    static const char *const keys[] = {"epoch\"", "aux_loss\"", "valid_",    "test_",
                                       "ended\"", "prompt\"",   "diverged\""};
    int at = 0;
    (void)sscanf(text, "{\"step\":%*[0-9],\"%n", &at);
    for (size_t i = 0; at > 0 && i < sizeof keys / sizeof *keys; i++)
        if (strncmp(text + at, keys[i], strlen(keys[i])) == 0)
            return 1;
    return 0;
}

/* An introduction, or, where the library is used without the program, the first step. */
static int is_line(const char *text)
{
    int at = 0;
    (void)sscanf(text, "step %*[ 0-9]%n", &at);
    return strncmp(text, LAM_RUNLOG_FIRST, sizeof LAM_RUNLOG_FIRST - 1) == 0 ||
           (at >= 14 && text[at - 1] == ' ' && text[at - 2] == ' '); /* "step %7lld  " */
}

static int is_ours(const char *head, size_t size, int which, lam_trust t)
{
    return size == 0 || (which == LAM_RECORD_METRICS ? is_record(head)
                         : which == LAM_RECORD_LOG   ? is_line(head)
                         : t == LAM_NAMED            ? lam_tfevent_begins(head, size)
                                                     : lam_tfevent_ours(head, size));
}

lam_status lam_runlog_check(int fd, int which, lam_trust t, const char *path)
{
    static const size_t room = LAM_TFEVENT_HEAD;
    char *const head = malloc(room + 1);
    if (!head)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
    const ssize_t n = pread(fd, head, room, 0);
    const int error = n < 0 ? errno : 0;
    head[n > 0 ? n : 0] = '\0';
    const int ours = n >= 0 && is_ours(head, (size_t)n, which, t);
    free(head);
    if (error)
        return lam_fail(LAM_ERR_IO, "%s: cannot read: %s", path, strerror(error));
    return ours ? LAM_OK
                : lam_fail(LAM_ERR_IO, "%s: lamemo did not write this file: move it away", path);
}

/* *size: -1 where there is none. */
static lam_status look_at_file(int64_t *size, int which, const char *path)
{
    struct stat info;
    int fd;
    *size = -1;
    if (lstat(path, &info) != 0 && errno == ENOENT)
        return LAM_OK;
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY | O_NOFOLLOW));
    const lam_status status = lam_runlog_check(fd, which, LAM_UNKNOWN, path);
    *size = lseek(fd, 0, SEEK_END);
    close(fd);
    return status;
}

lam_status lam_runlog_look(int *begun, const char *dir)
{
    char path[PATH_MAX];
    int64_t metrics, log;
    *begun = 0;
    LAM_TRY(lam_path_join(path, sizeof path, dir, lam_runlog_names[LAM_RECORD_METRICS]));
    LAM_TRY(look_at_file(&metrics, LAM_RECORD_METRICS, path));
    LAM_TRY(lam_path_join(path, sizeof path, dir, lam_runlog_names[LAM_RECORD_LOG]));
    LAM_TRY(look_at_file(&log, LAM_RECORD_LOG, path));
    *begun = metrics >= 0 || log > 0; /* a lock alone is no run */
    return LAM_OK;
}

int lam_runlog_events_name(const char *name)
{
    const size_t prefix = sizeof LAM_EVENTS_PREFIX - 1;
    if (strncmp(name, LAM_EVENTS_PREFIX, prefix) != 0)
        return 0;
    const size_t digits = strspn(name + prefix, "0123456789");
    return digits > 0 && name[prefix + digits] == '.' && !strchr(name, '/');
}

typedef lam_status event_visitor(const char *path);

static lam_status for_each_events(const char *dir, event_visitor *visit)
{
    char path[PATH_MAX];
    lam_status status = LAM_OK;
    DIR *const folder = opendir(dir);
    for (struct dirent *e; folder && status == LAM_OK && (e = readdir(folder));)
        if (strncmp(e->d_name, LAM_EVENTS_PREFIX, sizeof LAM_EVENTS_PREFIX - 1) == 0) {
            status = lam_path_join(path, sizeof path, dir, e->d_name);
            if (status == LAM_OK)
                status = visit(path);
        }
    if (folder)
        closedir(folder);
    return status;
}

static lam_status look_at_events(const char *path)
{
    int64_t size;
    return look_at_file(&size, LAM_RECORD_EVENTS, path);
}

/* A new run in an old folder: TensorBoard would join the old curves to the new ones. */
static lam_status remove_events(const char *path)
{
    LAM_TRY(look_at_events(path));
    return unlink(path) == 0 || errno == ENOENT
               ? LAM_OK
               : lam_fail(LAM_ERR_IO, "%s: cannot remove: %s", path, strerror(errno));
}

lam_status lam_runlog_look_at_events(const char *dir)
{
    return for_each_events(dir, look_at_events);
}

lam_status lam_runlog_remove_events(const char *dir)
{
    return for_each_events(dir, remove_events);
}
