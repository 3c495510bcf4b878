/* svg_heat.c -- a heat map with its scale of colours.
 *
 * Equal neighbours in a row become one rectangle, and all rectangles of a colour one path: a map of 12 layers and
 * 512 slots stays below 100 kB. */
#include "draw/svg_int.h"

#include "draw/palette.h"

#include <math.h>
#include <stdio.h>

enum { MOST_COLS = 360, BAR = 12, BAR_ROOM = 70, NUMBER_ROOM = 34 };

typedef struct heat {
    const lam_figure *f;
    lam_frame frame;
    lam_ruler z;
    int cols, merge; /* drawn columns, each the mean of `merge` */
    lam_use use;
} heat;

/* The shade of a drawn cell, or -1 for none. */
static int shade(const heat *h, int row, int col)
{
    double sum = 0;
    int n = 0;
    for (int j = col * h->merge; j < (col + 1) * h->merge && j < h->f->cols; j++) {
        const double v = h->f->z[(size_t)row * (size_t)h->f->cols + (size_t)j];
        if (lam_ruler_has(&h->z, v)) {
            sum += v;
            n++;
        }
    }
    if (n == 0)
        return -1;
    const double at = lam_ruler_at(&h->z, sum / n);
    return (int)fmin(fmax(floor(at * LAM_RAMP_STEPS), 0), LAM_RAMP_STEPS - 1);
}

/* In a page the style sheet has the colours, light and dark. */
static void fill(lam_text *out, const heat *h, int step)
{
    const lam_rgb c = lam_colour_ramp(LAM_THEME_LIGHT, (step + 0.5) / LAM_RAMP_STEPS);
    if (h->use == LAM_FOR_PAGE)
        lam_text_format(out, "style=\"fill:var(--h%d)\"", step);
    else
        lam_text_format(out, "fill=\"#%02x%02x%02x\"", c.r, c.g, c.b);
}

/* The cells of one shade, in units of columns and rows: short numbers, and neighbours share their edges. */
static void cells(lam_text *out, const heat *h, int step)
{
    bool any = false;
    for (int r = 0; r < h->f->rows; r++)
        for (int c = 0, end; c < h->cols; c = end) {
            const int here = shade(h, r, c);
            for (end = c + 1; end < h->cols && shade(h, r, end) == here;)
                end++;
            if (here != step)
                continue;
            if (!any) {
                lam_text_add(out, "<path ");
                fill(out, h, step);
                lam_text_add(out, " d=\"");
            }
            any = true;
            lam_text_format(out, "M%d %dh%dv1h-%d", c, r, end - c, end - c);
        }
    lam_text_add(out, any ? "\"/>" : "");
}

static void all_cells(lam_text *out, const heat *h)
{
    const lam_frame *b = &h->frame;
    lam_text_format(
        out,
        "<g shape-rendering=\"crispEdges\" transform=\"translate(%.2f %.2f) scale(%.6f %.6f)\">",
        b->left, b->top, (b->right - b->left) / h->cols, (b->bottom - b->top) / h->f->rows);
    for (int step = 0; step < LAM_RAMP_STEPS; step++)
        cells(out, h, step);
    lam_text_add(out, "</g>");
}

static void row_numbers(lam_text *out, const heat *h)
{
    const lam_figure *f = h->f;
    const double t = (h->frame.bottom - h->frame.top) / f->rows;
    const bool given = f->y.min != 0 || f->y.max != 0;
    const int stride = (int)fmax(1.0, ceil(LAM_SVG_LINE / t));
    for (int r = 0; r < f->rows; r += stride) {
        char number[32];
        const double at = f->rows > 1 ? r / (f->rows - 1.0) : 0;
        snprintf(number, sizeof number, "%.4g", given ? f->y.min + at * (f->y.max - f->y.min) : r);
        lam_svg_text(out, h->frame.left - 8, h->frame.top + (r + 0.5) * t + 4.5, LAM_ANCHOR_END,
                     "tick", number, 150);
    }
    if (f->y.label)
        lam_svg_text(out, 14, h->frame.top - 14, LAM_ANCHOR_START, "label", f->y.label, 300);
}

/* An ordinary axis through the middles of the columns. */
static void column_numbers(lam_text *out, const heat *h)
{
    const lam_figure *f = h->f;
    lam_ticks ticks;
    const bool given = f->x.min != 0 || f->x.max != 0;
    const double first = given ? f->x.min : 0, last = given ? f->x.max : f->cols - 1;
    const double half = f->cols > 1 ? 0.5 * (last - first) / (f->cols - 1) : 0.5;
    lam_frame frame = h->frame;
    frame.x = (lam_ruler){.low = first - half, .high = last + half};
    if (first > last) /* falling, as distances to the left do: mirrored */
        frame = (lam_frame){h->frame.right,
                            h->frame.left,
                            h->frame.top,
                            h->frame.bottom,
                            {.low = last + half, .high = first - half},
                            h->frame.y};
    lam_ticks_make(&ticks, &frame.x, f->cols < 7 ? f->cols : 7);
    lam_svg_x_axis(out, f, &frame, &ticks);
}

static void colour_bar(lam_text *out, const heat *h)
{
    const lam_frame *b = &h->frame;
    const double x = b->right + 16, t = (b->bottom - b->top) / LAM_RAMP_STEPS;
    for (int i = 0; i < LAM_RAMP_STEPS; i++) {
        lam_text_add(out, "<rect ");
        fill(out, h, i);
        lam_text_format(out, " x=\"%.1f\" y=\"%.2f\" width=\"%d\" height=\"%.2f\"/>", x,
                        b->bottom - (i + 1) * t, BAR, t + 0.3);
    }
    lam_ticks ticks;
    lam_ticks_make(&ticks, &h->z, 5);
    for (int i = 0; i < ticks.n; i++)
        lam_svg_text(out, x + BAR + 6,
                     b->bottom - lam_ruler_at(&h->z, ticks.at[i]) * (b->bottom - b->top) + 4.5,
                     LAM_ANCHOR_START, "tick", ticks.text[i], 999);
    if (h->f->z_label)
        lam_svg_text(out, LAM_SVG_WIDTH - 14, b->top - 14, LAM_ANCHOR_END, "label", h->f->z_label,
                     320);
}

static void ruler(heat *h)
{
    const lam_figure *f = h->f;
    h->z = lam_ruler_empty(f->z_scale);
    for (size_t i = 0; i < (size_t)f->rows * (size_t)f->cols; i++)
        lam_ruler_hold(&h->z, f->z[i]);
    lam_ruler_resolve(&h->z, &(lam_axis){.min = f->z_min, .max = f->z_max}, 0);
}

void lam_svg_heat(lam_text *out, const lam_figure *f, lam_frame frame, lam_use use)
{
    if (f->rows <= 0 || f->cols <= 0)
        return;
    heat h = {.f = f, .frame = frame, .use = use, .merge = (f->cols + MOST_COLS - 1) / MOST_COLS};
    h.cols = (f->cols + h.merge - 1) / h.merge;
    h.frame.left += NUMBER_ROOM;
    h.frame.right -= BAR_ROOM;
    ruler(&h);
    lam_svg_frame(out, &h.frame);
    all_cells(out, &h);
    row_numbers(out, &h);
    column_numbers(out, &h);
    colour_bar(out, &h);
}
