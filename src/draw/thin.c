/* thin.c -- see thin.h. */
#include "draw/thin.h"

#include <math.h>

enum { FEWEST = 200 }; /* below, curves would lose their shape */
enum { LONG = 400 };   /* about as many points as a figure has room for */

bool lam_series_rough(const lam_series *s)
{
    int turns = 0;
    for (int i = 2; i < s->n; i++)
        turns += (s->y[i] - s->y[i - 1]) * (s->y[i - 1] - s->y[i - 2]) < 0;
    return s->n > LONG && turns > s->n / 4;
}

int lam_thin_share(const lam_figure *f, int each, int all)
{
    int columns = 0; /* a band is another pair of curves */
    for (int k = 0; k < f->n_series; k++)
        columns += f->series[k].low && f->series[k].high ? 2 : 1;
    const int share = all / (columns > 0 ? columns : 1);
    return share > each ? each : share < FEWEST ? FEWEST : share;
}

lam_thin lam_thin_begin(const lam_series *s, int most)
{
    const int stretch = s->n > most ? (int)((2LL * s->n + most - 1) / most) : 1;
    return (lam_thin){.series = s, .stretch = stretch, .pending = -1};
}

int lam_thin_next(lam_thin *t)
{
    const lam_series *s = t->series;
    if (t->pending >= 0) {
        const int i = t->pending;
        t->pending = -1;
        return i;
    }
    if (t->at >= s->n)
        return -1;
    const int first = t->at, end = s->n - first > t->stretch ? first + t->stretch : s->n;
    if (t->stretch == 1 || first == 0 || first == s->n - 1) {
        t->at = first + 1;
        return first;
    }
    int least = first, greatest = first;
    t->at = end == s->n ? end - 1 : end; /* the last point stands for itself */
    for (int i = first; i < t->at; i++) {
        if (!isfinite(s->y[i])) { /* a gap: the stretch ends with it */
            t->at = i + 1;
            if (i == first)
                return i;
            t->at = i;
            break;
        }
        least = s->y[i] < s->y[least] ? i : least;
        greatest = s->y[i] > s->y[greatest] ? i : greatest;
    }
    if (least == greatest)
        return least;
    t->pending = least < greatest ? greatest : least;
    return least < greatest ? least : greatest;
}
