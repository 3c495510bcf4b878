/* figure_json.c -- a whole figure as JSON: a file for other programs, or the data of a page. */
#include "report/figure.h"

#include "report/thin.h"

#include <limits.h>

enum { PAGE_DIGITS = 6, PAGE_CELL_DIGITS = 4, PAGE_POINTS = 2000, PAGE_POINTS_ALL = 8000 };

static int most_points(const lam_figure *f, lam_use use)
{
    return use == LAM_FOR_PAGE ? lam_thin_share(f, PAGE_POINTS, PAGE_POINTS_ALL) : INT_MAX;
}

static void axis_json(lam_text *out, const char *name, const lam_axis *axis, int n)
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
    if (axis->names) {
        lam_text_add(out, ",\"names\":");
        for (int i = 0; i < n; i++) {
            lam_text_add(out, i ? "," : "[");
            lam_text_json(out, axis->names[i]);
        }
        lam_text_add(out, n > 0 ? "]" : "[]");
    }
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
    lam_text_format(out, ",\"rows\":%d,\"cols\":%d,\"ramp\":\"%s\",\"z_label\":", f->rows, f->cols,
                    f->ramp == LAM_RAMP_DIVERGING ? "diverging" : "sequential");
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
    static const char *const kinds[] = {"lines", "bars", "heat"};
    lam_text series = {0}; /* first, since the number of names is that of the longest one */
    const int n = f->kind == LAM_FIGURE_HEAT ? 0 : series_json(&series, f, use);
    lam_text_add(out, "{\"id\":");
    lam_text_json(out, f->id);
    lam_text_add(out, ",\"title\":");
    lam_text_json(out, f->title);
    lam_text_add(out, ",\"finding\":");
    lam_text_json(out, f->finding ? f->finding : "");
    lam_text_add(out, ",\"caption\":");
    lam_text_json(out, f->caption ? f->caption : "");
    lam_text_format(out, ",\"kind\":\"%s\"", kinds[f->kind]);
    if (n > most_points(f, use))
        lam_text_add(out, ",\"thinned\":true");
    axis_json(out, "x", &f->x, f->kind == LAM_FIGURE_HEAT ? f->cols : n);
    axis_json(out, "y", &f->y, f->kind == LAM_FIGURE_HEAT ? f->rows : 0);
    if (f->kind == LAM_FIGURE_HEAT)
        heat_json(out, f, use);
    else
        lam_text_bytes(out, series.data, series.size);
    out->failed |= series.failed;
    lam_text_add(out, "}");
    lam_text_free(&series);
}
