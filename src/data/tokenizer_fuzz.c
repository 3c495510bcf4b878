/* tokenizer_fuzz.c -- however a text is cut into blocks, it has the same symbols; and the symbols of
 * bytes and characters, put together, are the text. */
#include "data/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

typedef struct sequence {
    lam_symbols *symbols;
    int32_t *ids;
    size_t n, room;
} sequence;

static lam_status keep(void *user, const int32_t *ids, size_t n)
{
    sequence *s = user;
    s->room = s->n + n;
    s->ids = realloc(s->ids, (s->room + 1) * sizeof *s->ids);
    require(s->ids != NULL);
    memcpy(s->ids + s->n, ids, n * sizeof *ids);
    s->n += n;
    return LAM_OK;
}

static lam_status run(sequence *s, lam_text_kind kind, const uint8_t *text, size_t n, size_t step)
{
    lam_tokenizer *t;
    *s = (sequence){0};
    require(lam_symbols_create(&s->symbols) == LAM_OK);
    const lam_tokenizer_options options = {kind, false, n % 2 == 0, s->symbols, keep, s};
    require(lam_tokenizer_create(&t, &options) == LAM_OK);
    lam_status status = LAM_OK;
    for (size_t at = 0; at < n && status == LAM_OK; at += step)
        status = lam_tokenizer_feed(t, text + at, n - at < step ? n - at : step);
    if (status == LAM_OK)
        status = lam_tokenizer_finish(t, LAM_TEXT_COMPLETE);
    lam_tokenizer_free(t);
    return status;
}

static void forget(sequence *s)
{
    lam_symbols_free(s->symbols);
    free(s->ids);
}

static void require_text(const sequence *s, const uint8_t *text, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t size;
        const char *symbol = lam_symbols_text(s->symbols, s->ids[i], &size);
        require(at + size <= n && memcmp(symbol, text + at, size) == 0);
        at += size;
    }
    require(at == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const lam_text_kind kind = (lam_text_kind)(data[0] % 3);
    const size_t step = 1 + data[1] % 16;
    sequence whole, cut;
    data += 2;
    size -= 2;
    const lam_status a = run(&whole, kind, data, size, size + 1);
    const lam_status b = run(&cut, kind, data, size, step);
    require(a == b && (a == LAM_OK || a == LAM_ERR_FORMAT));
    if (a == LAM_OK) {
        require(whole.n == cut.n);
        require(whole.n == 0 || memcmp(whole.ids, cut.ids, whole.n * sizeof *cut.ids) == 0);
        if (kind != LAM_WORDS)
            require_text(&whole, data, size);
    }
    forget(&whole);
    forget(&cut);
    return 0;
}
