/* palette.c -- see palette.h.  The series colours start from Okabe and Ito's, moved in lightness until
 * they can be read as text. */
#include "draw/palette.h"

#include <math.h>
#include <stdlib.h>

static const lam_rgb paints[LAM_THEMES][LAM_PAINTS] = {
    {{255, 255, 255}, {27, 31, 36}, {87, 96, 106}, {140, 149, 159}, {229, 232, 236}},
    {{20, 23, 28}, {230, 233, 237}, {157, 167, 179}, {110, 118, 129}, {45, 51, 59}},
};

static const lam_rgb series[LAM_THEMES][LAM_COLOURS_ALL] = {
    {{0, 99, 166},
     {184, 77, 0},
     {0, 117, 84},
     {158, 59, 120},
     {124, 92, 0},
     {11, 113, 143},
     {90, 79, 168},
     {80, 80, 80},
     {58, 15, 92},
     {66, 52, 140},
     {36, 86, 160},
     {0, 112, 150},
     {0, 124, 116},
     {42, 126, 62},
     {118, 116, 0},
     {178, 96, 0}},
    {{92, 179, 240},
     {245, 140, 70},
     {48, 200, 155},
     {232, 146, 196},
     {224, 192, 64},
     {94, 210, 224},
     {176, 166, 250},
     {180, 184, 190},
     {158, 124, 232},
     {136, 152, 246},
     {104, 180, 242},
     {82, 200, 216},
     {84, 210, 166},
     {142, 212, 112},
     {206, 208, 82},
     {250, 192, 70}},
};

/* Nine knots; straight lines between them. */
static const lam_rgb ramp[LAM_THEMES][9] = {
    {{250, 249, 232},
     {224, 236, 201},
     {178, 217, 187},
     {125, 193, 187},
     {79, 163, 185},
     {47, 130, 175},
     {35, 96, 155},
     {31, 62, 122},
     {24, 30, 78}},
    {{30, 34, 48},
     {32, 50, 84},
     {34, 72, 120},
     {36, 98, 146},
     {48, 126, 160},
     {78, 156, 168},
     {124, 186, 172},
     {182, 214, 180},
     {244, 240, 204}},
};

/* The strongest ground of a token on either side; weaker ones lie between it and the page. */
static const lam_rgb strongest[LAM_THEMES][2] = {
    {{247, 150, 84}, {112, 178, 226}},
    {{150, 68, 16}, {20, 92, 150}},
};

lam_rgb lam_colour_paint(lam_theme theme, lam_paint paint)
{
    return paints[theme][paint];
}

lam_rgb lam_colour_series(lam_theme theme, int i)
{
    return series[theme][i % LAM_COLOURS_ALL];
}

static lam_rgb between(lam_rgb a, lam_rgb b, double at)
{
    return (lam_rgb){(unsigned char)lround(a.r + at * (b.r - a.r)),
                     (unsigned char)lround(a.g + at * (b.g - a.g)),
                     (unsigned char)lround(a.b + at * (b.b - a.b))};
}

lam_rgb lam_colour_ramp(lam_theme theme, double at)
{
    const lam_rgb *knots = ramp[theme];
    const double place = 8 * fmin(fmax(at, 0), 1);
    const int knot = place >= 8 ? 7 : (int)place;
    return between(knots[knot], knots[knot + 1], place - knot);
}

lam_rgb lam_colour_token(lam_theme theme, int step)
{
    const double at = abs(step) / (double)LAM_TOKEN_STEPS;
    return between(paints[theme][LAM_PAINT_GROUND], strongest[theme][step < 0], at);
}

static void property(lam_text *out, const char *name, int i, lam_rgb c)
{
    lam_text_format(out, "--%s", name);
    if (i >= 0)
        lam_text_format(out, "%d", i);
    lam_text_format(out, ":#%02x%02x%02x;", c.r, c.g, c.b);
}

void lam_palette_css(lam_text *out, lam_theme theme)
{
    static const char *const names[LAM_PAINTS] = {"ground", "ink", "soft", "line", "grid"};
    for (int i = 0; i < LAM_PAINTS; i++)
        property(out, names[i], -1, paints[theme][i]);
    for (int i = 0; i < LAM_COLOURS_ALL; i++)
        property(out, "s", i, series[theme][i]);
    for (int i = 1; i <= LAM_TOKEN_STEPS; i++) {
        property(out, "t", i, lam_colour_token(theme, i));
        property(out, "u", i, lam_colour_token(theme, -i));
    }
    for (int i = 0; i < LAM_RAMP_STEPS; i++)
        property(out, "h", i, lam_colour_ramp(theme, (i + 0.5) / LAM_RAMP_STEPS));
}

void lam_palette_sheet(lam_text *out)
{
    lam_text_add(out, ":root{");
    lam_palette_css(out, LAM_THEME_LIGHT);
    lam_text_add(out, "}\n@media screen{:root.dark{");
    lam_palette_css(out, LAM_THEME_DARK);
    lam_text_add(out, "}}\n@media screen and (prefers-color-scheme:dark){:root:not(.light){");
    lam_palette_css(out, LAM_THEME_DARK); /* for readers without scripts */
    lam_text_add(out, "}}");
}
