/* ruler.h -- from numbers to places on an axis, and round numbers to write beside it. */
#ifndef LAM_DRAW_RULER_H
#define LAM_DRAW_RULER_H

#include "draw/figure.h"

enum { LAM_TICKS_MAX = 32, LAM_TICK_TEXT = 24 };

/* An axis with its ends known.  low < high always; on a log axis both are > 0. */
typedef struct lam_ruler {
    lam_scale scale;
    double low, high;
    bool whole; /* only whole numbers were held: there is no layer 1.5 to write beside the axis */
} lam_ruler;

/* Widens to hold v; values that cannot be on the axis are ignored.  Begin with lam_ruler_empty(). */
lam_ruler lam_ruler_empty(lam_scale scale);
void lam_ruler_hold(lam_ruler *r, double v);
/* The axis' own ends if it has any; else a margin around what is held (none at a zero end).  Nothing held,
 * or a single value, still gives a usable axis. */
void lam_ruler_resolve(lam_ruler *r, const lam_axis *axis, double margin);

bool lam_ruler_has(const lam_ruler *r, double v);  /* not too far out; positive on a log axis */
double lam_ruler_at(const lam_ruler *r, double v); /* 0 at low, 1 at high */

typedef struct lam_ticks {
    int n;
    double at[LAM_TICKS_MAX];
    char text[LAM_TICKS_MAX][LAM_TICK_TEXT]; /* "" for a mark without a number */
} lam_ticks;

/* Exactly these numbers, rising; false where they are too many or not all whole. */
bool lam_ticks_at(lam_ticks *out, const double *at, int n);
/* About `wanted` round numbers (1, 2, 5 times a power of ten) within the ruler, rising. */
void lam_ticks_make(lam_ticks *out, const lam_ruler *r, int wanted);

#endif
