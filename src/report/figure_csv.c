/* figure_csv.c -- the numbers of a figure for a spreadsheet. */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

static double x_of(const lam_series *s, int i)
{
    return s->x ? s->x[i] : i;
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
                x = fmin(x, x_of(&f->series[k], next[k])); /* passes over NaN */
            }
        if (!left)
            return;
        if (f->x.names && isfinite(x))
            lam_text_csv(out, f->x.names[(int)x]);
        else
            lam_text_number(out, x, 0, "");
        for (int k = 0; k < f->n_series; k++) {
            const lam_series *s = &f->series[k];
            const bool here = next[k] < s->n && !(x_of(s, next[k]) > x);
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
    if (axis->names)
        lam_text_csv(out, axis->names[i]);
    else
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
