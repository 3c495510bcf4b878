/* machine.h -- how much memory the machine has, and how much of it this process uses.
 *
 * Read from /proc and /sys on every call. What cannot be read imposes no limit: on a system without these
 * files the limit is unknown in advance. */
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
