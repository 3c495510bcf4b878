/* figure.c -- see figure.h: the colours of series, their numbers while a figure is made, and the files of a figure: CSV for
 * a spreadsheet, JSON for other programs and the script of a page. */
#include "draw/figure.h"

#include "draw/palette.h"
#include "draw/svg.h"
#include "draw/thin.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
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

/* ---- CSV ---- */

static void series_header(lam_text *out, const lam_figure *f)
{
    lam_text_csv(out, f->x.label ? f->x.label : "x");
    for (int k = 0; k < f->n_series; k++) {
        const lam_series *s = &f->series[k];
        lam_text_add(out, ",");
        lam_text_csv(out, s->name);
        for (int edge = 0; s->low && s->high && edge < 2; edge++) {
            char name[512];
            snprintf(name, sizeof name, "%s %s", s->name, edge == 0 ? "low" : "high");
            lam_text_add(out, ",");
            lam_text_csv(out, name);
        }
    }
    lam_text_add(out, "\n");
}

static void series_cells(lam_text *out, const lam_series *s, int i)
{
    const double *const columns[] = {s->y, s->low, s->high};
    for (int c = 0; c < (s->low && s->high ? 3 : 1); c++) {
        lam_text_add(out, ",");
        if (i >= 0)
            lam_text_number(out, columns[c][i], 0, "");
    }
}

/* Merges the rising x of all series: each row takes those whose next x is the least. */
static void series_csv(lam_text *out, const lam_figure *f, int *next)
{
    series_header(out, f);
    for (;;) {
        double x = INFINITY;
        bool left = false;
        for (int k = 0; k < f->n_series; k++)
            if (next[k] < f->series[k].n) {
                left = true;
                x = fmin(x, f->series[k].x[next[k]]); /* passes over NaN */
            }
        if (!left)
            return;
        lam_text_number(out, x, 0, "");
        for (int k = 0; k < f->n_series; k++) {
            const lam_series *s = &f->series[k];
            const bool here = next[k] < s->n && !(s->x[next[k]] > x);
            series_cells(out, s, here ? next[k]++ : -1);
        }
        lam_text_add(out, "\n");
    }
}

/* What stands beside row or column i of a heat map. */
static void place(lam_text *out, const lam_axis *axis, int i, int n)
{
    const bool given = axis->min != 0 || axis->max != 0;
    const double at = n > 1 ? i / (n - 1.0) : 0;
    lam_text_number(out, given ? axis->min + at * (axis->max - axis->min) : i, 12, "");
}

static void heat_csv(lam_text *out, const lam_figure *f)
{
    lam_text_csv(out, f->y.label ? f->y.label : "row");
    lam_text_add(out, ",");
    lam_text_csv(out, f->x.label ? f->x.label : "column");
    lam_text_add(out, ",");
    lam_text_csv(out, f->z_label ? f->z_label : "value");
    lam_text_add(out, "\n");
    for (int r = 0; r < f->rows; r++)
        for (int c = 0; c < f->cols; c++) {
            place(out, &f->y, r, f->rows);
            lam_text_add(out, ",");
            place(out, &f->x, c, f->cols);
            lam_text_add(out, ",");
            lam_text_number(out, f->z[(size_t)r * (size_t)f->cols + (size_t)c], 0, "");
            lam_text_add(out, "\n");
        }
}

void lam_figure_csv(lam_text *out, const lam_figure *f)
{
    if (f->kind == LAM_FIGURE_HEAT) {
        heat_csv(out, f);
        return;
    }
    int *next = calloc((size_t)f->n_series + 1, sizeof *next);
    if (next)
        series_csv(out, f, next);
    out->failed |= !next;
    free(next);
}

/* ---- JSON ---- */

enum { PAGE_DIGITS = 6, PAGE_CELL_DIGITS = 4, PAGE_POINTS = 2000, PAGE_POINTS_ALL = 8000 };

static int most_points(const lam_figure *f, lam_use use)
{
    return use == LAM_FOR_PAGE ? lam_thin_share(f, PAGE_POINTS, PAGE_POINTS_ALL) : INT_MAX;
}

static void axis_json(lam_text *out, const char *name, const lam_axis *axis)
{
    lam_text_format(out, ",\"%s\":{\"label\":", name);
    lam_text_json(out, axis->label ? axis->label : "");
    lam_text_format(out, ",\"scale\":\"%s\"", axis->scale == LAM_SCALE_LOG ? "log" : "linear");
    if (axis->min != 0 || axis->max != 0)
        lam_text_format(out, ",\"min\":%.12g,\"max\":%.12g", axis->min, axis->max);
    if (axis->cut)
        lam_text_add(out, ",\"cut\":true");
    if (axis->at_points)
        lam_text_add(out, ",\"at_points\":true");
    lam_text_add(out, "}");
}

/* The values of `v` at the points that `thin` keeps. */
static void numbers(lam_text *out, const char *name, const double *v, lam_thin thin, int digits)
{
    int i;
    bool first = true;
    if (!v)
        return;
    lam_text_format(out, ",\"%s\":[", name);
    for (; (i = lam_thin_next(&thin)) >= 0; first = false) {
        lam_text_add(out, first ? "" : ",");
        lam_text_number(out, v[i], digits, "null");
    }
    lam_text_add(out, "]");
}

static int series_json(lam_text *out, const lam_figure *f, lam_use use)
{
    const int digits = use == LAM_FOR_PAGE ? PAGE_DIGITS : 0;
    int longest = 0;
    if (f->ordered)
        lam_text_add(out, ",\"ordered\":true");
    lam_text_add(out, ",\"series\":[");
    for (int k = 0; k < f->n_series; k++) {
        const lam_series *s = &f->series[k];
        const lam_thin thin = lam_thin_begin(s, most_points(f, use));
        longest = s->n > longest ? s->n : longest;
        lam_text_add(out, k ? ",{\"name\":" : "{\"name\":");
        lam_text_json(out, s->name);
        lam_text_format(out, ",\"colour\":%d,\"dashed\":%s,\"rough\":%s", lam_figure_colour(f, k),
                        s->dashed ? "true" : "false", lam_series_rough(s) ? "true" : "false");
        numbers(out, "x", s->x, thin, digits);
        numbers(out, "y", s->y, thin, digits);
        numbers(out, "low", s->high ? s->low : NULL, thin, digits);
        numbers(out, "high", s->low ? s->high : NULL, thin, digits);
        lam_text_add(out, "}");
    }
    lam_text_add(out, "]");
    return longest;
}

static void heat_json(lam_text *out, const lam_figure *f, lam_use use)
{
    lam_text_format(out, ",\"rows\":%d,\"cols\":%d,\"ramp\":\"sequential\",\"z_label\":", f->rows,
                    f->cols);
    lam_text_json(out, f->z_label ? f->z_label : "");
    lam_text_add(out, ",\"z\":[");
    for (int r = 0; r < f->rows; r++) {
        lam_text_add(out, r ? ",[" : "[");
        for (int c = 0; c < f->cols; c++) {
            lam_text_add(out, c ? "," : "");
            lam_text_number(out, f->z[(size_t)r * (size_t)f->cols + (size_t)c],
                            use == LAM_FOR_PAGE ? PAGE_CELL_DIGITS : 0, "null");
        }
        lam_text_add(out, "]");
    }
    lam_text_add(out, "]");
}

void lam_figure_json(lam_text *out, const lam_figure *f, lam_use use)
{
    const bool heat = f->kind == LAM_FIGURE_HEAT;
    lam_text series = {0}; /* first, since the longest one says whether there are too many points */
    const int n = heat ? 0 : series_json(&series, f, use);
    lam_text_add(out, "{\"id\":");
    lam_text_json(out, f->id);
    lam_text_add(out, ",\"title\":");
    lam_text_json(out, f->title);
    lam_text_add(out, ",\"finding\":");
    lam_text_json(out, f->finding ? f->finding : "");
    lam_text_add(out, ",\"caption\":");
    lam_text_json(out, f->caption ? f->caption : "");
    lam_text_format(out, ",\"kind\":\"%s\"", heat ? "heat" : "lines");
    if (n > most_points(f, use))
        lam_text_add(out, ",\"thinned\":true");
    axis_json(out, "x", &f->x);
    axis_json(out, "y", &f->y);
    if (heat)
        heat_json(out, f, use);
    else
        lam_text_bytes(out, series.data, series.size);
    out->failed |= series.failed;
    lam_text_add(out, "}");
    lam_text_free(&series);
}

/* ---- files ---- */

lam_status lam_figure_save(const lam_figure *f, const char *dir)
{
    lam_text svg = {0}, csv = {0}, json = {0};
    lam_figure_svg(&svg, f, LAM_FOR_FILE);
    LAM_TRY(lam_text_save(dir, f->id, "svg", &svg));
    lam_figure_csv(&csv, f);
    LAM_TRY(lam_text_save(dir, f->id, "csv", &csv));
    lam_figure_json(&json, f, LAM_FOR_FILE);
    return lam_text_save(dir, f->id, "json", &json);
}
