/* palette.h -- the few colours of every figure and page.
 *
 * Curves have eight colours that stay apart for colour-blind eyes, and eight more from dark to light for
 * curves that are an order themselves (layers), so that none of these looks like a model.  Both are in a dark tint for
 * white paper and a light one for dark screens; each is readable as text on its ground (contrast 4.5,
 * tested).  Heat maps run through one ramp whose lightness changes evenly, away from the ground. */
#ifndef LAM_DRAW_PALETTE_H
#define LAM_DRAW_PALETTE_H

#include "draw/figure.h"

enum { LAM_COLOURS = 8, LAM_COLOURS_ALL = 16, LAM_RAMP_STEPS = 32, LAM_TOKEN_STEPS = 8 };

typedef enum lam_theme { LAM_THEME_LIGHT, LAM_THEME_DARK, LAM_THEMES } lam_theme;

typedef struct lam_rgb {
    unsigned char r, g, b;
} lam_rgb;

typedef enum lam_paint {
    LAM_PAINT_GROUND, /* behind everything */
    LAM_PAINT_INK,    /* text */
    LAM_PAINT_SOFT,   /* captions, numbers of axes */
    LAM_PAINT_LINE,   /* axes, borders */
    LAM_PAINT_GRID,
    LAM_PAINTS
} lam_paint;

lam_rgb lam_colour_paint(lam_theme theme, lam_paint paint);
lam_rgb lam_colour_series(lam_theme theme, int i);   /* 0 to 7 apart, 8 to 15 in order */
lam_rgb lam_colour_ramp(lam_theme theme, double at); /* of heat maps; 0 <= at <= 1 */
/* Behind a token, step 0 (nothing) to 8 (strongest), negative for the other side; the ink stays
 * readable on it. */
lam_rgb lam_colour_token(lam_theme theme, int step);

/* The same as custom properties (--ground, --s0 ... --t8, --u8, --h0 ... --h31) for a style sheet. */
void lam_palette_css(lam_text *out, lam_theme theme);
/* A style sheet of them: light, and on screens dark where the system or the class `dark` of the root says so. */
void lam_palette_sheet(lam_text *out);

#endif
