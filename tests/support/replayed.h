/* replayed.h -- the cpu back-end, capturing and replaying work as a GPU does it (ops.h, repeat).
 *
 * Whoever gives work to repeat() promises that equal keys mean equal operations on equal addresses, and that
 * what differs is uploaded.  On this device a broken promise gives other numbers than on cpu. */
#ifndef TEST_REPLAYED_H
#define TEST_REPLAYED_H

#include "ops/ops.h"

extern const lam_ops lam_ops_replayed;

/* How many times work was replayed since the program began. */
long replayed_times(void);

#endif
