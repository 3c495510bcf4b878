/* textplot.h -- curves in letters, for a terminal. */
#ifndef LAM_DRAW_TEXTPLOT_H
#define LAM_DRAW_TEXTPLOT_H

#include "draw/figure.h"

typedef struct lam_textplot {
    int width, height; /* in letters, all included; at least 40 x 8 */
    bool utf8;   /* braille dots, two by four in a letter; else one ASCII sign for each curve */
    bool colour; /* the terminal shows colours */
} lam_textplot;

void lam_figure_text(lam_text *out, const lam_figure *f, const lam_textplot *how);

#endif
