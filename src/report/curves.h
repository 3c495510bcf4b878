/* curves.h -- the series of one figure while it is being made: room for the numbers, and who owns them. */
#ifndef LAM_REPORT_CURVES_H
#define LAM_REPORT_CURVES_H

#include "report/figure.h"

enum { LAM_CURVES = 24 };

typedef struct lam_curves {
    int n;
    lam_series list[LAM_CURVES];
    double *room[LAM_CURVES]; /* owned */
} lam_curves;                 /* begins as zeros */

/* The numbers of one series, to be filled in. */
typedef struct lam_points {
    double *x, *y, *low, *high; /* [n]; low and high NULL without a band */
} lam_points;

typedef enum lam_band { LAM_NO_BAND, LAM_BAND } lam_band;

/* Adds a series of n points; `name` is kept.  LAM_ERR_MEMORY, or more than LAM_CURVES: LAM_ERR_ARG. */
lam_status lam_curves_add(lam_curves *c, lam_points *out, const char *name, int n, lam_band band);
void lam_curves_free(lam_curves *c);
/* Point k, with a band of one error on both sides. */
void lam_points_put(lam_points *c, int k, double x, double y, double error);

#endif
