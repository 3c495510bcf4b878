/* cpus.c -- see cpus.h. */
#include "core/cpus.h"

#include <errno.h>
#include <sched.h>

enum { FIRST = 1024, LAST = 1 << 20 }; /* CPUs a set has room for */

/* Of a set for `room` CPUs; 0: the system may have more, -1: it does not tell. */
static int count_in(int room)
{
    cpu_set_t *const set = CPU_ALLOC((size_t)room);
    const size_t size = CPU_ALLOC_SIZE((size_t)room);
    int n = -1;
    if (!set)
        return -1;
    CPU_ZERO_S(size, set);
    if (sched_getaffinity(0, size, set) == 0)
        n = CPU_COUNT_S(size, set);
    else if (errno == EINVAL)
        n = 0;
    CPU_FREE(set);
    return n;
}

int lam_cpus(void)
{
    int n = 0;
    for (int room = FIRST; n == 0 && room <= LAST; room *= 2)
        n = count_in(room);
    return n > 0 ? n : 1;
}
