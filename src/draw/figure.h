/* figure.h -- what a figure shows, apart from how it is drawn.
 *
 * A figure is plain data that its maker fills in and lends for one call: to a page (draw/page.h), which
 * puts it among its sections, or to a folder, which gets it as SVG, CSV and JSON.  Everything a
 * reader needs is in it: title, caption, axis labels with units.  Numbers that are not finite are gaps. */
#ifndef LAM_DRAW_FIGURE_H
#define LAM_DRAW_FIGURE_H

#include "core/status.h"
#include "draw/text.h"

#include <stdbool.h>

typedef enum lam_scale { LAM_SCALE_LINEAR, LAM_SCALE_LOG } lam_scale;

typedef struct lam_axis {
    const char *label; /* "distance (tokens)" */
    lam_scale scale;   /* on a log axis values <= 0 are gaps */
    double min,
        max;  /* both 0: from the data.  Heat maps: value of the first and last column or row */
    bool cut; /* lines: what lies above max is not drawn */
    bool at_points; /* lines: numbers at the points of the first curve, if few */
} lam_axis;

/* One curve. */
typedef struct lam_series {
    const char *name;
    int n;
    const double *x, *y;      /* [n]; x rises */
    const double *low, *high; /* [n] a band around y (standard error, quartiles), or NULL */
    int colour;  /* 1...8 keeps a model's colour through all figures; 0: its place in the list */
    bool dashed; /* something compared with, such as the paper's values */
} lam_series;

typedef enum lam_figure_kind { LAM_FIGURE_LINES, LAM_FIGURE_HEAT } lam_figure_kind;

typedef struct lam_figure {
    const char *id; /* file name and anchor: a-z, 0-9, '-', '_' */
    const char *title;
    const char *finding; /* what it says, in a sentence with numbers; NULL or empty: nothing */
    const char *caption; /* what it shows and how it was measured; or NULL */
    lam_figure_kind kind;
    lam_axis x, y;

    /* lines */
    int n_series;
    const lam_series *series;
    bool ordered; /* they are an order (layers): colours from dark to light, whatever `colour` */

    /* heat map: z [rows][cols], row 0 on top */
    int rows, cols;
    const double *z;
    const char *z_label;
    lam_scale z_scale;
    double z_min, z_max; /* both 0: from the data */
} lam_figure;

/* The colour of a series: 0 to 7, or 8 to 15 in an order (draw/palette.h). */
int lam_figure_colour(const lam_figure *f, int series);

/* Writes DIR/ID.svg, .csv and .json; DIR is made. */
lam_status lam_figure_save(const lam_figure *f, const char *dir);

/* The same as text.  A file has every point in full precision; a page has six digits, and of long series the
 * points that can be seen (draw/thin.h). */
typedef enum lam_use { LAM_FOR_PAGE, LAM_FOR_FILE } lam_use;

/* Series as columns over the x of all of them; a heat map as one row per cell. */
void lam_figure_csv(lam_text *out, const lam_figure *f);
void lam_figure_json(lam_text *out, const lam_figure *f, lam_use use);

/* The series of one figure while it is being made: room for the numbers, and who owns them. */
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
