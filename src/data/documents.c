/* documents.c -- see documents.h.  Of JSON lines one line is held at a time, of other texts nothing. */
#include "data/documents.h"

#include "core/grow.h"
#include "io/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const lam_document_kind_names[] = {"off", "lines", "files", "json", NULL};

static const size_t LINE_MAX_BYTES = (size_t)1 << 28; /* of JSON */

struct lam_documents {
    lam_documents_options o;
    const char *name;
    int64_t line; /* from 1 */
    bool open;    /* the document has text already */
    char *held;   /* the line of JSON so far */
    size_t n_held, room;
};

lam_status lam_document_separator(int32_t *out, const lam_vocab *vocab, const char *name)
{
    const lam_text_kind kind = lam_vocab_kind(vocab);
    *out = kind == LAM_BPE || kind == LAM_WORDS ? lam_vocab_eos(vocab)
                                                : lam_vocab_find(vocab, LAM_DOCUMENT_END, 1);
    return *out >= 0
               ? LAM_OK
               : lam_fail(LAM_ERR_ARG, "%s%s has no token that could end a document%s",
                          name != NULL ? "the vocabulary of " : "the vocabulary",
                          name != NULL ? name : "",
                          kind == LAM_CHARS ? ": documents of characters end with U+001E" : "");
}

lam_status lam_documents_create(lam_documents **out, const lam_documents_options *options)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to read documents");
    (*out)->o = *options;
    return LAM_OK;
}

void lam_documents_free(lam_documents *d)
{
    if (d == NULL)
        return;
    free(d->held);
    free(d);
}

void lam_documents_start(lam_documents *d, const char *name)
{
    d->name = name;
    d->line = 1;
    d->n_held = 0;
    d->open = false;
}

/* ---- one document ---- */

/* Text of bytes and characters must not hold what ends a document of theirs. */
static lam_status check_text(const lam_documents *d, const char *text, size_t n)
{
    const bool plain = d->o.text == LAM_BYTES || d->o.text == LAM_CHARS;
    if (!plain || memchr(text, *LAM_DOCUMENT_END, n) == NULL)
        return LAM_OK;
    return lam_fail(
        LAM_ERR_FORMAT,
        "%s: line %lld has U+001E (RS), which ends documents of %s; remove it, or use --corpus bpe",
        d->name, (long long)d->line, lam_text_kind_name(d->o.text));
}

/* Words end lines with <eos>, which ends their documents: a document becomes one line. */
static lam_status put_one_line(lam_documents *d, const char *text, size_t n)
{
    for (size_t at = 0, from = 0; at <= n; at++) {
        if (at < n && text[at] != '\n' && text[at] != '\r')
            continue;
        if (at > from)
            LAM_TRY(d->o.put(d->o.user, text + from, at - from));
        if (at < n)
            LAM_TRY(d->o.put(d->o.user, " ", 1));
        from = at + 1;
    }
    return LAM_OK;
}

static lam_status put(lam_documents *d, const char *text, size_t n)
{
    if (n == 0)
        return LAM_OK;
    d->open = true;
    LAM_TRY(check_text(d, text, n));
    return d->o.text == LAM_WORDS ? put_one_line(d, text, n) : d->o.put(d->o.user, text, n);
}

static lam_status end(lam_documents *d)
{
    const bool was_open = d->open;
    d->open = false;
    return was_open ? d->o.end(d->o.user) : LAM_OK;
}

/* ---- JSON lines ---- */

static lam_status hold(lam_documents *d, const char *bytes, size_t n)
{
    if (n > LINE_MAX_BYTES - d->n_held)
        return lam_fail(LAM_ERR_FORMAT, "%s: line %lld is longer than %zu bytes", d->name,
                        (long long)d->line, LINE_MAX_BYTES);
    LAM_TRY(lam_grow(&d->held, &d->room, d->n_held + n, 1, "bytes of a line"));
    if (n > 0)
        memcpy(d->held + d->n_held, bytes, n);
    d->n_held += n;
    return LAM_OK;
}

static lam_status put_field(lam_documents *d, const json_t *object)
{
    const json_t *text = json_object_get(object, d->o.field);
    if (!json_is_object(object))
        return lam_fail(LAM_ERR_FORMAT, "%s: line %lld is no JSON object", d->name,
                        (long long)d->line);
    if (!json_is_string(text))
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: line %lld has no field \"%s\" with text (--json-field names it)",
                        d->name, (long long)d->line, d->o.field);
    LAM_TRY(put(d, json_string_value(text), json_string_length(text)));
    return end(d);
}

static bool is_blank(const char *text, size_t n)
{
    while (n > 0 && strchr(" \t\r", *text) != NULL && *text != '\0')
        text++, n--;
    return n == 0;
}

static lam_status end_json(lam_documents *d)
{
    json_t *object;
    char label[32];
    if (is_blank(d->held, d->n_held))
        return LAM_OK;
    snprintf(label, sizeof label, "line %lld", (long long)d->line);
    if (lam_json_parse(&object, label, d->held, d->n_held) != LAM_OK)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s", d->name, lam_error());
    const lam_status status = put_field(d, object);
    json_decref(object);
    d->n_held = 0;
    return status;
}

/* ---- a file ---- */

static lam_status put_part(lam_documents *d, const char *bytes, size_t n)
{
    return d->o.kind == LAM_DOCUMENTS_JSON ? hold(d, bytes, n) : put(d, bytes, n);
}

static lam_status end_line(lam_documents *d)
{
    LAM_TRY(d->o.kind == LAM_DOCUMENTS_JSON ? end_json(d) : end(d));
    d->line++;
    return LAM_OK;
}

lam_status lam_documents_feed(lam_documents *d, const void *bytes, size_t n)
{
    const char *at = bytes;
    if (d->o.kind == LAM_DOCUMENTS_FILES)
        return put(d, at, n);
    for (const char *newline; n > 0 && (newline = memchr(at, '\n', n)) != NULL;) {
        LAM_TRY(put_part(d, at, (size_t)(newline - at)));
        LAM_TRY(end_line(d));
        n -= (size_t)(newline - at) + 1;
        at = newline + 1;
    }
    return put_part(d, at, n);
}

lam_status lam_documents_finish(lam_documents *d)
{
    return d->o.kind == LAM_DOCUMENTS_JSON ? end_json(d) : end(d);
}
