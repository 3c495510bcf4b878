/* textplot.c -- see textplot.h.  A letter of braille holds 2 x 4 dots; the last curve to touch a letter gives it
 * its colour. */
#include "draw/textplot.h"

#include "data/utf8.h"
#include "draw/ruler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 20, GUTTER_MOST = 12, BRAILLE = 0x2800 };

static const char signs[] = "*o+x#@%&"; /* of curves, where there are no dots */

typedef struct canvas {
    const lam_figure *f;
    const lam_textplot *how;
    int cols, rows, gutter, names; /* the plot itself; numbers at its left, names at its right */
    lam_ruler x, y;
    lam_ticks xt, yt;
    unsigned char *dots;   /* [rows][cols]: braille dots, or 1 */
    signed char *owner;    /* [rows][cols]: series, or -1 */
    signed char *label_of; /* [rows]: series named beside this row, or -1 */
} canvas;

static size_t at(const canvas *c, int row, int col)
{
    return (size_t)row * (size_t)c->cols + (size_t)col;
}

/* ---- drawing ---- */

/* u, v: 0 to 1 from left and from the top. */
static void dot(canvas *c, double u, double v, int series)
{
    static const unsigned char bits[4][2] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int x = (int)fmin(fmax(u, 0) * 2 * c->cols, 2 * c->cols - 1);
    const int y = (int)fmin(fmax(v, 0) * 4 * c->rows, 4 * c->rows - 1);
    const size_t cell = at(c, y / 4, x / 2);
    c->dots[cell] |= bits[y % 4][x % 2];
    c->owner[cell] = (signed char)series;
}

static void line(canvas *c, const double from[2], const double to[2], int series)
{
    const double steps = fmax(
        1, ceil(fmax(fabs(to[0] - from[0]) * 2 * c->cols, fabs(to[1] - from[1]) * 4 * c->rows)));
    for (double i = 0; i <= steps; i++)
        dot(c, from[0] + i / steps * (to[0] - from[0]), from[1] + i / steps * (to[1] - from[1]),
            series);
}

static bool place(const canvas *c, const lam_series *s, int i, double out[2])
{
    if (!lam_ruler_has(&c->x, s->x[i]) || !lam_ruler_has(&c->y, s->y[i]) ||
        (c->f->y.cut && s->y[i] > c->y.high))
        return false;
    out[0] = lam_ruler_at(&c->x, s->x[i]);
    out[1] = 1 - lam_ruler_at(&c->y, s->y[i]);
    return true;
}

static void curve(canvas *c, int k)
{
    const lam_series *s = &c->f->series[k];
    double before[2], here[2];
    bool pen = false;
    for (int i = 0; i < s->n; i++) {
        const bool now = place(c, s, i, here);
        if (now)
            line(c, pen ? before : here, here, k);
        memcpy(before, here, sizeof here);
        pen = now;
    }
    /* Its name beside the row where it ends, or the nearest free one. */
    if (!pen)
        return;
    const int row = (int)fmin(before[1] * c->rows, c->rows - 1);
    for (int d = 0; d < 2 * c->rows; d++) {
        const int r = row + (d % 2 ? -(d + 1) / 2 : d / 2);
        if (r >= 0 && r < c->rows && c->label_of[r] < 0) {
            c->label_of[r] = (signed char)k;
            return;
        }
    }
}

/* ---- writing ---- */

static void ink(lam_text *out, const canvas *c, int series)
{
    static const int codes[8] = {34, 33, 32, 35, 36, 31, 94, 37};
    if (c->how->colour && series >= 0)
        lam_text_format(out, "\033[%dm", codes[lam_figure_colour(c->f, series) % 8]);
    else if (c->how->colour)
        lam_text_add(out, "\033[0m");
}

static void cell(lam_text *out, const canvas *c, int row, int col)
{
    const size_t i = at(c, row, col);
    char utf8[LAM_UTF8_MAX + 1] = " ";
    if (c->owner[i] >= 0 && c->how->utf8)
        utf8[lam_utf8_encode(utf8, BRAILLE + c->dots[i])] = '\0';
    else if (c->owner[i] >= 0)
        utf8[0] = signs[c->owner[i] % 8];
    lam_text_add(out, utf8);
}

/* The number of the tick in this row, or nothing. */
static const char *row_number(const canvas *c, int row)
{
    for (int i = 0; i < c->yt.n; i++) {
        const int r = (int)fmin((1 - lam_ruler_at(&c->y, c->yt.at[i])) * c->rows, c->rows - 1);
        if (r == row && c->yt.text[i][0])
            return c->yt.text[i];
    }
    return "";
}

static void row_name(lam_text *out, const canvas *c, int row)
{
    const int k = c->label_of[row];
    if (k < 0)
        return;
    lam_text_add(out, " ");
    ink(out, c, k);
    if (!c->how->utf8)
        lam_text_format(out, "%c ", signs[k % 8]);
    const char *s = c->f->series[k].name;
    int32_t point;
    for (int n = 0; *s && n < NAME_MOST; n++) { /* nothing a terminal would obey */
        const int length = lam_utf8_decode((const unsigned char *)s, strlen(s), &point);
        const bool shown = length > 0 && point >= 0x20 && !(point >= 0x7f && point < 0xa0) &&
                           (c->how->utf8 || point < 0x7f);
        lam_text_bytes(out, shown ? s : "?", shown ? (size_t)length : 1);
        s += length > 0 ? length : 1;
    }
    ink(out, c, -1);
}

static void rows(lam_text *out, const canvas *c)
{
    for (int row = 0; row < c->rows; row++) {
        lam_text_format(out, "%*s %s", c->gutter, row_number(c, row),
                        c->how->utf8 ? "\xe2\x94\x82" : "|");
        int owner = -1;
        for (int col = 0; col < c->cols; col++) {
            const int now = c->owner[at(c, row, col)];
            if (now != owner && now >= 0)
                ink(out, c, now);
            owner = now >= 0 ? now : owner;
            cell(out, c, row, col);
        }
        ink(out, c, -1);
        row_name(out, c, row);
        while (out->size > 0 && out->data[out->size - 1] == ' ')
            out->data[--out->size] = '\0';
        lam_text_add(out, "\n");
    }
}

static void bottom(lam_text *out, const canvas *c)
{
    char numbers[512];
    const int width = c->cols + LAM_TICK_TEXT < 511 ? c->cols + LAM_TICK_TEXT : 511;
    lam_text_format(out, "%*s %s", c->gutter, "", c->how->utf8 ? "\xe2\x94\x94" : "+");
    for (int col = 0; col < c->cols; col++)
        lam_text_add(out, c->how->utf8 ? "\xe2\x94\x80" : "-");
    memset(numbers, ' ', sizeof numbers);
    int used = 0;
    for (int i = 0; i < c->xt.n; i++) {
        const int n = (int)strlen(c->xt.text[i]);
        const int start = (int)(lam_ruler_at(&c->x, c->xt.at[i]) * (c->cols - 1)) - n / 2;
        if (n > 0 && start >= used && start + n <= width) {
            memcpy(numbers + start, c->xt.text[i], (size_t)n);
            used = start + n + 1;
        }
    }
    numbers[used] = '\0';
    lam_text_format(out, "\n%*s  %s", c->gutter, "", numbers);
    while (out->size > 0 && out->data[out->size - 1] == ' ')
        out->data[--out->size] = '\0';
    lam_text_format(out, "  %s\n", c->f->x.label ? c->f->x.label : "");
}

/* ---- measuring ---- */

static void rulers(canvas *c)
{
    const lam_figure *f = c->f;
    c->x = lam_ruler_empty(f->x.scale);
    c->y = lam_ruler_empty(f->y.scale);
    for (int k = 0; k < f->n_series; k++)
        for (int i = 0; i < f->series[k].n; i++)
            if (lam_ruler_has(&c->x, f->series[k].x[i]) &&
                lam_ruler_has(&c->y, f->series[k].y[i])) {
                lam_ruler_hold(&c->x, f->series[k].x[i]);
                lam_ruler_hold(&c->y, f->series[k].y[i]);
            }
    lam_ruler_resolve(&c->x, &f->x, 0);
    lam_ruler_resolve(&c->y, &f->y, 0.02);
}

static void measure(canvas *c)
{
    rulers(c);
    c->rows = (c->how->height > 8 ? c->how->height : 8) - 3; /* title, axis, numbers */
    lam_ticks_make(&c->yt, &c->y, c->rows / 3 > 2 ? c->rows / 3 : 2);
    for (int i = 0; i < c->yt.n; i++)
        c->gutter =
            lam_utf8_count(c->yt.text[i]) > c->gutter ? lam_utf8_count(c->yt.text[i]) : c->gutter;
    for (int k = 0; k < c->f->n_series; k++) {
        const int n = lam_utf8_count(c->f->series[k].name) + (c->how->utf8 ? 1 : 3);
        c->names = n > c->names ? n : c->names;
    }
    c->names = c->names > NAME_MOST + 3 ? NAME_MOST + 3 : c->names;
    c->cols = (c->how->width > 40 ? c->how->width : 40) - c->gutter - 2 - c->names - 1;
    c->cols = c->cols > 480 ? 480 : c->cols < 10 ? 10 : c->cols;
    lam_ticks_make(&c->xt, &c->x, c->cols / 12 > 2 ? c->cols / 12 : 2);
}

void lam_figure_text(lam_text *out, const lam_figure *f, const lam_textplot *how)
{
    canvas c = {.f = f, .how = how};
    measure(&c);
    const size_t cells = (size_t)c.rows * (size_t)c.cols;
    c.dots = calloc(cells, 1);
    c.owner = malloc(cells);
    c.label_of = malloc((size_t)c.rows);
    if (c.dots && c.owner && c.label_of) {
        memset(c.owner, -1, cells);
        memset(c.label_of, -1, (size_t)c.rows);
        for (int k = (f->n_series < 100 ? f->n_series : 100) - 1; k >= 0;
             k--) /* the first on top */
            curve(&c, k);
        lam_text_format(out, "%s%s%s\n", f->title, f->y.label ? ", " : "",
                        f->y.label ? f->y.label : "");
        rows(out, &c);
        bottom(out, &c);
    } else {
        out->failed = true;
    }
    free(c.dots);
    free(c.owner);
    free(c.label_of);
}
