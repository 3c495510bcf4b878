/* text_look.c -- see text_look.h. */
#include "data/text_look.h"

#include "core/log.h"

#include <string.h>

static bool is_utf16(const unsigned char *s, size_t n)
{
    return n >= 2 && ((s[0] == 0xff && s[1] == 0xfe) || (s[0] == 0xfe && s[1] == 0xff));
}

static bool has_cr_lf(const unsigned char *s, size_t n)
{
    const unsigned char *const newline = memchr(s, '\n', n);
    return newline != NULL && newline > s && newline[-1] == '\r';
}

lam_status lam_text_look(const char *name, lam_text_kind kind, const void *bytes, size_t n)
{
    static const char remedy[] = "iconv -f UTF-16 -t UTF-8 makes UTF-8 of it";
    if (is_utf16(bytes, n)) {
        if (kind == LAM_CHARS || kind == LAM_WORDS)
            return lam_fail(LAM_ERR_FORMAT, "%s: UTF-16, not UTF-8; %s", name, remedy);
        lam_log(LAM_LOG_WARN, "%s: UTF-16, taken as it is: two bytes a character; %s", name,
                remedy);
    } else if (kind != LAM_WORDS && has_cr_lf(bytes, n)) { /* words end at either */
        lam_log(LAM_LOG_WARN,
                "%s: lines end with CR LF, taken as it is; tr -d '\\r' leaves the CR out", name);
    }
    return LAM_OK;
}
