/* charset.c -- see charset.h. */
#include "data/charset.h"

#include "data/utf8.h"

#include <ctype.h>
#include <iconv.h>
#include <string.h>
#include <strings.h>

static bool is_no_conversion(const char *name)
{
    return name == NULL || strcasecmp(name, LAM_ENCODING_AUTO) == 0 ||
           strcasecmp(name, LAM_ENCODING_MARKED) == 0;
}

lam_status lam_encoding_check(const char *name)
{
    if (is_no_conversion(name))
        return LAM_OK;
    bool plain = strlen(name) < 64;
    for (const char *c = name; *c != '\0'; c++) /* no "//IGNORE": nothing is left out silently */
        plain &= isalnum((unsigned char)*c) || strchr("_-.:+()", *c) != NULL;
    iconv_t converter = plain && *name != '\0' ? iconv_open("UTF-8", name) : (iconv_t)-1;
    if (converter == (iconv_t)-1)
        return lam_fail(LAM_ERR_ARG,
                        "unknown encoding '%.60s': auto, latin1, windows-1252, utf-16, ... (iconv "
                        "-l lists all)",
                        name);
    iconv_close(converter);
    return LAM_OK;
}

bool lam_encoding_bad_utf8(const void *bytes, size_t n)
{
    const unsigned char *s = bytes;
    for (size_t i = 0; i < n;) {
        int32_t c;
        const int size = lam_utf8_decode(s + i, n - i, &c);
        if (size < 0)
            return true;
        if (size == 0)
            return n < LAM_ENCODING_HEAD;
        i += (size_t)size;
    }
    return false;
}

/* UTF-16 without a mark: nearly all of its Latin letters have a zero beside them. */
static const char *guess_by_zeros(const unsigned char *s, size_t n)
{
    size_t zeros[2] = {0};
    for (size_t i = 0; i < n; i++)
        zeros[i % 2] += s[i] == 0;
    if (n >= 8 && 4 * zeros[1] > n && 50 * zeros[0] <= n)
        return "utf-16le";
    return n >= 8 && 4 * zeros[0] > n && 50 * zeros[1] <= n ? "utf-16be" : NULL;
}

const char *lam_encoding_marked(const void *bytes, size_t n)
{
    const unsigned char *s = bytes;
    if (n >= 4 && (memcmp(s, "\xff\xfe\0\0", 4) == 0 || memcmp(s, "\0\0\xfe\xff", 4) == 0))
        return "utf-32";
    return n >= 2 && (memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0) ? "utf-16"
                                                                                      : NULL;
}

const char *lam_encoding_guess(const void *bytes, size_t n)
{
    const unsigned char *s = bytes;
    const char *wide = lam_encoding_marked(s, n);
    if (wide == NULL)
        wide = guess_by_zeros(s, n);
    if (wide != NULL || !lam_encoding_bad_utf8(s, n))
        return wide != NULL ? wide : "utf-8";
    for (size_t i = 0; i < n; i++)
        if (s[i] >= 0x80 && s[i] < 0xa0) /* quotes and dashes there, nothing in Latin-1 */
            return "windows-1252";
    return "latin1";
}
