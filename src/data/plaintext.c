/* plaintext.c -- see plaintext.h.
 *
 * What a text is, is judged by its first bytes, which are kept until there are enough.  Then they go through up to two
 * stages: iconv, and what drops the mark and CR.  With "auto", a text that begins with ASCII, which UTF-8 and
 * windows-1252 have in common, is judged again at its first other byte, however late that comes. */
#include "data/plaintext.h"

#include "core/grow.h"
#include "core/log.h"

#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD = LAM_ENCODING_HEAD, BLOCK = 1 << 15, REST_MAX = 16 };

struct lam_plaintext {
    lam_plaintext_options o;
    bool judged, raw;
    bool ascii;                  /* "auto", and nothing but ASCII so far */
    iconv_t converter;           /* (iconv_t)-1: none */
    char from[64];               /* what it converts */
    char rest[REST_MAX + BLOCK]; /* a character that was cut, and what follows */
    size_t n_rest;
    uint64_t converted; /* bytes, or passed on as they are */
    bool begun;         /* something was handed on: no mark can follow */
    bool cr;            /* that may be followed by LF */
    int64_t crlf;       /* how many there were */
    size_t n_head;
    char head[HEAD];
    char out[BLOCK];
};

/* ---- last stage: line ends and zero bytes ---- */

/* What the tokenizer says of bytes that are no UTF-8, and a way out. */
static lam_status hand_on(lam_plaintext *p, const char *bytes, size_t n)
{
    if (n == 0)
        return LAM_OK;
    p->begun = true;
    const lam_status status = p->o.sink(p->o.user, bytes, n);
    if (status != LAM_ERR_FORMAT)
        return status;
    if (memchr(bytes, '\0', n) != NULL)
        return lam_fail(LAM_ERR_FORMAT, "%s; only bytes and bpe take a file that is not text",
                        lam_error());
    if (!lam_encoding_bad_utf8(bytes, n))
        return status;
    const char *guess = lam_encoding_guess(bytes, n);
    return lam_fail(LAM_ERR_FORMAT, "%s; if it is %s, --encoding %s converts it", lam_error(),
                    guess, guess);
}

static lam_status drop_cr(lam_plaintext *p, const char *s, size_t n)
{
    char lines[BLOCK];
    size_t used = 0;
    if (p->o.keep_crlf)
        return hand_on(p, s, n);
    for (size_t i = 0; i < n; i++) {
        if (used + 2 > sizeof lines) {
            LAM_TRY(hand_on(p, lines, used));
            used = 0;
        }
        if (p->cr && s[i] != '\n')
            lines[used++] = '\r';
        p->crlf += p->cr && s[i] == '\n';
        p->cr = s[i] == '\r';
        if (!p->cr)
            lines[used++] = s[i];
    }
    return hand_on(p, lines, used);
}

/* UTF-8, or what is taken as bytes. */
static lam_status put(lam_plaintext *p, const char *s, size_t n)
{
    if (p->raw)
        return hand_on(p, s, n);
    if (!p->begun && !p->cr && n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
        s += 3, n -= 3;
    return drop_cr(p, s, n);
}

/* ---- converting ---- */

static lam_status not_valid(const lam_plaintext *p, const char *how)
{
    const char *guess = lam_encoding_guess(p->head, p->n_head);
    const bool same = strcasecmp(guess, p->from) == 0;
    return lam_fail(LAM_ERR_FORMAT, "%s: not valid %s at byte %llu%s; %s%s: --encoding %s",
                    p->o.name, p->from, (unsigned long long)p->converted, how,
                    same ? "it is damaged or in another encoding" : "it begins like ",
                    same ? "" : guess, same ? "names that" : guess);
}

/* p->rest[0, n_rest), as far as it holds whole characters. */
static lam_status convert_rest(lam_plaintext *p)
{
    char *in = p->rest;
    size_t left = p->n_rest;
    for (int more = 1; more;) {
        char *out = p->out;
        size_t room = sizeof p->out;
        const char *before = in;
        const size_t result = iconv(p->converter, &in, &left, &out, &room);
        const int error = result == (size_t)-1 ? errno : 0;
        p->converted += (uint64_t)(in - before);
        LAM_TRY(put(p, p->out, sizeof p->out - room));
        if (error == EILSEQ)
            return not_valid(p, "");
        if (error == EINVAL && left > REST_MAX)
            return not_valid(p, "");
        more = error == E2BIG;
    }
    memmove(p->rest, in, left);
    p->n_rest = left;
    return LAM_OK;
}

static lam_status convert(lam_plaintext *p, const char *s, size_t n)
{
    if (p->converter == (iconv_t)-1) {
        p->converted += n;
        return put(p, s, n);
    }
    while (n > 0) {
        const size_t some = n < BLOCK ? n : BLOCK;
        memcpy(p->rest + p->n_rest, s, some);
        p->n_rest += some;
        s += some;
        n -= some;
        LAM_TRY(convert_rest(p));
    }
    return LAM_OK;
}

/* ---- detecting the encoding ---- */

static lam_status judge_plain(lam_plaintext *p)
{
    const char *guess = lam_encoding_guess(p->head, p->n_head);
    const bool wide = strncmp(guess, "utf-16", 6) == 0 || strncmp(guess, "utf-32", 6) == 0;
    if (wide && (p->o.kind == LAM_CHARS || p->o.kind == LAM_WORDS))
        return lam_fail(LAM_ERR_FORMAT, "%s: %s, not UTF-8: --encoding %s converts it", p->o.name,
                        guess, guess);
    if (wide)
        lam_log(LAM_LOG_WARN, "%s: %s, taken as it is, byte by byte: --encoding %s converts it",
                p->o.name, guess, guess);
    p->raw = memchr(p->head, '\0', p->n_head) != NULL;
    return LAM_OK;
}

static bool is_ascii(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] >= 0x80)
            return false;
    return true;
}

/* The encoding by p->head: of the beginning, or of what follows the ASCII that was passed on. */
static const char *recognise(lam_plaintext *p)
{
    const char *guess = lam_encoding_guess(p->head, p->n_head);
    if (p->converted > 0)
        guess = lam_encoding_bad_utf8(p->head, p->n_head) ? "windows-1252" : "utf-8";
    if (strcmp(guess, "latin1") == 0) /* which the other contains */
        guess = "windows-1252";
    p->ascii = strcmp(guess, "utf-8") == 0 && is_ascii(p->head, p->n_head);
    if (strcmp(guess, "utf-8") != 0)
        lam_log(LAM_LOG_INFO, "%s: read as %s", p->o.name, guess);
    return guess;
}

static lam_status judge(lam_plaintext *p)
{
    const char *from = p->o.encoding;
    const char *head = p->head;
    p->judged = true;
    if (p->o.exact) {
        p->raw = true;
        return put(p, head, p->n_head);
    }
    if (from != NULL && strcasecmp(from, LAM_ENCODING_AUTO) == 0) {
        from = recognise(p);
    } else if (from != NULL && strcasecmp(from, LAM_ENCODING_MARKED) == 0) {
        from = lam_encoding_marked(head, p->n_head);
        p->raw = from == NULL && memchr(head, '\0', p->n_head) != NULL;
    } else if (from == NULL) {
        LAM_TRY(judge_plain(p));
    }
    if (from != NULL && strcasecmp(from, "utf-8") != 0) {
        LAM_TRY(lam_encoding_check(from));
        p->converter = iconv_open("UTF-8", from);
        if (p->converter == (iconv_t)-1)
            return lam_fail(LAM_ERR_MEMORY, "%s: cannot convert %s: %s", p->o.name, from,
                            strerror(errno));
        strncpy(p->from, from, sizeof p->from - 1);
    }
    return convert(p, head, p->n_head);
}

/* ---- the stream ---- */

lam_status lam_plaintext_create(lam_plaintext **out, const lam_plaintext_options *options)
{
    *out = NULL;
    LAM_TRY(lam_encoding_check(options->encoding));
    lam_plaintext *p = calloc(1, sizeof *p);
    if (p == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory to read it", options->name);
    p->o = *options;
    p->converter = (iconv_t)-1;
    *out = p;
    return LAM_OK;
}

void lam_plaintext_free(lam_plaintext *p)
{
    if (p == NULL)
        return;
    if (p->converter != (iconv_t)-1)
        iconv_close(p->converter);
    free(p);
}

/* Hands on s[0, n) as far as it is ASCII; returns how much that is.  What follows is to be judged. */
static lam_status pass_ascii(lam_plaintext *p, const char *s, size_t n, size_t *passed)
{
    *passed = 0;
    while (*passed < n && (unsigned char)s[*passed] < 0x80)
        ++*passed;
    if (*passed < n) {
        p->ascii = p->judged = false;
        p->n_head = 0;
    }
    return convert(p, s, *passed);
}

lam_status lam_plaintext_feed(lam_plaintext *p, const void *bytes, size_t n)
{
    const char *s = bytes;
    while (n > 0) {
        size_t some = n;
        if (p->ascii) {
            LAM_TRY(pass_ascii(p, s, n, &some));
        } else if (!p->judged) {
            some = n < HEAD - p->n_head ? n : HEAD - p->n_head;
            memcpy(p->head + p->n_head, s, some);
            p->n_head += some;
            if (p->n_head == HEAD)
                LAM_TRY(judge(p));
        } else {
            LAM_TRY(convert(p, s, n));
        }
        s += some;
        n -= some;
    }
    return LAM_OK;
}

lam_status lam_plaintext_finish(lam_plaintext *p)
{
    if (!p->judged)
        LAM_TRY(judge(p));
    if (p->n_rest > 0)
        return not_valid(p, ", where it ends inside a character");
    if (p->cr)
        LAM_TRY(hand_on(p, "\r", 1));
    p->cr = false;
    if (p->crlf > 0)
        lam_log(LAM_LOG_INFO,
                "%s: %lld lines end with CR LF, which became LF (--keep-crlf keeps it)", p->o.name,
                (long long)p->crlf);
    p->crlf = 0;
    return LAM_OK;
}

/* ---- a text in memory ---- */

typedef struct collected {
    char *text;
    size_t n, room;
} collected;

static lam_status collect(void *user, const void *bytes, size_t n)
{
    collected *c = user;
    LAM_TRY(lam_grow(&c->text, &c->room, c->n + n + 1, 1, "bytes of text"));
    memcpy(c->text + c->n, bytes, n);
    c->n += n;
    c->text[c->n] = '\0';
    return LAM_OK;
}

lam_status lam_plaintext_all(char **out, size_t *size, const char *bytes, size_t n,
                             const lam_plaintext_options *options)
{
    lam_plaintext_options o = *options;
    lam_plaintext *p = NULL;
    collected c = {0};
    o.sink = collect;
    o.user = &c;
    *out = NULL;
    *size = 0;
    lam_status status = collect(&c, "", 0);
    if (status == LAM_OK)
        status = lam_plaintext_create(&p, &o);
    if (status == LAM_OK)
        status = lam_plaintext_feed(p, bytes, n);
    if (status == LAM_OK)
        status = lam_plaintext_finish(p);
    lam_plaintext_free(p);
    if (status != LAM_OK) {
        free(c.text);
        return status;
    }
    *out = c.text;
    *size = c.n;
    return LAM_OK;
}
