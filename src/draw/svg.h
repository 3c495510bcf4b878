/* svg.h -- the one way a figure is drawn: in pages and as a file. */
#ifndef LAM_DRAW_SVG_H
#define LAM_DRAW_SVG_H

#include "draw/figure.h"

enum { LAM_SVG_WIDTH = 720 };

/* In a page the style sheet gives the colours (light, dark, print) and the title stands outside; a file carries its
 * title and the light colours with it. */
void lam_figure_svg(lam_text *out, const lam_figure *f, lam_use use);
double lam_figure_height(const lam_figure *f, lam_use use); /* in units of that width */

#endif
