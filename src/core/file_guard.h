/* file_guard.h -- the system calls behind atomic writing, each with a fault injection point
 * (lam_file_fault).
 *
 * Private to this folder. They return 0 or an errno value, so that a test can make any one of them fail and
 * inspect what is left on disk. */
#ifndef LAM_CORE_FILE_GUARD_H
#define LAM_CORE_FILE_GUARD_H

#include "core/status.h"

#include <stddef.h>

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
