/* svg_int.h -- what both kinds of figures share when drawn. */
#ifndef LAM_DRAW_SVG_INT_H
#define LAM_DRAW_SVG_INT_H

#include "draw/ruler.h"
#include "draw/svg.h"

enum { LAM_SVG_FONT = 13, LAM_SVG_LINE = 16 }; /* size of letters, distance of lines */

/* The box inside the axes, and its two rulers. */
typedef struct lam_frame {
    double left, right, top, bottom;
    lam_ruler x, y;
} lam_frame;

double lam_frame_x(const lam_frame *f, double v);
double lam_frame_y(const lam_frame *f, double v);

/* About how wide `s` is when drawn. */
double lam_svg_width(const char *s);
/* Where a text stands with respect to its point. */
typedef enum lam_anchor { LAM_ANCHOR_START, LAM_ANCHOR_MIDDLE, LAM_ANCHOR_END } lam_anchor;
/* A text, with an ellipsis in it where it is wider than `room` (names often differ in their ends); `class` gives colour and weight. */
void lam_svg_text(lam_text *out, double x, double y, lam_anchor anchor, const char *class,
                  const char *s, double room);

/* An unseen rectangle by which the script of a page finds the plot, and the ends of its x axis. */
void lam_svg_frame(lam_text *out, const lam_frame *frame);

/* Room at the left for the numbers of the y axis, which lam_svg_y_axis() writes. */
double lam_svg_margin(const lam_ticks *y);
void lam_svg_y_axis(lam_text *out, const lam_figure *f, const lam_frame *frame,
                    const lam_ticks *ticks);
void lam_svg_x_axis(lam_text *out, const lam_figure *f, const lam_frame *frame,
                    const lam_ticks *ticks);

void lam_svg_lines(lam_text *out, const lam_figure *f, lam_frame frame);
void lam_svg_heat(lam_text *out, const lam_figure *f, lam_frame frame, lam_use use);

#endif
