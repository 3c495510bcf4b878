/* cpus.h -- the number of CPUs this process may use. */
#ifndef LAM_CORE_CPUS_H
#define LAM_CORE_CPUS_H

/* CPUs this process may run on (taskset, containers), which may be fewer than there are; at least 1. */
int lam_cpus(void);

#endif
