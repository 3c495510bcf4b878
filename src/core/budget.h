/* budget.h -- checks that there is enough memory before anything large is allocated.
 *
 * A number in a file or an option can request more memory than exists, and an allocation that succeeds may
 * still kill the process when the memory is first used. Whoever is about to allocate therefore states the
 * number of bytes, computed from validated sizes, and is refused with both numbers if it exceeds what is
 * allowed: the limit (--max-memory) minus what the process already uses, or without a limit what the
 * machine has free (core/machine.h). */
#ifndef LAM_CORE_BUDGET_H
#define LAM_CORE_BUDGET_H

#include "core/status.h"

#include <stddef.h>

/* Sets the default limit in bytes for the whole process; 0, the initial value: the free memory of the machine.  Call
 * this before starting threads. */
void lam_budget_set(size_t limit);

/* The limit in effect: `limit`, or if that is 0, that of lam_budget_set(). */
size_t lam_budget_limit(size_t limit);

/* Bytes that may still be allocated under `limit`; 0: under that of lam_budget_set(). */
size_t lam_budget_left(size_t limit);

/* Smaller allocations are not checked: reading /proc would cost too much. */
enum { LAM_BUDGET_SMALL = 1 << 16 };

/* LAM_ERR_MEMORY "WHAT: needs 9.1 GB of memory, 3.0 GB available; ..." if `bytes` are more than `left`.
 * `limit`: the limit that the user has set and may raise; 0: the machine's. */
lam_status lam_budget_compare(const char *what, size_t bytes, size_t left, size_t limit);

/* Both together, for memory of the host: under the common limit, or under `limit`. */
lam_status lam_budget_ask(const char *what, size_t bytes);
lam_status lam_budget_ask_under(size_t limit, const char *what, size_t bytes);

/* 512 B, 1.5 kB, 100 MB; returns text. */
char *lam_format_size(char *text, size_t size, double bytes);

#endif
