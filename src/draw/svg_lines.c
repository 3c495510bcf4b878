/* svg_lines.c -- curves with their names at their ends, where the eye arrives. */
#include "draw/svg_int.h"
#include "draw/thin.h"

#include <math.h>
#include <stdio.h>

enum { DOTS = 40, POINTS = 1200, POINTS_ALL = 6000, NAMES = 18, NAME_ROOM = 170 };

typedef struct end_name {
    int series;
    double x, end, y; /* where the curve ends; where its name stands */
} end_name;

static bool drawn(const lam_frame *frame, const lam_series *s, int i)
{
    return lam_ruler_has(&frame->x, s->x[i]) && lam_ruler_has(&frame->y, s->y[i]);
}

/* ... and not cut off? */
static bool seen(const lam_figure *f, const lam_frame *frame, const lam_series *s, int i)
{
    return drawn(frame, s, i) && (!f->y.cut || s->y[i] <= frame->y.high);
}

static void rulers(const lam_figure *f, lam_frame *frame)
{
    frame->x = lam_ruler_empty(f->x.scale);
    frame->y = lam_ruler_empty(f->y.scale);
    for (int k = 0; k < f->n_series; k++) {
        const lam_series *s = &f->series[k];
        for (int i = 0; i < s->n; i++) {
            if (!drawn(frame, s, i))
                continue;
            lam_ruler_hold(&frame->x, s->x[i]);
            lam_ruler_hold(&frame->y, s->y[i]);
            if (s->low && s->high) {
                lam_ruler_hold(&frame->y, s->low[i]);
                lam_ruler_hold(&frame->y, s->high[i]);
            }
        }
    }
    lam_ruler_resolve(&frame->x, &f->x, 0);
    lam_ruler_resolve(&frame->y, &f->y, 0.04);
}

static double inside(const lam_frame *frame, double v)
{
    return fmin(fmax(lam_frame_y(frame, v), frame->top), frame->bottom);
}

static void curve(lam_text *out, const lam_figure *f, const lam_frame *frame, int k)
{
    const lam_series *s = &f->series[k];
    const int colour = lam_figure_colour(f, k);
    lam_text_format(out, "<path class=\"line s%d%s%s\" d=\"", colour, s->dashed ? " dash" : "",
                    lam_series_rough(s) ? " thin" : "");
    bool pen = false;
    int i;
    lam_thin thin = lam_thin_begin(s, lam_thin_share(f, POINTS, POINTS_ALL));
    while ((i = lam_thin_next(&thin)) >= 0) {
        const bool now = seen(f, frame, s, i);
        if (now)
            lam_text_format(out, "%c%.1f %.1f", pen ? 'L' : 'M', lam_frame_x(frame, s->x[i]),
                            inside(frame, s->y[i]));
        pen = now;
    }
    lam_text_add(out, "\"/>");
    if (s->n > DOTS || (s->dashed && s->n > 1))
        return;
    lam_text_format(out, "<path class=\"dots s%d\" d=\"", colour);
    for (i = 0; i < s->n; i++)
        if (seen(f, frame, s, i))
            lam_text_format(out, "M%.1f %.1fh0", lam_frame_x(frame, s->x[i]),
                            inside(frame, s->y[i]));
    lam_text_add(out, "\"/>");
}

static bool has_band(const lam_frame *frame, const lam_series *s, int i)
{
    return drawn(frame, s, i) && lam_ruler_has(&frame->y, s->low[i]) &&
           lam_ruler_has(&frame->y, s->high[i]);
}

/* Forth along the upper edge of each stretch without gaps, back along the lower one; of many points every
 * n-th. */
static void band(lam_text *out, const lam_figure *f, const lam_frame *frame, int k)
{
    const lam_series *s = &f->series[k];
    const int most = lam_thin_share(f, POINTS, POINTS_ALL), stride = (s->n + most - 1) / most;
    lam_text_format(out, "<path class=\"band f%d\" d=\"", lam_figure_colour(f, k));
    for (int i = 0, end; i < s->n; i = end + stride) {
        for (end = i; end < s->n && has_band(frame, s, end);)
            end += stride;
        for (int j = i; j < end; j += stride)
            lam_text_format(out, "%c%.1f %.1f", j == i ? 'M' : 'L', lam_frame_x(frame, s->x[j]),
                            inside(frame, s->high[j]));
        for (int j = end - stride; j >= i; j -= stride)
            lam_text_format(out, "L%.1f %.1f", lam_frame_x(frame, s->x[j]),
                            inside(frame, s->low[j]));
        lam_text_add(out, end > i ? "Z" : "");
    }
    lam_text_add(out, "\"/>");
}

/* Names where their curves end, from top to bottom; an order keeps it, from the top down. */
static int find_names(end_name names[NAMES], const lam_figure *f, const lam_frame *frame)
{
    int n = 0;
    for (int k = 0; k < f->n_series && n < NAMES; k++) {
        const lam_series *s = &f->series[k];
        int last = s->n - 1;
        while (last >= 0 && !drawn(frame, s, last))
            last--;
        if (last < 0)
            continue;
        const double end = inside(frame, s->y[last]);
        const end_name here = {k, lam_frame_x(frame, s->x[last]), end,
                               f->ordered ? frame->top : end};
        int at = n++;
        for (; at > 0 && names[at - 1].y > here.y && !f->ordered; at--)
            names[at] = names[at - 1];
        names[at] = here;
    }
    return n;
}

/* Moves overlapping neighbours apart, each by half, until all have room; then back into the frame, which has
 * room for NAMES. */
static void push_apart(end_name *names, int n, const lam_frame *frame)
{
    for (int round = 0; round < 100; round++)
        for (int i = 1; i < n; i++) {
            const double missing = LAM_SVG_LINE - (names[i].y - names[i - 1].y);
            names[i - 1].y -= fmax(0, missing / 2);
            names[i].y += fmax(0, missing / 2);
        }
    double limit = frame->bottom;
    for (int i = n - 1; i >= 0; i--, limit = fmin(limit, names[i + 1].y) - LAM_SVG_LINE)
        names[i].y = fmin(names[i].y, limit);
    limit = frame->top;
    for (int i = 0; i < n; limit = names[i++].y + LAM_SVG_LINE)
        names[i].y = fmax(names[i].y, limit);
}

/* From a curve that ends early to its name. */
static void lead(lam_text *out, const lam_frame *frame, const end_name *name, int colour)
{
    if (frame->right - name->x > 8)
        lam_text_format(out, "<path class=\"lead s%d\" d=\"M%.1f %.1fH%.1fL%.1f %.1f\"/>", colour,
                        name->x + 6, name->end, fmax(frame->right - 8, name->x + 6),
                        frame->right + 6, name->y);
}

static void end_names(lam_text *out, const lam_figure *f, const lam_frame *frame)
{
    end_name names[NAMES];
    const int n = find_names(names, f, frame);
    push_apart(names, n, frame);
    for (int i = 0; i < n; i++) {
        const int colour = lam_figure_colour(f, names[i].series);
        char class[16];
        snprintf(class, sizeof class, "name f%d", colour);
        if (!f->ordered)
            lead(out, frame, &names[i], colour);
        lam_svg_text(out, frame->right + 8, names[i].y + 4.5, LAM_ANCHOR_START, class,
                     f->series[names[i].series].name, NAME_ROOM);
    }
}

void lam_svg_lines(lam_text *out, const lam_figure *f, lam_frame frame)
{
    lam_ticks x, y;
    double names = 0;
    rulers(f, &frame);
    lam_ticks_make(&y, &frame.y, 6);
    frame.left = lam_svg_margin(&y);
    for (int k = 0; k < f->n_series; k++)
        names = fmax(names, fmin(1.06 * lam_svg_width(f->series[k].name), NAME_ROOM));
    frame.right -= names + 6;
    const lam_series *first = f->series;
    if (!f->x.at_points || f->n_series == 0 || f->x.scale == LAM_SCALE_LOG ||
        !lam_ticks_at(&x, first->x, first->n))
        lam_ticks_make(&x, &frame.x, 7);

    lam_svg_frame(out, &frame);
    lam_svg_y_axis(out, f, &frame, &y);
    lam_svg_x_axis(out, f, &frame, &x);
    for (int k = 0; k < f->n_series; k++)
        if (f->series[k].low && f->series[k].high)
            band(out, f, &frame, k);
    for (int k = f->n_series - 1; k >= 0; k--) /* the first on top */
        curve(out, f, &frame, k);
    end_names(out, f, &frame);
}
