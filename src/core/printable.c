/* printable.c -- see printable.h. */
#include "core/printable.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

size_t lam_printable_next(char out[LAM_PRINTABLE_MAX], const char *text, size_t n)
{
    utf8proc_int32_t code;
    const utf8proc_ssize_t length =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &code);
    const size_t used = length > 0 ? (size_t)length : 1;
    if (length == 1 && code >= 0x20 && code != 0x7f) {
        out[0] = *text; /* most of what there is */
        out[1] = '\0';
    } else if (length <= 1) {
        snprintf(out, LAM_PRINTABLE_MAX, "\\x%02x", (unsigned char)*text);
    } else if (code < 0xa0) {
        snprintf(out, LAM_PRINTABLE_MAX, "\\u%04x", (unsigned)code);
    } else {
        memcpy(out, text, used);
        out[used] = '\0';
    }
    return used;
}

char *lam_printable(char *out, size_t size, const char *text)
{
    char next[LAM_PRINTABLE_MAX];
    size_t used = 0;
    const size_t n = strlen(text);
    for (size_t at = 0; at < n;) {
        at += lam_printable_next(next, text + at, n - at);
        const size_t more = strlen(next);
        if (used + more >= size)
            break;
        memcpy(out + used, next, more);
        used += more;
    }
    out[used] = '\0';
    return out;
}
