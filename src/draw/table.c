/* table.c -- see table.h. */
#include "draw/table.h"

#include "core/printable.h"
#include "data/utf8.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const lam_cell *cell_of(const lam_table *t, int row, int col)
{
    return &t->cells[(size_t)row * (size_t)t->cols + (size_t)col];
}

/* "1234567.5" -> "1,234,567.5", in place. */
static void group_thousands(char *text, size_t size)
{
    const size_t start = text[0] == '-', digits = strspn(text + start, "0123456789");
    for (size_t left = digits; left > 3; left -= 3) {
        char *const at = text + start + left - 3;
        if (strlen(text) + 2 > size)
            return;
        memmove(at + 1, at, strlen(at) + 1);
        *at = ',';
    }
}

char *lam_count_shown(char *out, size_t size, int64_t n)
{
    snprintf(out, size, "%lld", (long long)n);
    group_thousands(out, size);
    return out;
}

char *lam_cell_shown(char *out, size_t size, const lam_table *t, int row, int col)
{
    const lam_cell *c = cell_of(t, row, col);
    if (c->text) {
        lam_printable(out, size, c->text); /* it may come from a file of somebody else */
    } else if (!isfinite(c->number)) {
        out[0] = '\0';
    } else {
        snprintf(out, size, "%.*f", t->columns[col].decimals, c->number);
        group_thousands(out, size);
    }
    return out;
}

/* ---- for a terminal ---- */

static void padded(lam_text *out, const char *s, int width, bool right)
{
    const int pad = width - lam_utf8_count(s);
    lam_text_format(out, "%*s", right && pad > 0 ? pad : 0, "");
    lam_text_add(out, s);
    lam_text_format(out, "%*s", !right && pad > 0 ? pad : 0, "");
}

/* What stands in a line of the text: names of columns, what is under them, or a row. */
enum { NAMES = -2, NOTES = -1 };
static const char *shown_in(char *shown, size_t size, const lam_table *t, int line, int col)
{
    const lam_column *c = &t->columns[col];
    return line == NAMES   ? c->name
           : line == NOTES ? (c->note ? c->note : "")
                           : lam_cell_shown(shown, size, t, line, col);
}

static int width_of(const lam_table *t, int col)
{
    char shown[256];
    int width = 0;
    for (int line = NAMES; line < t->rows; line++) {
        const int w = lam_utf8_count(shown_in(shown, sizeof shown, t, line, col));
        width = w > width ? w : width;
    }
    return width;
}

/* Numbers stand at the right, texts and the names of rows at the left. */
static bool at_the_right(const lam_table *t, int col)
{
    for (int r = 0; r < t->rows; r++)
        if (cell_of(t, r, col)->text)
            return false;
    return col > 0;
}

/* The first column and [from, end). */
static void block(lam_text *out, const lam_table *t, int from, int end)
{
    char shown[256];
    bool notes = t->columns[0].note != NULL;
    for (int col = from; col < end; col++)
        notes |= t->columns[col].note != NULL;
    for (int line = NAMES; line < t->rows; line++) {
        if (line == NOTES && !notes)
            continue;
        for (int col = 0; col < end; col = col == 0 ? from : col + 1) {
            lam_text_add(out, col > 0 ? "  " : "");
            padded(out, shown_in(shown, sizeof shown, t, line, col), width_of(t, col),
                   at_the_right(t, col));
        }
        while (out->size > 0 && out->data[out->size - 1] == ' ')
            out->data[--out->size] = '\0';
        lam_text_add(out, "\n");
    }
}

void lam_table_within(lam_text *out, const lam_table *t, int width)
{
    int from = 1;
    do {
        int end = from, used = width_of(t, 0);
        while (end < t->cols && (end == from || used + 2 + width_of(t, end) <= width))
            used += 2 + width_of(t, end++);
        lam_text_add(out, from > 1 ? "\n" : "");
        block(out, t, from, end);
        from = end;
    } while (from < t->cols);
}

void lam_table_text(lam_text *out, const lam_table *t)
{
    lam_table_within(out, t, INT_MAX);
}

void lam_table_markdown(lam_text *out, const lam_table *t)
{
    char shown[256];
    for (int row = -1; row < t->rows; row++) {
        for (int col = 0; col < t->cols; col++) {
            lam_text_add(out, col > 0 ? " | " : "| ");
            for (const char *s = row < 0 ? t->columns[col].name
                                         : lam_cell_shown(shown, sizeof shown, t, row, col);
                 *s; s++)
                lam_text_format(out, *s == '|' ? "\\%c" : "%c", *s);
        }
        lam_text_add(out, " |\n");
        for (int col = 0; col < t->cols && row < 0; col++)
            lam_text_add(out, col > 0 ? "---:|" : "|---|");
        lam_text_add(out, row < 0 ? "\n" : "");
    }
}

/* ---- for a page ---- */

static void header_html(lam_text *out, const lam_table *t)
{
    lam_text_add(out, "<thead><tr>");
    for (int c = 0; c < t->cols; c++) {
        const bool number = t->rows > 0 && !cell_of(t, 0, c)->text;
        if (t->columns[c].error)
            continue;
        const bool brief = lam_utf8_count(t->columns[c].name) <= 16; /* then in one line */
        lam_text_format(out, "<th scope=\"col\"%s>",
                        !number ? ""
                        : brief ? " class=\"right brief\""
                                : " class=\"right\"");
        lam_text_html(out, t->columns[c].name);
        if (t->columns[c].note) {
            lam_text_add(out, "<small>");
            lam_text_html(out, t->columns[c].note);
            lam_text_add(out, "</small>");
        }
        lam_text_add(out, "</th>");
    }
    lam_text_add(out, "</tr></thead>");
}

void lam_table_html(lam_text *out, const lam_table *t)
{
    char shown[4096];
    lam_text_add(out, "<table>");
    header_html(out, t);
    lam_text_add(out, "<tbody>");
    for (int r = 0; r < t->rows; r++) {
        lam_text_add(out, "<tr>");
        for (int c = 0; c < t->cols; c++) {
            const char *tag = c == 0 ? "th" : "td";
            if (t->columns[c].error)
                continue;
            lam_text_format(out, "<%s%s%s>", tag, c == 0 ? " scope=\"row\"" : "",
                            cell_of(t, r, c)->text ? "" : " class=\"number\"");
            lam_text_html(out, lam_cell_shown(shown, sizeof shown, t, r, c));
            if (c + 1 < t->cols && t->columns[c + 1].error &&
                isfinite(cell_of(t, r, c + 1)->number))
                lam_text_format(out, " \xc2\xb1 %s",
                                lam_cell_shown(shown, sizeof shown, t, r, c + 1));
            lam_text_format(out, "</%s>", tag);
        }
        lam_text_add(out, "</tr>");
    }
    lam_text_add(out, "</tbody></table>");
}

/* ---- for other programs ---- */

void lam_table_csv(lam_text *out, const lam_table *t)
{
    for (int r = -1; r < t->rows; r++) {
        for (int c = 0; c < t->cols; c++) {
            const lam_cell *cell = r < 0 ? NULL : cell_of(t, r, c);
            lam_text_add(out, c > 0 ? "," : "");
            if (!cell || cell->text)
                lam_text_csv(out, cell ? cell->text : t->columns[c].name);
            else
                lam_text_number(out, cell->number, 0, "");
        }
        lam_text_add(out, "\n");
    }
}

void lam_table_json(lam_text *out, const lam_table *t)
{
    lam_text_add(out, "[");
    for (int r = 0; r < t->rows; r++) {
        lam_text_add(out, r > 0 ? ",{" : "{");
        for (int c = 0; c < t->cols; c++) {
            const lam_cell *cell = cell_of(t, r, c);
            lam_text_add(out, c > 0 ? "," : "");
            lam_text_json(out, t->columns[c].name);
            lam_text_add(out, ":");
            if (cell->text)
                lam_text_json(out, cell->text);
            else
                lam_text_number(out, cell->number, 0, "null");
        }
        lam_text_add(out, "}");
    }
    lam_text_add(out, "]");
}

lam_status lam_table_save(const lam_table *t, const char *dir)
{
    lam_text csv = {0}, json = {0};
    lam_table_csv(&csv, t);
    LAM_TRY(lam_text_save(dir, t->id, "csv", &csv));
    lam_table_json(&json, t);
    return lam_text_save(dir, t->id, "json", &json);
}
