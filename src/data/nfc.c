/* nfc.c -- see nfc.h.  utf8proc knows the tables; here is where a text may be cut before it is asked. */
#include "data/nfc.h"

#include "data/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { BLOCK = 1 << 16 };

struct lam_nfc {
    lam_byte_sink *sink;
    void *user;
    size_t n;
    char block[BLOCK];
};

lam_status lam_nfc_create(lam_nfc **out, lam_byte_sink *sink, void *user)
{
    lam_nfc *f = *out = calloc(1, sizeof *f);
    if (f == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to normalise a text");
    f->sink = sink;
    f->user = user;
    return LAM_OK;
}

void lam_nfc_free(lam_nfc *f)
{
    free(f);
}

/* Does what precedes this character have no say in it?  Not so for marks, for the vowels and final consonants that
 * become Hangul syllables (jamos), and for the vowel signs of Kirat Rai, which Unicode calls letters. */
static bool stands_alone(int32_t code)
{
    if (code < 0x300)
        return true;
    const utf8proc_category_t c = utf8proc_category(code);
    return utf8proc_get_property(code)->combining_class == 0 && c != UTF8PROC_CATEGORY_CN &&
           c != UTF8PROC_CATEGORY_MN && c != UTF8PROC_CATEGORY_MC && c != UTF8PROC_CATEGORY_ME &&
           (code & ~0xff) != 0x1100 && (code & ~0xff) != 0x16d00;
}

/* The last place in the full block before which nothing depends on what follows. */
static size_t find_cut(const lam_nfc *f)
{
    const unsigned char *s = (const unsigned char *)f->block;
    size_t whole = BLOCK;
    for (size_t at = BLOCK - 1; at > 0; at--) {
        int32_t code;
        const int n = lam_utf8_decode(s + at, BLOCK - at, &code);
        if (n > 0 && stands_alone(code))
            return at;
        if (n > 0 && whole == BLOCK)
            whole = at; /* the last character begins here: better than inside it */
    }
    return whole;
}

/* Characters at the front of the text, in bytes, and whether any could change. */
static size_t valid_run(const char *text, size_t n, bool *change)
{
    size_t at = 0;
    int32_t code;
    *change = false;
    while (at < n) {
        const int k = lam_utf8_decode((const unsigned char *)text + at, n - at, &code);
        if (k <= 0)
            break;
        *change = *change || code >= 0x300; /* below, every character is what it should be */
        at += (size_t)k;
    }
    return at;
}

static lam_status compose(lam_nfc *f, const char *text, size_t n)
{
    utf8proc_uint8_t *made = NULL;
    const utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n,
                                               &made, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (size < 0)
        return lam_fail(size == UTF8PROC_ERROR_NOMEM ? LAM_ERR_MEMORY : LAM_ERR_FORMAT,
                        "a text cannot be normalised: %s", utf8proc_errmsg(size));
    const lam_status status = f->sink(f->user, (const char *)made, (size_t)size);
    free(made);
    return status;
}

static lam_status put_out(lam_nfc *f, size_t n)
{
    for (size_t at = 0; at < n;) {
        bool change;
        size_t run = valid_run(f->block + at, n - at, &change);
        if (change) {
            LAM_TRY(compose(f, f->block + at, run));
        } else {
            run += at + run < n; /* and a byte that is no character, if one follows */
            LAM_TRY(f->sink(f->user, f->block + at, run));
        }
        at += run;
    }
    memmove(f->block, f->block + n, f->n - n);
    f->n -= n;
    return LAM_OK;
}

lam_status lam_nfc_feed(lam_nfc *f, const char *bytes, size_t n)
{
    while (n > 0) {
        const size_t some = n < BLOCK - f->n ? n : BLOCK - f->n;
        memcpy(f->block + f->n, bytes, some);
        f->n += some;
        bytes += some;
        n -= some;
        if (f->n == BLOCK)
            LAM_TRY(put_out(f, find_cut(f)));
    }
    return LAM_OK;
}

lam_status lam_nfc_finish(lam_nfc *f)
{
    return put_out(f, f->n);
}
