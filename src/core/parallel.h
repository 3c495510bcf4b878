/* parallel.h -- runs the same function on several threads. */
#ifndef LAM_CORE_PARALLEL_H
#define LAM_CORE_PARALLEL_H

#include "core/status.h"

enum { LAM_THREADS_MAX = 1024 };

typedef lam_status lam_worker(void *user, int i);

/* Calls work(user, i) for every i below n (at most LAM_THREADS_MAX), each on a thread of its own, the last one on this
 * thread; where the system has no more threads, later ones run here, too.  Of those that fail the lowest i counts: its
 * status and message become this thread's. */
lam_status lam_parallel(int n, lam_worker *work, void *user);

#endif
