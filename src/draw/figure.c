/* figure.c -- see figure.h: the colours of series, and their numbers while a figure is made. */
#include "draw/figure.h"

#include "draw/palette.h"

#include <stdlib.h>

int lam_figure_colour(const lam_figure *f, int series)
{
    const int own = f->series[series].colour, last = f->n_series - 1;
    if (f->ordered)
        return LAM_COLOURS + (last > 0 ? (series * (LAM_COLOURS - 1) + last / 2) / last : 0);
    return (own > 0 ? own - 1 : series) % LAM_COLOURS;
}

lam_status lam_curves_add(lam_curves *c, lam_points *out, const char *name, int n, lam_band band)
{
    const size_t count = (size_t)n;
    *out = (lam_points){0};
    if (c->n == LAM_CURVES)
        return lam_fail(LAM_ERR_ARG, "a figure has at most %d curves", LAM_CURVES);
    double *room = calloc(4 * count + 1, sizeof *room);
    if (!room)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a curve of %d points", n);
    *out = (lam_points){.x = room, .y = room + count};
    if (band == LAM_BAND) {
        out->low = room + 2 * count;
        out->high = room + 3 * count;
    }
    c->room[c->n] = room;
    c->list[c->n++] = (lam_series){
        .name = name, .n = n, .x = out->x, .y = out->y, .low = out->low, .high = out->high};
    return LAM_OK;
}

void lam_curves_free(lam_curves *c)
{
    for (int i = 0; i < c->n; i++)
        free(c->room[i]);
    *c = (lam_curves){0};
}

void lam_points_put(lam_points *c, int k, double x, double y, double error)
{
    c->x[k] = x;
    c->y[k] = y;
    c->low[k] = y - error;
    c->high[k] = y + error;
}
