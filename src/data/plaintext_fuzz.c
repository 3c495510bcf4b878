/* plaintext_fuzz.c -- any bytes in any encoding: the same text however it is cut, valid UTF-8 where it was converted. */
#include "data/plaintext.h"

#include "core/log.h"
#include "data/utf8.h"

#include <stdlib.h>
#include <string.h>

static void require(bool holds)
{
    if (!holds)
        abort();
}

typedef struct part {
    char *text;
    size_t n;
} part;

static lam_status keep(void *user, const void *bytes, size_t n)
{
    part *p = user;
    p->text = realloc(p->text, p->n + n + 1);
    require(p->text != NULL);
    memcpy(p->text + p->n, bytes, n);
    p->n += n;
    return LAM_OK;
}

static lam_status run(part *out, const lam_plaintext_options *options, const uint8_t *s, size_t n,
                      size_t step)
{
    lam_plaintext_options o = *options;
    lam_plaintext *p;
    *out = (part){0};
    o.sink = keep;
    o.user = out;
    require(lam_plaintext_create(&p, &o) == LAM_OK);
    lam_status status = LAM_OK;
    for (size_t at = 0; at < n && status == LAM_OK; at += step)
        status = lam_plaintext_feed(p, s + at, n - at < step ? n - at : step);
    if (status == LAM_OK)
        status = lam_plaintext_finish(p);
    lam_plaintext_free(p);
    return status;
}

static void hush(lam_log_level level, const char *line, void *user)
{
    (void)level, (void)line, (void)user;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {NULL,     "auto",         "marked",    "latin1", "utf-16",
                                        "utf-32", "windows-1252", "shift_jis", "utf-7",  "gb18030"};
    if (size < 3)
        return 0;
    lam_log_set_sink(hush, NULL);
    const int which = data[0] % 10;
    const lam_plaintext_options o = {.name = "fuzz",
                                     .encoding = names[which],
                                     .kind = (lam_text_kind)(data[1] % LAM_KINDS),
                                     .keep_crlf = data[1] & 64};
    part whole, cut;
    const lam_status status = run(&whole, &o, data + 3, size - 3, size);
    require(run(&cut, &o, data + 3, size - 3, 1 + data[2]) == status);
    if (status == LAM_OK) {
        require(cut.n == whole.n && (cut.n == 0 || memcmp(cut.text, whole.text, cut.n) == 0));
        require(which < 3 || which == 8 || whole.n == 0 || lam_utf8_valid(whole.text, whole.n));
    }
    free(whole.text);
    free(cut.text);
    return 0;
}
