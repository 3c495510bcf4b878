/* png.h -- PNG from SVG, by librsvg where this machine has it.
 *
 * The library is opened at run time, as cuBLASLt is: nothing is needed to build, and one program serves
 * machines with and without it.  There is no second way to draw: without it only the PNG files are
 * missing. */
#ifndef LAM_REPORT_PNG_H
#define LAM_REPORT_PNG_H

#include "report/text.h"

enum { LAM_PNG_SCALE = 2 }; /* pixels per unit: 1440 across, enough for a slide */

/* NULL if PNGs can be drawn, else why not, in a few words. */
const char *lam_png_missing(void);

/* Appends the bytes of a PNG. */
lam_status lam_png_draw(lam_text *png, const lam_text *svg, double scale);

#endif
