/* machine.h -- how much memory there is, and how much of it this process has.
 *
 * Read from /proc and /sys each time it is asked.  What cannot be read does not limit: a system without
 * them has no limit that could be known in advance. */
#ifndef LAM_CORE_MACHINE_H
#define LAM_CORE_MACHINE_H

#include <stddef.h>

/* Bytes that this process could still allocate: MemAvailable, or what its control groups (memory.max, or
 * memory.limit_in_bytes) or RLIMIT_AS leave, whichever is least; SIZE_MAX where nothing is known.  `root` is put
 * before /proc and /sys: "" except in tests. */
size_t lam_machine_left(const char *root);

/* Bytes of memory this process has that no file backs. */
size_t lam_machine_used(void);

#endif
