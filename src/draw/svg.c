/* svg.c -- title, axes and style; the kinds are in svg_lines.c and svg_heat.c. */
#include "draw/svg_int.h"

#include "data/utf8.h"
#include "draw/palette.h"

#include <math.h>
#include <string.h>

enum { HEIGHT = 380, TITLE = 30, TOP = 30, FOOT = 46, EDGE = 14, FINDING_LINES = 2 };

double lam_frame_x(const lam_frame *f, double v)
{
    return f->left + lam_ruler_at(&f->x, v) * (f->right - f->left);
}

double lam_frame_y(const lam_frame *f, double v)
{
    return f->bottom - lam_ruler_at(&f->y, v) * (f->bottom - f->top);
}

double lam_svg_width(const char *s)
{
    return 0.57 * LAM_SVG_FONT * lam_utf8_count(s);
}

/* Behind the first n letters. */
static const char *letters(const char *s, int n)
{
    for (; *s && (n > 0 || ((unsigned char)*s & 0xc0) == 0x80); s++)
        n -= ((unsigned char)*s & 0xc0) != 0x80;
    return s;
}

void lam_svg_text(lam_text *out, double x, double y, lam_anchor anchor, const char *class,
                  const char *s, double room)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    const int length = lam_utf8_count(s), fits = (int)fmax(room / (0.57 * LAM_SVG_FONT), 2) - 1;
    lam_text_format(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\"%s>", x, y, class,
                    anchors[anchor]);
    if (lam_svg_width(s) > room) {
        const char *tail = letters(s, length - 2 * fits / 5);
        lam_text_html_bytes(out, s, (size_t)(letters(s, fits - 2 * fits / 5) - s));
        lam_text_add(out, "\xe2\x80\xa6");
        s = tail;
    }
    lam_text_html(out, s);
    lam_text_add(out, "</text>");
}

void lam_svg_frame(lam_text *out, const lam_frame *f)
{
    lam_text_format(out,
                    "<rect class=\"frame\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                    "fill=\"none\" data-x=\"%.9g %.9g\"/>",
                    f->left, f->top, f->right - f->left, f->bottom - f->top, f->x.low, f->x.high);
}

double lam_svg_margin(const lam_ticks *y)
{
    double widest = 0;
    for (int i = 0; i < y->n; i++)
        widest = fmax(widest, lam_svg_width(y->text[i]));
    return EDGE + widest + 8;
}

void lam_svg_y_axis(lam_text *out, const lam_figure *f, const lam_frame *frame,
                    const lam_ticks *ticks)
{
    for (int i = 0; i < ticks->n; i++) {
        const double y = lam_frame_y(frame, ticks->at[i]);
        lam_text_format(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", frame->left, y,
                        frame->right);
        lam_svg_text(out, frame->left - 8, y + 4.5, LAM_ANCHOR_END, "tick", ticks->text[i], 999);
    }
    if (f->y.label) /* level, above the axis: a turned label is hard to read */
        lam_svg_text(out, EDGE, frame->top - 14, LAM_ANCHOR_START, "label", f->y.label,
                     frame->right - EDGE);
}

void lam_svg_x_axis(lam_text *out, const lam_figure *f, const lam_frame *frame,
                    const lam_ticks *ticks)
{
    lam_text_format(out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f", frame->left, frame->bottom,
                    frame->right);
    for (int i = 0; i < ticks->n; i++)
        lam_text_format(out, "M%.1f %.1fv5", lam_frame_x(frame, ticks->at[i]), frame->bottom);
    lam_text_add(out, "\"/>");
    for (int i = 0; i < ticks->n; i++)
        lam_svg_text(out, lam_frame_x(frame, ticks->at[i]), frame->bottom + 19, LAM_ANCHOR_MIDDLE,
                     "tick", ticks->text[i], 999);
    if (f->x.label)
        lam_svg_text(out, (frame->left + frame->right) / 2, frame->bottom + 39, LAM_ANCHOR_MIDDLE,
                     "label", f->x.label, frame->right - frame->left);
}

static void hex(lam_text *out, const char *before, lam_rgb c, const char *after)
{
    lam_text_format(out, "%s#%02x%02x%02x%s", before, c.r, c.g, c.b, after);
}

/* What the page says in its style sheet with custom properties, which a file cannot rely on. */
static void style(lam_text *out)
{
    const lam_theme theme = LAM_THEME_LIGHT;
    lam_text_format(out,
                    "<style>text{font:%dpx system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica "
                    "Neue\",Arial,\"DejaVu Sans\",sans-serif}",
                    LAM_SVG_FONT);
    hex(out, "text{fill:", lam_colour_paint(theme, LAM_PAINT_INK), "}");
    lam_text_add(out, ".title{font-size:16px;font-weight:600}.name{font-weight:600}");
    hex(out, ".tick,.label{fill:", lam_colour_paint(theme, LAM_PAINT_SOFT), "}");
    hex(out, ".grid{fill:none;stroke:", lam_colour_paint(theme, LAM_PAINT_GRID), "}");
    hex(out, ".axis{fill:none;stroke:", lam_colour_paint(theme, LAM_PAINT_LINE), "}");
    lam_text_add(out, ".line{fill:none;stroke-width:1.8;stroke-linejoin:round}"
                      ".dots{fill:none;stroke-width:5.5;stroke-linecap:round}"
                      ".thin{stroke-width:1.1}.lead{fill:none;stroke-dasharray:1 "
                      "3}.dash{stroke-dasharray:6 4}.band{stroke:none;fill-opacity:.16}");
    for (int i = 0; i < LAM_COLOURS_ALL; i++) {
        const lam_rgb c = lam_colour_series(theme, i);
        lam_text_format(out, ".s%d", i);
        hex(out, "{stroke:", c, "}");
        lam_text_format(out, ".f%d", i);
        hex(out, "{fill:", c, "}");
    }
    lam_text_add(out, "</style>");
}

/* Where the line that begins at s ends: before the last space that leaves it within the drawing. */
static size_t line_end(const char *s)
{
    const int fits = (int)((LAM_SVG_WIDTH - 2 * EDGE) / (0.53 * LAM_SVG_FONT)); /* plain letters */
    const size_t most = (size_t)(letters(s, fits) - s);
    size_t end = most;
    while (s[most] && end > 0 && s[end] != ' ')
        end--;
    return end > 0 ? end : most;
}

/* The finding in at most two lines, written where `out` is; returns how many. */
static int finding(lam_text *out, const lam_figure *f, double y)
{
    const char *s = f->finding ? f->finding : "";
    int lines = 0;
    while (*s && lines < FINDING_LINES) {
        const size_t size = line_end(s);
        if (out) {
            lam_text_format(out, "<text x=\"%d\" y=\"%.1f\" class=\"finding\">", EDGE,
                            y + lines * LAM_SVG_LINE);
            lam_text_html_bytes(out, s, size);
            lam_text_add(out,
                         s[size] && lines == FINDING_LINES - 1 ? "\xe2\x80\xa6</text>" : "</text>");
        }
        s += size + strspn(s + size, " ");
        lines++;
    }
    return lines;
}

/* Of what stands above the drawing: in a page that is not part of it. */
static double head_room(const lam_figure *f, lam_use use)
{
    const int lines = use == LAM_FOR_FILE ? finding(NULL, f, 0) : 0;
    return use == LAM_FOR_FILE ? TITLE + lines * LAM_SVG_LINE + (lines > 0 ? 6 : 0) : 0;
}

double lam_figure_height(const lam_figure *f, lam_use use)
{
    const double title = head_room(f, use);
    if (f->kind != LAM_FIGURE_HEAT)
        return HEIGHT + title;
    const double row = fmin(fmax(260.0 / (f->rows > 0 ? f->rows : 1), 14), 40);
    return TOP + title + fmin(row * f->rows, 900) + FOOT;
}

void lam_figure_svg(lam_text *out, const lam_figure *f, lam_use use)
{
    const double height = lam_figure_height(f, use), title = head_room(f, use);
    lam_text_format(
        out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" role=\"img\"",
        LAM_SVG_WIDTH, height);
    if (use == LAM_FOR_FILE)
        lam_text_format(out, " width=\"%d\" height=\"%.0f\"", LAM_SVG_WIDTH, height);
    lam_text_add(out, " aria-label=\"");
    lam_text_html(out, f->title);
    if (f->finding && *f->finding) {
        lam_text_add(out, ": ");
        lam_text_html(out, f->finding);
    }
    lam_text_add(out, "\">");
    if (use == LAM_FOR_FILE) {
        style(out);
        hex(out, "<rect width=\"100%\" height=\"100%\" fill=\"",
            lam_colour_paint(LAM_THEME_LIGHT, LAM_PAINT_GROUND), "\"/>");
        lam_svg_text(out, EDGE, 26, LAM_ANCHOR_START, "title", f->title, 0.8 * LAM_SVG_WIDTH);
        finding(out, f, 46);
    }
    lam_frame frame = {
        .left = EDGE, .right = LAM_SVG_WIDTH - EDGE, .top = TOP + title, .bottom = height - FOOT};
    if (f->kind == LAM_FIGURE_LINES)
        lam_svg_lines(out, f, frame);
    else
        lam_svg_heat(out, f, frame, use);
    lam_text_add(out, "</svg>");
}
