/* clock.h -- seconds, to measure how long something takes. */
#ifndef LAM_CORE_CLOCK_H
#define LAM_CORE_CLOCK_H

/* Seconds of a clock that only goes forward; where it begins means nothing. */
double lam_clock(void);

#endif
