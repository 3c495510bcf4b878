/* text.c -- see text.h. */
#include "draw/text.h"

#include "core/file.h"
#include "data/utf8.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lam_text_free(lam_text *t)
{
    free(t->data);
    *t = (lam_text){0};
}

lam_status lam_text_status(const lam_text *t, const char *label)
{
    if (!t->failed)
        return LAM_OK;
    if (t->room >= LAM_TEXT_MOST)
        return lam_fail(LAM_ERR_ARG, "%s: longer than %d MiB", label, LAM_TEXT_MOST >> 20);
    return lam_fail(LAM_ERR_MEMORY, "%s: no memory after %zu bytes", label, t->size);
}

/* Room for `size` more bytes and a NUL. */
static bool grow(lam_text *t, size_t size)
{
    if (t->failed)
        return false;
    size_t room = t->room ? t->room : 1024;
    while (room < LAM_TEXT_MOST && room - t->size <= size)
        room *= 2;
    char *const grown = room == t->room ? t->data : realloc(t->data, room);
    if (grown) {
        t->data = grown;
        t->room = room;
    }
    t->failed = !grown || room - t->size <= size;
    return !t->failed;
}

void lam_text_bytes(lam_text *t, const void *data, size_t size)
{
    if (!grow(t, size))
        return;
    if (size > 0)
        memcpy(t->data + t->size, data, size);
    t->size += size;
    t->data[t->size] = '\0';
}

void lam_text_add(lam_text *t, const char *plain)
{
    lam_text_bytes(t, plain, strlen(plain));
}

void lam_text_format(lam_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !grow(t, (size_t)length))
        return;
    va_start(args, format);
    vsnprintf(t->data + t->size, t->room - t->size, format, args);
    va_end(args);
    t->size += (size_t)length;
}

/* Walks over any bytes: the length of the character at s, and in *codepoint its number, or -1 for a byte
 * that belongs to no character. */
static size_t next_character(const char *s, size_t size, int32_t *codepoint)
{
    const int length = lam_utf8_decode((const unsigned char *)s, size, codepoint);
    if (length > 0)
        return (size_t)length;
    *codepoint = -1;
    return 1;
}

/* Controls are not to be seen, and the C1 ones not allowed in HTML. */
static bool is_control(int32_t c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0);
}

void lam_text_html_bytes(lam_text *t, const char *s, size_t size)
{
    int32_t c;
    for (size_t i = 0, step; i < size; i += step) {
        step = next_character(s + i, size - i, &c);
        if (c == '&')
            lam_text_add(t, "&amp;");
        else if (c == '<')
            lam_text_add(t, "&lt;");
        else if (c == '>')
            lam_text_add(t, "&gt;");
        else if (c == '"')
            lam_text_add(t, "&quot;");
        else if (c < 0 || is_control(c) || c == 0xfffe || c == 0xffff)
            for (size_t k = 0; k < step; k++)
                lam_text_format(t, "\\x%02x", (unsigned char)s[i + k]);
        else
            lam_text_bytes(t, s + i, step);
    }
}

void lam_text_html(lam_text *t, const char *s)
{
    lam_text_html_bytes(t, s, strlen(s));
}

char *lam_text_plain(char *out, size_t size, const char *s)
{
    static const char more[] = "\xe2\x80\xa6";
    const size_t all = strlen(s);
    size_t used = 0, safe = 0; /* safe: the sign that it goes on still fits behind it */
    for (size_t i = 0, step; i < all; i += step) {
        char piece[20];
        int32_t c;
        step = next_character(s + i, all - i, &c);
        if (c < 0 || is_control(c) || c == '\n' || c == '\t')
            for (size_t k = 0; k < step; k++)
                snprintf(piece + 4 * k, sizeof piece - 4 * k, "\\x%02x", (unsigned char)s[i + k]);
        else
            snprintf(piece, sizeof piece, "%.*s", (int)step, s + i);
        if (used + strlen(piece) + 1 > size) {
            memcpy(out + safe, more, sizeof more);
            return out;
        }
        memcpy(out + used, piece, strlen(piece));
        used += strlen(piece);
        safe = used + sizeof more <= size ? used : safe;
    }
    out[used] = '\0';
    return out;
}

void lam_text_json_bytes(lam_text *t, const char *s, size_t size)
{
    int32_t c;
    lam_text_add(t, "\"");
    for (size_t i = 0, step; i < size; i += step) {
        step = next_character(s + i, size - i, &c);
        if (c < 0)
            lam_text_format(t, "\\\\x%02x", (unsigned char)s[i]);
        else if (c == '"' || c == '\\')
            lam_text_format(t, "\\%c", (char)c);
        else if (c == '\n')
            lam_text_add(t, "\\n");
        else if (c < 0x20 || is_control(c) || c == '<' || c == '>' || c == '&' || c == 0x2028 ||
                 c == 0x2029)
            lam_text_format(t, "\\u%04x", (unsigned)c);
        else
            lam_text_bytes(t, s + i, step);
    }
    lam_text_add(t, "\"");
}

void lam_text_json(lam_text *t, const char *s)
{
    lam_text_json_bytes(t, s, strlen(s));
}

/* "-0.5", "4", "1e-06"; not "-1+2", "0x10" or "inf". */
static bool is_number(const char *s)
{
    char *end;
    if (*s == '\0' || s[strspn(s, "+-.0123456789eE")] != '\0')
        return false;
    strtod(s, &end);
    return *end == '\0';
}

/* Would a spreadsheet compute a field with this beginning?  Some take the wide forms of these signs too. */
static bool begins_formula(const char *s)
{
    int32_t c;
    next_character(s, strlen(s), &c);
    return (c == '=' || c == '+' || c == '-' || c == '@' || c == '\t' || c == '\n' || c == 0xff1d ||
            c == 0xff0b || c == 0xff0d || c == 0xff20) &&
           !is_number(s);
}

void lam_text_csv(lam_text *t, const char *s)
{
    const size_t size = strlen(s);
    const bool quoted = s[strcspn(s, ",;\"\t\n")] != '\0'; /* some programs cut at ; and tabs */
    int32_t c;
    lam_text_add(t, quoted ? "\"" : "");
    lam_text_add(t, size > 0 && begins_formula(s) ? "'" : "");
    for (size_t i = 0, step; i < size; i += step) {
        step = next_character(s + i, size - i, &c);
        if (c == '"')
            lam_text_add(t, "\"\"");
        else if (c < 0 || is_control(c))
            for (size_t k = 0; k < step; k++)
                lam_text_format(t, "\\x%02x", (unsigned char)s[i + k]);
        else
            lam_text_bytes(t, s + i, step);
    }
    lam_text_add(t, quoted ? "\"" : "");
}

void lam_text_number(lam_text *t, double v, int digits, const char *none)
{
    if (!isfinite(v)) {
        lam_text_add(t, none);
        return;
    }
    char text[40];
    if (digits == 0 && fabs(v) < 1e15 &&
        v == (double)(int64_t)v) { /* steps: many, and soon written */
        lam_text_format(t, "%lld", (long long)v);
        return;
    }
    snprintf(text, sizeof text, "%.*g", digits > 0 ? digits : 15, v == 0 ? 0.0 : v); /* no "-0" */
    if (digits == 0 && strtod(text, NULL) != v)
        snprintf(text, sizeof text, "%.17g", v);
    lam_text_add(t, text);
}

bool lam_id_valid(const char *id)
{
    const size_t length = strlen(id);
    return length > 0 && length <= 100 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

static lam_status save(const char *dir, const char *id, const char *extension, const lam_text *text)
{
    char path[PATH_MAX], name[128];
    assert(lam_id_valid(id));
    snprintf(name, sizeof name, "%s.%s", id, extension);
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    LAM_TRY(lam_text_status(text, path));
    LAM_TRY(lam_dir_make(dir));
    return lam_file_save(path, text->data, text->size);
}

lam_status lam_text_save(const char *dir, const char *id, const char *extension, lam_text *text)
{
    const lam_status status = save(dir, id, extension, text);
    lam_text_free(text);
    return status;
}
