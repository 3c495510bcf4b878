/* clock.h -- monotonic time in seconds, for measuring durations. */
#ifndef LAM_CORE_CLOCK_H
#define LAM_CORE_CLOCK_H

/* Seconds of a clock that only goes forward; where it begins means nothing. */
double lam_clock(void);

#endif
