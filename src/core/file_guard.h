/* file_guard.h -- the system calls behind atomic writing, each with a fault injection point
 * (lam_file_fault).
 *
 * Only for what writes files whole or not at all (file.c, dir.c, cli/packing.c). They return 0 or an errno value, so that a test can make any one of them fail and
 * inspect what is left on disk. */
#ifndef LAM_CORE_FILE_GUARD_H
#define LAM_CORE_FILE_GUARD_H

#include "core/status.h"

#include <stddef.h>

/* Creates a file beside `path` that nobody else has, and puts its name into `temporary`; names that a crash left are
 * skipped.  Returns its descriptor; -1: it could not, and errno says why. */
int lam_guard_open_beside(char *temporary, size_t size, const char *path, unsigned mode);
int lam_guard_write(int fd, const void *data, size_t size); /* all of it, however many pieces */
int lam_guard_fsync(int fd);
int lam_guard_fsync_path(const char *path); /* a file or a folder */
int lam_guard_rename(const char *from, const char *to);
int lam_guard_exchange(const char *a, const char *b); /* ENOSYS or EINVAL: the system cannot */

/* fsyncs the folder that holds `path`: only then is a rename durable. */
int lam_guard_fsync_parent(const char *path);

/* LAM_ERR_IO with "PATH: cannot DO: reason"; a full disk reads "no space left". */
lam_status lam_guard_fail(const char *path, const char *verb, int error);

#endif
