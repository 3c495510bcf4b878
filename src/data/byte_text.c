/* byte_text.c -- see byte_text.h. */
#include "data/byte_text.h"

#include "data/utf8.h"

enum { FIRST = 0x100, HIDDEN = 68 }; /* bytes that are not visible, and where they go */

static bool is_visible(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

/* How many bytes below this one are not visible. */
static int hidden_below(int byte)
{
    if (byte <= '!')
        return byte;
    return byte <= 0xa1 ? '!' + byte - 0x7f : HIDDEN - 1;
}

static int32_t to_code(unsigned char byte)
{
    return is_visible(byte) ? byte : FIRST + hidden_below(byte);
}

static int to_byte(int32_t code)
{
    if (code < FIRST)
        return is_visible((int)code) ? (int)code : -1;
    const int k = (int)code - FIRST;
    if (k >= HIDDEN)
        return -1;
    return k <= ' ' ? k : k < HIDDEN - 1 ? 0x7f + k - '!' : 0xad;
}

size_t lam_byte_text(char *out, const char *bytes, size_t n)
{
    char *to = out;
    for (size_t i = 0; i < n; i++)
        to += lam_utf8_encode(to, to_code((unsigned char)bytes[i]));
    *to = '\0';
    return (size_t)(to - out);
}

long lam_byte_text_read(char *out, const char *text, size_t size)
{
    long n = 0;
    for (size_t at = 0; at < size;) {
        int32_t code = -1;
        const int k = lam_utf8_decode((const unsigned char *)text + at, size - at, &code);
        const int byte = k > 0 ? to_byte(code) : -1;
        if (byte < 0)
            return -1;
        out[n++] = (char)byte;
        at += (size_t)k;
    }
    return n;
}
