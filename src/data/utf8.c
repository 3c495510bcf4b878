/* utf8.c -- a strict decoder by the table in RFC 3629, section 4. */
#include "data/utf8.h"

#include <utf8proc.h>

int lam_utf8_decode(const unsigned char *s, size_t n, int32_t *codepoint)
{
    if (n == 0)
        return 0;
    const unsigned char lead = s[0];
    if (lead < 0x80) {
        *codepoint = lead;
        return 1;
    }
    const int len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    /* The second byte alone decides about overlong forms, surrogates and the upper end. */
    const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0xc2 || lead > 0xf4)
        return -1;
    if (n > 1 && (s[1] < low || s[1] > high))
        return -1;
    int32_t value = lead & (0x7f >> len);
    for (int i = 1; i < len; i++) {
        if ((size_t)i == n)
            return 0;
        if ((s[i] & 0xc0) != 0x80)
            return -1;
        value = value << 6 | (s[i] & 0x3f);
    }
    *codepoint = value;
    return len;
}

bool lam_utf8_valid(const char *text, size_t size)
{
    int32_t codepoint;
    for (size_t at = 0; at < size;) {
        const int n = lam_utf8_decode((const unsigned char *)text + at, size - at, &codepoint);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

int lam_utf8_count(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

int lam_utf8_encode(char out[LAM_UTF8_MAX], int32_t codepoint)
{
    return (int)utf8proc_encode_char(codepoint, (utf8proc_uint8_t *)out);
}

bool lam_utf8_is_space(int32_t c)
{
    if (c < 0x80)
        return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

int32_t lam_utf8_lower(int32_t codepoint)
{
    return utf8proc_tolower(codepoint);
}
