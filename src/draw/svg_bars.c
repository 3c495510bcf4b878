/* svg_bars.c -- bars from zero, side by side in groups, each with its number where there is room. */
#include "draw/svg_int.h"

#include <math.h>
#include <stdio.h>

static int groups_of(const lam_figure *f)
{
    int n = 0;
    for (int k = 0; k < f->n_series; k++)
        n = f->series[k].n > n ? f->series[k].n : n;
    return n;
}

static void ruler(const lam_figure *f, lam_frame *frame)
{
    frame->y = lam_ruler_empty(LAM_SCALE_LINEAR);
    lam_ruler_hold(&frame->y, 0);
    for (int k = 0; k < f->n_series; k++)
        for (int i = 0; i < f->series[k].n; i++) {
            lam_ruler_hold(&frame->y, f->series[k].y[i]);
            if (f->series[k].high)
                lam_ruler_hold(&frame->y, f->series[k].high[i]);
            if (f->series[k].low)
                lam_ruler_hold(&frame->y, f->series[k].low[i]);
        }
    lam_ruler_resolve(&frame->y, &f->y, 0.08);
}

static void bar(lam_text *out, const lam_figure *f, const lam_frame *frame, const double box[2],
                int k, int i)
{
    const lam_series *s = &f->series[k];
    const double v = s->y[i];
    if (!isfinite(v))
        return;
    const double zero = lam_frame_y(frame, 0), end = lam_frame_y(frame, v),
                 middle = (box[0] + box[1]) / 2;
    lam_text_format(
        out, "<rect class=\"bar f%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
        lam_figure_colour(f, k), box[0], fmin(zero, end), box[1] - box[0], fabs(zero - end));
    double top = fmin(zero, end);
    if (s->low && s->high && isfinite(s->low[i]) && isfinite(s->high[i])) {
        top = fmin(top, lam_frame_y(frame, s->high[i]));
        lam_text_format(out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>", middle,
                        lam_frame_y(frame, s->low[i]), lam_frame_y(frame, s->high[i]));
    }
    char number[32];
    snprintf(number, sizeof number, "%.3g", v);
    if (lam_svg_width(number) < box[1] - box[0] + 4)
        lam_svg_text(out, middle, (v < 0 ? fmax(zero, end) + 14 : top - 5), LAM_ANCHOR_MIDDLE,
                     "tick", number, 999);
}

static void group_name(lam_text *out, const lam_figure *f, const lam_frame *frame, int i,
                       double width)
{
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    const char *name = f->x.names ? f->x.names[i] : number;
    lam_svg_text(out, frame->left + (i + 0.5) * width, frame->bottom + 19, LAM_ANCHOR_MIDDLE,
                 "tick", name, width - 4);
}

/* The names of the colours, at the right of the row in which the y axis is named. */
static void key(lam_text *out, const lam_figure *f, const lam_frame *frame)
{
    const double y = frame->top - 14;
    double x = frame->right + 18;
    for (int k = 0; k < f->n_series; k++)
        x -= 36 + lam_svg_width(f->series[k].name);
    for (int k = 0; k < f->n_series; k++) {
        lam_text_format(
            out, "<rect class=\"bar f%d\" x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\"/>",
            lam_figure_colour(f, k), x, y - 10);
        lam_svg_text(out, x + 16, y, LAM_ANCHOR_START, "tick", f->series[k].name, 999);
        x += 36 + lam_svg_width(f->series[k].name);
    }
}

void lam_svg_bars(lam_text *out, const lam_figure *f, lam_frame frame)
{
    const int groups = groups_of(f);
    const bool several = f->n_series > 1;
    lam_ticks y, none = {0};
    ruler(f, &frame);
    lam_ticks_make(&y, &frame.y, 6);
    frame.left = lam_svg_margin(&y);
    frame.x = (lam_ruler){.low = 0, .high = groups > 0 ? groups : 1};
    lam_svg_frame(out, &frame);
    lam_svg_y_axis(out, f, &frame, &y);
    const double width = (frame.right - frame.left) / (groups > 0 ? groups : 1);
    const double gap = fmin(0.25 * width, 30), one = (width - gap) / (several ? f->n_series : 1);
    for (int i = 0; i < groups; i++) {
        const double start = frame.left + i * width + gap / 2;
        for (int k = 0; k < f->n_series; k++) {
            const double left = start + k * one;
            if (i < f->series[k].n)
                bar(out, f, &frame, (double[2]){left, left + fmax(one - 1, 0.5)}, k, i);
        }
        group_name(out, f, &frame, i, width);
    }
    lam_svg_x_axis(out, f, &frame, &none);
    if (several)
        key(out, f, &frame);
}
