/* word_marks.c -- see word_marks.h. */
#include "data/word_marks.h"

#include "data/utf8.h"

#include <string.h>
#include <utf8proc.h>

bool lam_word_char(int32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const utf8proc_category_t k = utf8proc_category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) ||
           (k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_NO);
}

static bool is_one_of(int32_t c, const int32_t *list)
{
    while (*list != 0 && *list != c)
        list++;
    return *list != 0;
}

/* How people mostly write it. */
static void usual(int32_t c, bool *left, bool *right)
{
    static const int32_t closing[] = {',',    '.',    ';',    ':',    '!',    '?',
                                      ')',    ']',    '}',    '%',    0x2026, 0x2019,
                                      0x201d, 0x00bb, 0x3001, 0x3002, 0xff0c, 0};
    static const int32_t opening[] = {'(',    '[',    '{',    '$',    '#',    0x00a3, 0x20ac,
                                      0x00bf, 0x00a1, 0x2018, 0x201c, 0x201e, 0x00ab, 0};
    *left = is_one_of(c, closing);
    *right = is_one_of(c, opening);
}

size_t lam_word_mark(char out[LAM_MARKED_MAX], int32_t c, bool left, bool right)
{
    bool usual_left, usual_right;
    size_t n = 0;
    usual(c, &usual_left, &usual_right);
    if ((left == usual_left && right == usual_right) || (c == '@' && !right))
        left = right = false; /* and "@@" is '@' before a word, as in @name */
    if (left && (c != '@' || right))
        out[n++] = '@';
    n += (size_t)lam_utf8_encode(out + n, c);
    if (right)
        out[n++] = '@';
    return n;
}

lam_word lam_word_read(const char *symbol, size_t size)
{
    lam_word w = {symbol, size, false, false};
    const char *at = memchr(symbol, '@', size);
    int32_t c = 0;
    if (at != NULL && size > 1) {
        w.left = symbol[0] == '@' && !(size == 2 && symbol[1] == '@');
        w.right = symbol[size - 1] == '@';
        w.text += w.left;
        w.size -= (size_t)w.left + (size_t)w.right;
    } else if (lam_utf8_decode((const unsigned char *)symbol, size, &c) == (int)size) {
        usual(c, &w.left, &w.right);
    }
    return w;
}
