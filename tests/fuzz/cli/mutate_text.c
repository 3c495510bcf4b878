/* mutate_text.c -- damage that keeps JSON readable: other values, keys that come twice or are missing; lines.
 *
 * In a safetensors file the header is such text: eight bytes before it say how long it is, and mostly still do
 * afterwards.  Nothing here parses: a scan finds strings, numbers and where a value ends. */
#include "fuzz/cli/fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct span {
    size_t at, n;
} span;

enum { SPANS = 4096 };

typedef struct scan {
    span numbers[SPANS], strings[SPANS], keys[SPANS];
    int n_numbers, n_strings, n_keys;
} scan;

static size_t end_of_string(const blob *b, size_t at, size_t end)
{
    for (at++; at < end && b->p[at] != '"'; at++)
        at += b->p[at] == '\\';
    return at < end ? at + 1 : end;
}

static size_t end_of_value(const blob *b, size_t at, size_t end)
{
    int depth = 0;
    for (; at < end; at++) {
        const unsigned char c = b->p[at];
        if (c == '"')
            at = end_of_string(b, at, end) - 1;
        else if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth-- == 0)
            return at;
        else if (c == ',' && depth == 0)
            return at;
    }
    return end;
}

static void scan_text(scan *f, const blob *b, size_t at, size_t end)
{
    f->n_numbers = f->n_strings = f->n_keys = 0;
    while (at < end) {
        const unsigned char c = b->p[at];
        size_t next = at + 1;
        if (c == '"') {
            next = end_of_string(b, at, end);
            const int key = next < end &&
                            (b->p[next] == ':' ||
                             (b->p[next] == ' ' && b->p[next + 1 < end ? next + 1 : next] == ':'));
            if (key && f->n_keys < SPANS)
                f->keys[f->n_keys++] = (span){at, next - at};
            if (!key && f->n_strings < SPANS)
                f->strings[f->n_strings++] = (span){at, next - at};
        } else if (isdigit(c) || (c == '-' && at + 1 < end && isdigit(b->p[at + 1]))) {
            while (next < end && (isalnum(b->p[next]) || strchr("+-.", b->p[next])) && b->p[next])
                next++;
            if (f->n_numbers < SPANS)
                f->numbers[f->n_numbers++] = (span){at, next - at};
        }
        at = next;
    }
}

/* clang-format off */
static const char *const numbers[] = {
    "0", "1", "-1", "2", "3", "7", "127", "255", "256", "32767", "65535", "65536", "1000000", "16777216",
    "2147483647", "2147483648", "-2147483648", "4294967295", "4294967296", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
    "18446744073709551616", "1e30", "1e308", "1e999", "-1e308", "1e-308", "5e-324", "0.5", "-0.0", "1e-9",
    "0.9999999999999999", "1.0000001", "NaN", "Infinity", "-Infinity", "00", "0x10", "1e",
    "123456789012345678901234567890"};
static const char *const values[] = {
    "null", "true", "false", "\"\"", "[]", "{}", "[null]", "[[]]", "\"x\"", "\"-1\"", "[1e308,1e308]",
    "{\"a\":1}", "\"../outside/file\"", "\"/dev/zero\"", "\"..\"", "\"a/b\"", "\"\\u0000\"", "\"\\ud800\"",
    "\"(?:[a-zA-Z ]+)+\\\\d\"", "\"(?R)\"", "\"(((.{999}){99}){9})\"",
    "\"\xff\xfe\"", "\"a\\u0000b\"", "\"lamemo\"", "\"infinite\"", "\"compressive\"", "\"none\"", "\"xl\""};
/* clang-format on */

static const char *pick(rng *r, const char *const *list, size_t n)
{
    return list[rng_below(r, n)];
}
#define PICK(r, list) pick(r, list, sizeof(list) / sizeof *(list))

static void put(blob *b, span where, const char *text, story *s)
{
    tell(s, "%.*s -> %.40s", (int)(where.n < 40 ? where.n : 40), (const char *)b->p + where.at,
         text);
    blob_replace(b, where.at, where.n, text, strlen(text));
}

static void other_number(rng *r, blob *b, const scan *f, story *s)
{
    const span at = f->numbers[rng_below(r, (size_t)f->n_numbers)];
    if (rng_one_in(r, 3)) { /* near what it was */
        char text[64] = "";
        double value = 0;
        snprintf(text, sizeof text, "%.*s", (int)(at.n < 40 ? at.n : 40),
                 (const char *)b->p + at.at);
        sscanf(text, "%lf", &value);
        const double near[] = {value + 1, value - 1, 2 * value, value / 2, -value, 1000 * value};
        snprintf(text, sizeof text, "%.17g", near[rng_below(r, 6)]);
        put(b, at, text, s);
    } else {
        put(b, at, PICK(r, numbers), s);
    }
}

/* Brackets, deeper than a reader that calls itself should follow. */
static void nest(rng *r, blob *b, size_t at, size_t n, story *s)
{
    static char deep[200001];
    const size_t depth = (size_t)1 << (4 + rng_below(r, 13));
    const int object = rng_one_in(r, 3);
    for (size_t i = 0; i < depth; i++)
        memcpy(object ? deep + 5 * i % 200000 : deep + i, object ? "{\"a\":" : "[", object ? 5 : 1);
    blob_replace(b, at, n, deep, object && depth > 40000 ? 200000 : object ? 5 * depth : depth);
    tell(s, "%zu brackets at %zu", depth, at);
}

static void other_value(rng *r, blob *b, size_t end, const scan *f, story *s)
{
    const span key = f->keys[rng_below(r, (size_t)f->n_keys)];
    const size_t at = key.at + key.n + 1, stop = end_of_value(b, at, end);
    tell(s, "%.*s ", (int)(key.n < 40 ? key.n : 40), (const char *)b->p + key.at);
    if (rng_one_in(r, 10))
        nest(r, b, at, stop - at, s);
    else
        put(b, (span){at, stop - at}, rng_one_in(r, 2) ? PICK(r, values) : PICK(r, numbers), s);
}

static void without_key(blob *b, size_t end, span key, story *s)
{
    size_t stop = end_of_value(b, key.at + key.n + 1, end);
    size_t at = key.at;
    if (stop < end && b->p[stop] == ',')
        stop++;
    else
        while (at > 0 && (b->p[at - 1] == ' ' || b->p[at - 1] == '\n' || b->p[at - 1] == ','))
            at--;
    tell(s, "without %.*s", (int)(key.n < 40 ? key.n : 40), (const char *)b->p + key.at);
    blob_replace(b, at, stop - at, NULL, 0);
}

/* The key once more, with its own value or with that of another; or under the name of another. */
static void key_again(rng *r, blob *b, size_t end, const scan *f, story *s)
{
    const span key = f->keys[rng_below(r, (size_t)f->n_keys)],
               other = f->keys[rng_below(r, (size_t)f->n_keys)];
    const size_t at = other.at + other.n + 1, stop = end_of_value(b, at, end);
    blob more = {0};
    if (rng_one_in(r, 3)) {
        blob_replace(&more, 0, 0, b->p + other.at, other.n);
        blob_replace(b, key.at, key.n, more.p, more.n);
        tell(s, "a key became %.*s", (int)(other.n < 40 ? other.n : 40), (const char *)more.p);
    } else {
        blob_replace(&more, 0, 0, ",", 1);
        blob_replace(&more, 0, 0, b->p + at, stop - at);
        blob_replace(&more, 0, 0, ":", 1);
        blob_replace(&more, 0, 0, b->p + key.at, key.n);
        tell(s, "%.*s again", (int)(key.n < 40 ? key.n : 40), (const char *)b->p + key.at);
        blob_replace(b, key.at, 0, more.p, more.n);
    }
    blob_free(&more);
}

static void other_string(rng *r, blob *b, const scan *f, story *s)
{
    const span at = f->strings[rng_below(r, (size_t)f->n_strings)];
    const span from = f->strings[rng_below(r, (size_t)f->n_strings)];
    char text[128];
    if (rng_one_in(r, 2)) {
        snprintf(text, sizeof text, "%.*s", (int)(from.n < 120 ? from.n : 120),
                 (const char *)b->p + from.at);
        put(b, at, text, s);
    } else {
        put(b, at, PICK(r, values), s);
    }
}

/* A line twice, gone, or elsewhere. */
static void other_lines(rng *r, blob *b, size_t begin, size_t end, story *s)
{
    size_t from = begin + rng_below(r, end - begin), to = from;
    while (from > begin && b->p[from - 1] != '\n')
        from--;
    while (to < end && b->p[to] != '\n')
        to++;
    to += to < end;
    blob line = {0};
    blob_replace(&line, 0, 0, b->p + from, to - from);
    if (rng_one_in(r, 2))
        blob_replace(b, from, to - from, NULL, 0);
    else
        blob_replace(b, rng_one_in(r, 2) ? from : begin, 0, line.p, line.n);
    tell(s, "the line at %zu", from);
    blob_free(&line);
}

/* Text from *begin to *end: all of it, or the header of a safetensors file. */
static int find_text(const blob *b, size_t *begin, size_t *end)
{
    uint64_t n = 0;
    *begin = 0;
    *end = b->n;
    if (b->n > 9 && b->p[8] == '{') {
        memcpy(&n, b->p, 8);
        *begin = 8;
        *end = n <= b->n - 8 ? 8 + (size_t)n : b->n;
        return 1;
    }
    for (size_t i = 0; i < b->n && i < 512; i++)
        if (b->p[i] < 9)
            return 0;
    return b->n > 0;
}

int mutate_text(rng *r, blob *b, story *s)
{
    static scan f;
    size_t begin, end;
    if (!find_text(b, &begin, &end))
        return 0;
    const size_t before = b->n;
    scan_text(&f, b, begin, end);
    const size_t kind = rng_below(r, 10);
    if (kind < 4 && f.n_numbers > 0)
        other_number(r, b, &f, s);
    else if (kind < 6 && f.n_keys > 0)
        other_value(r, b, end, &f, s);
    else if (kind == 6 && f.n_keys > 0)
        without_key(b, end, f.keys[rng_below(r, (size_t)f.n_keys)], s);
    else if (kind == 7 && f.n_keys > 0)
        key_again(r, b, end, &f, s);
    else if (kind == 8 && f.n_strings > 0)
        other_string(r, b, &f, s);
    else if (begin == 0)
        other_lines(r, b, begin, end, s);
    else
        return 0;
    if (begin == 8 && !rng_one_in(r, 8)) {
        const uint64_t n = (uint64_t)(end + b->n - before - 8);
        memcpy(b->p, &n, 8);
    }
    return 1;
}
