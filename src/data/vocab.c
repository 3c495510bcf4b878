/* vocab.c -- ordering symbols, finding them, and encoding text with them.  Byte pairs are in vocab_bpe.c, the file
 * format is in vocab_json.c, the way back to readable text in detok.c. */
#include "data/vocab.h"

#include "core/grow.h"
#include "data/utf8.h"
#include "data/vocab_int.h"
#include "data/word_marks.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lam_status lam_vocab_start(lam_vocab **out, const lam_vocab_rules *rules, size_t room)
{
    *out = NULL;
    lam_vocab *v = calloc(1, sizeof *v);
    if (v == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a vocabulary");
    v->kind = rules->kind;
    v->lower = rules->lower;
    v->blanks = rules->kind == LAM_WORDS && rules->blanks; /* means nothing elsewhere */
    v->drop_newlines = rules->drop_newlines;
    v->eos = v->unk = -1;
    v->counts = malloc((room + 1) * sizeof *v->counts);
    const lam_status status = v->counts != NULL
                                  ? lam_symbols_create(&v->symbols)
                                  : lam_fail(LAM_ERR_MEMORY, "no memory for %zu counts", room);
    if (status != LAM_OK)
        lam_vocab_free(v);
    else
        *out = v;
    return status;
}

lam_status lam_vocab_append(lam_vocab *v, const char *text, size_t size, int64_t count)
{
    int32_t id;
    const int32_t next = lam_symbols_count(v->symbols);
    LAM_TRY(lam_symbols_add(v->symbols, text, size, &id));
    assert(id == next);
    (void)next; /* without asserts */
    v->counts[id] = count;
    if (v->kind == LAM_WORDS && size == 5 && memcmp(text, "<eos>", 5) == 0)
        v->eos = id;
    if ((v->kind == LAM_CHARS || v->kind == LAM_WORDS) && size == 5 &&
        memcmp(text, "<unk>", 5) == 0)
        v->unk = id;
    return LAM_OK;
}

void lam_vocab_free(lam_vocab *v)
{
    if (v == NULL)
        return;
    lam_bpe_free(v->bpe);
    lam_symbols_free(v->symbols);
    free(v->counts);
    free(v);
}

lam_status lam_vocab_create_bytes(lam_vocab **out)
{
    const lam_vocab_rules rules = {.kind = LAM_BYTES};
    lam_vocab *v;
    LAM_TRY(lam_vocab_start(&v, &rules, 256));
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        const lam_status status = lam_vocab_append(v, &byte, 1, 0);
        if (status != LAM_OK) {
            lam_vocab_free(v);
            return status;
        }
    }
    *out = v;
    return LAM_OK;
}

lam_status lam_vocab_create_list(lam_vocab **out, const lam_symbol *list, size_t n,
                                 const lam_vocab_rules *rules)
{
    lam_vocab *v;
    *out = NULL;
    LAM_TRY(lam_vocab_start(&v, rules, n));
    lam_status status = LAM_OK;
    for (size_t i = 0; i < n && status == LAM_OK; i++) {
        if (lam_vocab_find(v, list[i].text, list[i].size) >= 0)
            status = lam_fail(LAM_ERR_FORMAT, "vocabulary: symbol %zu is there twice", i);
        else
            status = lam_vocab_append(v, list[i].text, list[i].size, list[i].count);
    }
    if (status == LAM_OK)
        *out = v;
    else
        lam_vocab_free(v);
    return status;
}

/* ---- ordering ---- */

typedef struct ranked {
    int64_t count;
    int32_t symbol;
} ranked;

static int by_count_then_appearance(const void *pa, const void *pb)
{
    const ranked *a = pa, *b = pb;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->symbol < b->symbol ? -1 : 1;
}

/* The symbols that stay, in their order; returns how many. */
static int32_t rank_symbols(ranked *order, const lam_symbols *symbols, const int64_t *counts,
                            const lam_vocab_rules *rules)
{
    int32_t n = 0;
    for (int32_t i = 0; i < lam_symbols_count(symbols); i++) {
        size_t size;
        const char *text = lam_symbols_text(symbols, i, &size);
        const bool dropped = rules->drop_newlines && size == 1 && *text == '\n';
        if (!dropped && counts[i] > 0 && counts[i] >= rules->min_count)
            order[n++] = (ranked){counts[i], i};
    }
    qsort(order, (size_t)n, sizeof *order, by_count_then_appearance);
    return n;
}

static lam_status append_special(lam_vocab *v, const char *name, const lam_symbols *symbols,
                                 const int64_t *counts)
{
    const int32_t i = lam_symbols_find(symbols, name, strlen(name));
    return lam_vocab_append(v, name, strlen(name), i >= 0 ? counts[i] : 0);
}

/* Fills v in order and remap[] with the numbers. */
static lam_status fill(lam_vocab *v, int32_t *remap, ranked *order, const lam_symbols *symbols,
                       const int64_t *counts, const lam_vocab_rules *rules)
{
    const int32_t n = rank_symbols(order, symbols, counts, rules);
    const int32_t limit = rules->max_size > 0 ? rules->max_size : INT32_MAX;
    size_t size;

    if (rules->kind == LAM_WORDS)
        LAM_TRY(append_special(v, "<eos>", symbols, counts));
    if (rules->unk)
        LAM_TRY(append_special(v, "<unk>", symbols, counts));
    for (int32_t i = 0; i < n && lam_symbols_count(v->symbols) < limit; i++) {
        const char *text = lam_symbols_text(symbols, order[i].symbol, &size);
        if (lam_symbols_find(v->symbols, text, size) < 0)
            LAM_TRY(lam_vocab_append(v, text, size, order[i].count));
    }
    for (int32_t i = 0; i < lam_symbols_count(symbols); i++) {
        const char *text = lam_symbols_text(symbols, i, &size);
        remap[i] = lam_vocab_number(v, text, size);
    }
    return LAM_OK;
}

lam_status lam_vocab_create(lam_vocab **out, int32_t *remap, const lam_symbols *symbols,
                            const int64_t *counts, const lam_vocab_rules *rules)
{
    const size_t n = (size_t)lam_symbols_count(symbols);
    lam_vocab *v = NULL;
    *out = NULL;
    ranked *order = malloc((n + 1) * sizeof *order);
    lam_status status = order != NULL
                            ? lam_vocab_start(&v, rules, n + 2)
                            : lam_fail(LAM_ERR_MEMORY, "no memory to sort %zu symbols", n);
    if (status == LAM_OK)
        status = fill(v, remap, order, symbols, counts, rules);
    free(order);
    if (status != LAM_OK)
        lam_vocab_free(v);
    else
        *out = v;
    return status;
}

/* ---- lookup ---- */

lam_text_kind lam_vocab_kind(const lam_vocab *v)
{
    return v->kind;
}

bool lam_vocab_lower(const lam_vocab *v)
{
    return v->lower;
}

bool lam_vocab_blanks(const lam_vocab *v)
{
    return v->blanks;
}

int lam_vocab_size(const lam_vocab *v)
{
    return lam_symbols_count(v->symbols);
}

int32_t lam_vocab_eos(const lam_vocab *v)
{
    return v->eos;
}

int32_t lam_vocab_unk(const lam_vocab *v)
{
    return v->unk;
}

int32_t lam_vocab_find(const lam_vocab *v, const char *text, size_t size)
{
    return lam_symbols_find(v->symbols, text, size);
}

int32_t lam_vocab_number(const lam_vocab *v, const char *text, size_t size)
{
    const int32_t id = lam_vocab_find(v, text, size);
    if (id < 0 && v->drop_newlines && size == 1 && *text == '\n')
        return LAM_SYMBOL_DROPPED;
    return id >= 0 ? id : v->unk >= 0 ? v->unk : LAM_SYMBOL_LACKING;
}

const char *lam_vocab_symbol(const lam_vocab *v, int32_t id, size_t *size)
{
    return lam_symbols_text(v->symbols, id, size);
}

int64_t lam_vocab_count(const lam_vocab *v, int32_t id)
{
    return v->counts[id];
}

int lam_vocab_bytes(const lam_vocab *v, int32_t id)
{
    size_t size;
    const char *text = lam_symbols_text(v->symbols, id, &size);
    if (v->bpe != NULL && lam_bpe_is_special(v->bpe, id))
        return 0;
    if (v->kind != LAM_WORDS)
        return (int)size;
    if (id == v->eos || v->blanks)
        return id == v->eos ? 1 : (int)size + 1;
    const lam_word w = lam_word_read(text, size);
    return (int)w.size + !w.left;
}

lam_status lam_vocab_sizes(const lam_vocab *v, int32_t **sizes)
{
    const int32_t n = lam_vocab_size(v);
    *sizes = malloc((size_t)n * sizeof **sizes);
    if (*sizes == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d symbols", n);
    for (int32_t i = 0; i < n; i++)
        (*sizes)[i] = lam_vocab_bytes(v, i);
    return LAM_OK;
}

const char *lam_symbol_show(char out[LAM_SYMBOL_SHOWN], const char *text, size_t size)
{
    int32_t code = 0;
    size_t n = size < 40 ? size : 40;
    while (n < size && n > 0 && (text[n] & 0xc0) == 0x80) /* not inside a character */
        n--;
    const bool one = lam_utf8_decode((const unsigned char *)text, size, &code) == (int)size;
    if (size == 1 && (*text < ' ' || *text > '~'))
        snprintf(out, LAM_SYMBOL_SHOWN, "byte %d", (unsigned char)*text);
    else if (one && size > 1) /* it may be invisible, or look like another */
        snprintf(out, LAM_SYMBOL_SHOWN, "'%.*s' (U+%04X)", (int)size, text, (unsigned)code);
    else
        snprintf(out, LAM_SYMBOL_SHOWN, "'%.*s'", (int)n, text);
    return out;
}

/* ---- encoding ---- */

typedef struct encoding {
    const lam_vocab *vocab;
    lam_symbols *symbols; /* of this text only */
    int32_t *ids;
    size_t n, room;
} encoding;

/* A sink: numbers of this text's own symbols come in, numbers of the vocabulary are kept. */
static lam_status keep_known(void *user, const int32_t *ids, size_t n)
{
    encoding *e = user;
    LAM_TRY(lam_grow(&e->ids, &e->room, e->n + n, sizeof *e->ids, "tokens"));
    for (size_t i = 0; i < n; i++) {
        size_t size;
        const char *text = lam_symbols_text(e->symbols, ids[i], &size);
        const int32_t id = lam_vocab_number(e->vocab, text, size);
        char shown[LAM_SYMBOL_SHOWN];
        if (id == LAM_SYMBOL_LACKING)
            return lam_fail(LAM_ERR_FORMAT, "%s is not in the vocabulary, which has no <unk>",
                            lam_symbol_show(shown, text, size));
        if (id != LAM_SYMBOL_DROPPED)
            e->ids[e->n++] = id;
    }
    return LAM_OK;
}

lam_status lam_vocab_encode(const lam_vocab *v, int32_t **ids, size_t *n, const char *text,
                            size_t size)
{
    encoding e = {.vocab = v};
    lam_tokenizer *t = NULL;
    if (v->bpe != NULL)
        return lam_vocab_encode_special(v, ids, n, text, size, LAM_SPECIAL_TEXT);
    *ids = NULL;
    *n = 0;
    lam_status status = lam_symbols_create(&e.symbols);
    const lam_tokenizer_options options = {v->kind, v->lower, v->blanks, e.symbols, keep_known, &e};
    if (status == LAM_OK)
        status = lam_tokenizer_create(&t, &options);
    if (status == LAM_OK)
        status = lam_tokenizer_feed(t, text, size);
    if (status == LAM_OK)
        status = lam_tokenizer_finish(t, LAM_TEXT_OPEN);
    if (status == LAM_OK && e.ids == NULL && (e.ids = malloc(sizeof *e.ids)) == NULL)
        status = lam_fail(LAM_ERR_MEMORY, "no memory for a text");
    lam_tokenizer_free(t);
    lam_symbols_free(e.symbols);
    if (status != LAM_OK) {
        free(e.ids);
        return status;
    }
    *ids = e.ids;
    *n = e.n;
    return LAM_OK;
}

lam_status lam_vocab_check(const lam_vocab *v, const char *text, size_t size)
{
    int32_t *ids = NULL;
    size_t n;
    const lam_status status = lam_vocab_encode(v, &ids, &n, text, size);
    free(ids);
    return status;
}

lam_status lam_vocab_same(const lam_vocab *model, const lam_vocab *text, const char *label)
{
    const int32_t a = lam_vocab_size(model), b = lam_vocab_size(text);
    int32_t differ = a != b ? 0 : -1;
    for (int32_t i = 0; i < a && differ < 0; i++) {
        size_t n = 0, m = 0;
        const char *x = lam_vocab_symbol(model, i, &n), *y = lam_vocab_symbol(text, i, &m);
        if (n != m || memcmp(x, y, n) != 0)
            differ = i;
    }
    if (differ < 0)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT,
                    "%s: its vocabulary (%s, %d tokens) is not the model's (%s, %d tokens); they "
                    "differ from number %d on: lamemo prepare --vocab-from MODEL takes the model's",
                    label, lam_text_kind_name(text->kind), b, lam_text_kind_name(model->kind), a,
                    differ);
}

lam_status lam_vocab_fits(const lam_vocab *v, const char *path, int n_token)
{
    if (lam_vocab_size(v) == n_token)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT, "%s: the vocabulary has %d tokens, the model %d", path,
                    lam_vocab_size(v), n_token);
}

bool lam_vocab_alike(const lam_vocab *a, const lam_vocab *b)
{
    return a->kind == b->kind && a->lower == b->lower && a->blanks == b->blanks &&
           a->drop_newlines == b->drop_newlines &&
           (a->bpe == NULL || lam_bpe_alike(a->bpe, b->bpe));
}
