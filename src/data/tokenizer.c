/* tokenizer.c -- see tokenizer.h.  The hot loops touch one table entry per byte; everything else
 * (white space outside ASCII, lower case, words cut by a block boundary) is off that path. */
#include "data/tokenizer.h"

#include "data/utf8.h"
#include "data/word_marks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 1 << 14 };

struct lam_tokenizer {
    lam_tokenizer_options options;
    const char *name;
    uint64_t offset;                     /* bytes of this text before the current block */
    unsigned char pending[LAM_UTF8_MAX]; /* a character cut by a block boundary */
    size_t n_pending;
    unsigned char last; /* the last byte seen; '\n' at the start */
    int32_t *table;     /* number + 1 of each byte or code point, 0: none yet; NULL for words */
    int32_t eos;
    int32_t held; /* punctuation whose right side is not known yet; 0: none */
    bool held_left;
    size_t word_size; /* a word cut by a block boundary, or before what is held */
    char word[LAM_SYMBOL_MAX + LAM_UTF8_MAX];
    char lowered[LAM_SYMBOL_MAX + LAM_UTF8_MAX];
    size_t n_ids;
    int32_t ids[IDS_MAX];
};

const char *lam_text_kind_name(lam_text_kind kind)
{
    static const char *const names[] = {"bytes", "chars", "words", "bpe"};
    return names[kind];
}

lam_text_kind lam_text_kind_find(const char *name)
{
    int k = 0;
    while (k < LAM_KINDS && strcmp(lam_text_kind_name((lam_text_kind)k), name) != 0)
        k++;
    return (lam_text_kind)k;
}

lam_status lam_tokenizer_create(lam_tokenizer **out, const lam_tokenizer_options *options)
{
    assert(options->kind < LAM_BPE);
    *out = NULL;
    lam_tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a tokenizer");
    t->options = *options;
    lam_status status = LAM_OK;
    if (options->kind == LAM_WORDS) {
        status = lam_symbols_add(options->symbols, "<eos>", 5, &t->eos);
    } else {
        const size_t n = options->kind == LAM_BYTES ? 256 : LAM_CODEPOINTS;
        t->table = calloc(n, sizeof *t->table); /* zeros cost nothing until they are touched */
        if (t->table == NULL)
            status = lam_fail(LAM_ERR_MEMORY, "no memory for a table of %zu symbols", n);
    }
    lam_tokenizer_start(t, "text");
    if (status != LAM_OK)
        lam_tokenizer_free(t);
    else
        *out = t;
    return status;
}

void lam_tokenizer_free(lam_tokenizer *t)
{
    if (t == NULL)
        return;
    free(t->table);
    free(t);
}

void lam_tokenizer_start(lam_tokenizer *t, const char *name)
{
    t->name = name;
    t->offset = 0;
    t->n_pending = t->word_size = 0;
    t->held = 0;
    t->last = '\n';
}

static lam_status flush(lam_tokenizer *t)
{
    const size_t n = t->n_ids;
    t->n_ids = 0;
    return n > 0 ? t->options.sink(t->options.user, t->ids, n) : LAM_OK;
}

static lam_status emit(lam_tokenizer *t, int32_t id)
{
    t->ids[t->n_ids++] = id;
    return t->n_ids == IDS_MAX ? flush(t) : LAM_OK;
}

static lam_status invalid(const lam_tokenizer *t, size_t at)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: not valid UTF-8 at byte %llu", t->name,
                    (unsigned long long)(t->offset + at));
}

/* The character at s[0, n), `at` bytes into the block; *size is 0 when it is cut.  U+0000 is valid
 * UTF-8, but whoever has it has no text. */
static lam_status next_char(const lam_tokenizer *t, const unsigned char *s, size_t n, size_t at,
                            int32_t *code, int *size)
{
    *size = lam_utf8_decode(s, n, code);
    if (*size < 0)
        return invalid(t, at);
    if (*size > 0 && *code == 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: not text: a zero byte at byte %llu", t->name,
                        (unsigned long long)(t->offset + at));
    return LAM_OK;
}

/* ---- bytes and characters ---- */

/* The symbol of a byte or code point that was not met before. */
static lam_status new_symbol(lam_tokenizer *t, int32_t code)
{
    char text[LAM_UTF8_MAX] = {(char)code};
    int size = 1;
    if (t->options.kind == LAM_CHARS)
        size = lam_utf8_encode(text, t->options.lower ? lam_utf8_lower(code) : code);
    int32_t id;
    LAM_TRY(lam_symbols_add(t->options.symbols, text, (size_t)size, &id));
    t->table[code] = id + 1;
    return LAM_OK;
}

static lam_status feed_bytes(lam_tokenizer *t, const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (t->table[s[i]] == 0)
            LAM_TRY(new_symbol(t, s[i]));
        LAM_TRY(emit(t, t->table[s[i]] - 1));
    }
    return LAM_OK;
}

/* Both of these use the whole characters in s[0, n) and leave the rest: *used bytes are done. */
static lam_status use_chars(lam_tokenizer *t, const unsigned char *s, size_t n, size_t *used)
{
    size_t i = 0;
    while (i < n) {
        int32_t code = 0;
        int size;
        LAM_TRY(next_char(t, s + i, n - i, i, &code, &size));
        if (size == 0)
            break;
        if (t->table[code] == 0)
            LAM_TRY(new_symbol(t, code));
        LAM_TRY(emit(t, t->table[code] - 1));
        i += (size_t)size;
    }
    *used = i;
    return LAM_OK;
}

/* ---- words ---- */

/* Lower case into t->lowered; the text is valid UTF-8.  A character may become longer. */
static lam_status lower_word(lam_tokenizer *t, const char *text, size_t *size)
{
    size_t n = 0;
    for (size_t i = 0; i < *size;) {
        int32_t code = 0;
        i += (size_t)lam_utf8_decode((const unsigned char *)text + i, *size - i, &code);
        n += (size_t)lam_utf8_encode(t->lowered + n, lam_utf8_lower(code));
        if (n > LAM_SYMBOL_MAX)
            return lam_fail(LAM_ERR_FORMAT, "%s: a word longer than %d bytes", t->name,
                            LAM_SYMBOL_MAX);
    }
    *size = n;
    return LAM_OK;
}

static lam_status keep_part(lam_tokenizer *t, const unsigned char *s, size_t n, size_t at)
{
    if (t->word_size + n > LAM_SYMBOL_MAX)
        return lam_fail(LAM_ERR_FORMAT, "%s: a word longer than %d bytes at byte %llu", t->name,
                        LAM_SYMBOL_MAX, (unsigned long long)(t->offset + at));
    if (n > 0) /* s may be NULL then */
        memcpy(t->word + t->word_size, s, n);
    t->word_size += n;
    return LAM_OK;
}

/* s[0, n) ends a word, whose beginning may have been kept from an earlier block. */
static lam_status end_word(lam_tokenizer *t, const unsigned char *s, size_t n, size_t at)
{
    const char *text = (const char *)s;
    int32_t id;
    if (t->word_size + n == 0)
        return LAM_OK;
    if (t->word_size > 0 || n > LAM_SYMBOL_MAX) {
        LAM_TRY(keep_part(t, s, n, at));
        text = t->word;
        n = t->word_size;
        t->word_size = 0;
    }
    if (t->options.lower) {
        LAM_TRY(lower_word(t, text, &n));
        text = t->lowered;
    }
    LAM_TRY(lam_symbols_add(t->options.symbols, text, n, &id));
    return emit(t, id);
}

static lam_status use_words(lam_tokenizer *t, const unsigned char *s, size_t n, size_t *used)
{
    size_t i = 0, start = 0; /* the current word, or its part in this block, begins at start */
    while (i < n) {
        const unsigned char c = s[i];
        if (c > ' ' && c < 0x80) {
            i++;
            continue;
        }
        int32_t code = 0;
        int size;
        LAM_TRY(next_char(t, s + i, n - i, i, &code, &size));
        if (size == 0)
            break;
        if (lam_utf8_is_space(code)) {
            LAM_TRY(end_word(t, s + start, i - start, start));
            const unsigned char before = i > 0 ? s[i - 1] : t->last;
            if (c == '\r' || (c == '\n' && before != '\r'))
                LAM_TRY(emit(t, t->eos));
            start = i + (size_t)size;
        }
        i += (size_t)size;
    }
    *used = i;
    return keep_part(t, s + start, i - start, start);
}

/* ---- words and punctuation ---- */

/* The word before what is held, then that. */
static lam_status end_held(lam_tokenizer *t, bool right)
{
    char symbol[LAM_MARKED_MAX];
    int32_t id;
    LAM_TRY(end_word(t, NULL, 0, 0));
    if (t->held == 0)
        return LAM_OK;
    const size_t size = lam_word_mark(symbol, t->held, t->held_left, right);
    t->held = 0;
    LAM_TRY(lam_symbols_add(t->options.symbols, symbol, size, &id));
    return emit(t, id);
}

static lam_status add_word_char(lam_tokenizer *t, const unsigned char *s, size_t n, size_t at)
{
    char apostrophe[LAM_UTF8_MAX];
    if ((t->held == '\'' || t->held == 0x2019) && t->word_size > 0) { /* don't */
        const int size = lam_utf8_encode(apostrophe, t->held);
        LAM_TRY(keep_part(t, (const unsigned char *)apostrophe, (size_t)size, at));
        t->held = 0;
    } else if (t->held != 0) {
        LAM_TRY(end_held(t, true));
    }
    return keep_part(t, s, n, at);
}

static lam_status use_text(lam_tokenizer *t, const unsigned char *s, size_t n, size_t *used)
{
    size_t i = 0;
    while (i < n) {
        int32_t code = 0;
        int size;
        LAM_TRY(next_char(t, s + i, n - i, i, &code, &size));
        if (size == 0)
            break;
        if (lam_word_char(code)) {
            LAM_TRY(add_word_char(t, s + i, (size_t)size, i));
        } else if (lam_utf8_is_space(code)) {
            const unsigned char before = i > 0 ? s[i - 1] : t->last;
            LAM_TRY(end_held(t, false));
            if (code == '\r' || (code == '\n' && before != '\r'))
                LAM_TRY(emit(t, t->eos));
        } else {
            const bool left = t->word_size > 0 || t->held != 0;
            if (t->held != 0)
                LAM_TRY(end_held(t, false));
            t->held = code;
            t->held_left = left;
        }
        i += (size_t)size;
    }
    *used = i;
    return LAM_OK;
}

/* ---- the stream ---- */

static lam_status use(lam_tokenizer *t, const unsigned char *s, size_t n, size_t *used)
{
    LAM_TRY((t->options.kind == LAM_CHARS ? use_chars
             : t->options.blanks          ? use_words
                                          : use_text)(t, s, n, used));
    if (*used > 0)
        t->last = s[*used - 1];
    t->offset += *used;
    return LAM_OK;
}

lam_status lam_tokenizer_feed(lam_tokenizer *t, const void *bytes, size_t n)
{
    const unsigned char *s = bytes;
    size_t used;
    if (t->options.kind == LAM_BYTES)
        return feed_bytes(t, s, n);
    while (t->n_pending > 0 && n > 0) { /* complete the cut character byte by byte */
        t->pending[t->n_pending++] = *s++;
        n--;
        LAM_TRY(use(t, t->pending, t->n_pending, &used));
        if (used > 0)
            t->n_pending = 0;
    }
    if (n == 0)
        return LAM_OK;
    LAM_TRY(use(t, s, n, &used));
    t->n_pending = n - used;
    memcpy(t->pending, s + used, t->n_pending);
    return LAM_OK;
}

lam_status lam_tokenizer_finish(lam_tokenizer *t, lam_text_end end)
{
    if (t->n_pending > 0)
        return invalid(t, 0);
    if (t->options.kind == LAM_WORDS) {
        LAM_TRY(end_held(t, false));
        if (end == LAM_TEXT_COMPLETE && t->last != '\n' && t->last != '\r')
            LAM_TRY(emit(t, t->eos));
    }
    return flush(t);
}
