/* packing.h -- files as compress and decompress treat them, in the manner of xz.
 *
 * A source is standard input or a regular file; links, files with several names and files with set-user-ID bits are
 * refused without --force.  A target appears under its name whole, with the mode, owner (where allowed) and times of its
 * source, and on disk before the source is removed. */
#ifndef LAM_CLI_PACKING_H
#define LAM_CLI_PACKING_H

#include "core/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define LAM_SUFFIX ".lmz"

typedef struct lam_source {
    int fd;
    const char *path; /* kept; "standard input" for "-" */
    bool standard;    /* standard input */
    struct stat info;
} lam_source;

/* `strict`: it will be removed, so that links and several names are refused. */
lam_status lam_source_open(lam_source *s, const char *path, bool strict);
/* Up to `room` bytes; *n is 0 at the end. */
lam_status lam_source_read(lam_source *s, void *bytes, size_t room, size_t *n);
/* Closes it; lam_source_remove() also removes the file, if it still is the one that was opened. */
void lam_source_close(lam_source *s);
lam_status lam_source_remove(lam_source *s);

typedef enum lam_target_kind {
    LAM_TARGET_FILE,
    LAM_TARGET_STDOUT,
    LAM_TARGET_NONE
} lam_target_kind;

typedef struct lam_target {
    lam_target_kind kind;
    int fd;
    bool force;
    uint64_t written;
    char path[PATH_MAX], temporary[PATH_MAX];
} lam_target;

/* `path` is not read for standard output and for none.  Without `force` an existing file is refused. */
lam_status lam_target_open(lam_target *t, lam_target_kind kind, const char *path, bool force);
/* A lam_byte_sink; `user` is the target. */
lam_status lam_target_write(void *user, const void *bytes, size_t n);
/* Gives a file mode and times of the source, then its name, and waits until both are on disk. */
lam_status lam_target_finish(lam_target *t, const lam_source *s);
/* Removes what was written, unless it was finished. */
void lam_target_abort(lam_target *t);

/* PATH.lmz.  LAM_ERR_IO where the path has that suffix already. */
lam_status lam_packed_name(char out[PATH_MAX], const char *path);
/* The other way; LAM_ERR_IO where it has no such suffix. */
lam_status lam_unpacked_name(char out[PATH_MAX], const char *path);

#endif
