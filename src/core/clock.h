/* clock.h -- monotonic time in seconds, for measuring durations. */
#ifndef LAM_CORE_CLOCK_H
#define LAM_CORE_CLOCK_H

/* Seconds of a monotonic clock with an arbitrary start. */
double lam_clock(void);

#endif
