/* thin.h -- fewer points that look the same: the least and the greatest of every stretch.
 *
 * A log of 100,000 steps has more points than a screen has columns.  Averaging would hide the spikes that
 * matter; keeping both extremes of each stretch draws the same picture. */
#ifndef LAM_DRAW_THIN_H
#define LAM_DRAW_THIN_H

#include "draw/figure.h"

/* Is it long, and going up and down all the time?  Then a thin line shows more of it. */
bool lam_series_rough(const lam_series *s);

/* for (lam_thin t = lam_thin_begin(s, 1000); (i = lam_thin_next(&t)) >= 0;) ...  rising indices, at most
 * about `most`; first and last always, gaps as gaps. */
typedef struct lam_thin {
    const lam_series *series;
    int stretch, at, pending;
} lam_thin;

/* How many points a series of this figure may have: `each`, fewer where all would have more than `all`. */
int lam_thin_share(const lam_figure *f, int each, int all);

lam_thin lam_thin_begin(const lam_series *s, int most);
int lam_thin_next(lam_thin *t); /* -1 at the end */

#endif
