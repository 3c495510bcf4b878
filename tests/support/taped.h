/* taped.h -- the cpu back-end, recording and playing work as a GPU does it (ops.h, repeat).
 *
 * Whoever gives work to repeat() promises that equal keys mean equal operations on equal addresses, and that
 * what differs is uploaded.  On this device a broken promise gives other numbers than on cpu. */
#ifndef TEST_TAPED_H
#define TEST_TAPED_H

#include "ops/ops.h"

extern const lam_ops lam_ops_taped;

/* How many times work was played since the program began. */
long taped_played(void);

#endif
