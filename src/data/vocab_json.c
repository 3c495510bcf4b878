/* vocab_json.c -- vocab.json: kind, the rules of the text, symbols in the order of their numbers,
 * and their counts.  A byte is written as its value, since bytes alone are not valid JSON text.  What byte pairs add is
 * in vocab_json_bpe.c.  docs/formats.md describes it. */
#include "data/vocab_int.h"

#include "core/file.h"
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB_VERSION = 1 };
static const size_t JSON_LIMIT = (size_t)1 << 30;

/* symbols[] and counts[]; NULL without memory. */
static json_t *symbols_to_json(const lam_vocab *v)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < lam_vocab_size(v); i++) {
        size_t size;
        const char *text = lam_vocab_symbol(v, i, &size);
        list = lam_json_add(list, v->bpe != NULL         ? lam_vocab_json_token(v, i)
                                  : v->kind == LAM_BYTES ? json_integer((unsigned char)*text)
                                                         : json_stringn(text, size));
    }
    return list;
}

static json_t *counts_to_json(const lam_vocab *v)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < lam_vocab_size(v); i++)
        list = lam_json_add(list, json_integer(v->counts[i]));
    return list;
}

lam_status lam_vocab_save(const lam_vocab *v, const char *path)
{
    json_t *root =
        json_pack("{s:s, s:i, s:s, s:i, s:b, s:b, s:o, s:o}", "format", "lamemo-vocab", "version",
                  VOCAB_VERSION, "kind", lam_text_kind_name(v->kind), "size", lam_vocab_size(v),
                  "lower", v->lower, "drop_newlines", v->drop_newlines, "symbols",
                  symbols_to_json(v), "counts", counts_to_json(v));
    if (v->kind == LAM_WORDS)
        root = lam_json_set(root, "words", json_string(v->blanks ? "blanks" : "text"));
    if (v->bpe != NULL)
        root = lam_vocab_json_add_bpe(root, v->bpe);
    return lam_json_save(path, root, JSON_INDENT(1));
}

/* The bytes of a symbol; NULL if it is none. */
static const char *symbol_text(const json_t *symbol, lam_text_kind kind, char byte[1], size_t *size)
{
    const json_int_t value = json_integer_value(symbol);
    if (kind == LAM_BYTES) {
        byte[0] = (char)value;
        *size = 1;
        return json_is_integer(symbol) && value >= 0 && value <= 255 ? byte : NULL;
    }
    *size = json_string_length(symbol);
    return *size <= LAM_SYMBOL_MAX ? json_string_value(symbol) : NULL;
}

static lam_status fill(lam_vocab *v, const json_t *symbols, const json_t *counts, const char *path)
{
    for (size_t i = 0; i < json_array_size(symbols); i++) {
        const json_t *count = json_array_get(counts, i);
        char byte[1];
        size_t size;
        const char *text = symbol_text(json_array_get(symbols, i), v->kind, byte, &size);
        if (text == NULL)
            return lam_fail(LAM_ERR_FORMAT, "%s: symbol %zu is %s", path, i,
                            v->kind == LAM_BYTES ? "not a byte" : "no string, or too long");
        if (lam_vocab_find(v, text, size) >= 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: symbol %zu is there twice", path, i);
        if (!json_is_integer(count) || json_integer_value(count) < 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: the count of symbol %zu is no count", path, i);
        LAM_TRY(lam_vocab_append(v, text, size, json_integer_value(count)));
    }
    return LAM_OK;
}

/* "size" repeats what the list says; a program that reads only this number must not be misled. */
static lam_status check_size(const json_t *size, size_t symbols, const char *path)
{
    if (size && (!json_is_integer(size) || json_integer_value(size) != (json_int_t)symbols))
        return lam_fail(LAM_ERR_FORMAT, "%s: \"size\" is not the number of its symbols, %zu", path,
                        symbols);
    return LAM_OK;
}

static lam_status from_json(lam_vocab **out, json_t *root, const char *path)
{
    const char *format = NULL, *kind = NULL;
    int version = 0, lower = 0, drop = 0;
    json_t *symbols = NULL, *counts = NULL;
    json_error_t why;
    if (json_unpack_ex(root, &why, 0, "{s:s, s:i, s:s, s:b, s:b, s:o, s:o}", "format", &format,
                       "version", &version, "kind", &kind, "lower", &lower, "drop_newlines", &drop,
                       "symbols", &symbols, "counts", &counts) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: not a vocabulary: %s", path, why.text);
    if (strcmp(format, "lamemo-vocab") != 0 || version != VOCAB_VERSION)
        return lam_fail(LAM_ERR_FORMAT, "%s: is '%s' version %d, not lamemo-vocab version %d", path,
                        format, version, VOCAB_VERSION);
    const lam_text_kind k = lam_text_kind_find(kind);
    if (k == LAM_KINDS)
        return lam_fail(LAM_ERR_FORMAT, "%s: unknown kind of symbols '%s'", path, kind);
    if (!json_is_array(symbols) || !json_is_array(counts) || json_array_size(symbols) == 0 ||
        json_array_size(symbols) != json_array_size(counts))
        return lam_fail(LAM_ERR_FORMAT, "%s: needs one count for each of its symbols", path);
    LAM_TRY(check_size(json_object_get(root, "size"), json_array_size(symbols), path));
    if (k == LAM_BPE)
        return lam_vocab_json_bpe(out, root, path);

    /* older vocabularies do not say what words are */
    const char *words = json_string_value(json_object_get(root, "words"));
    if (words != NULL && strcmp(words, "blanks") != 0 && strcmp(words, "text") != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: unknown kind of words '%s'", path, words);
    const lam_vocab_rules rules = {.kind = k,
                                   .lower = lower != 0,
                                   .blanks = words == NULL || strcmp(words, "blanks") == 0,
                                   .drop_newlines = drop != 0};
    LAM_TRY(lam_vocab_start(out, &rules, json_array_size(symbols)));
    lam_status status = fill(*out, symbols, counts, path);
    if (status == LAM_OK && k == LAM_WORDS && (*out)->eos < 0)
        status = lam_fail(LAM_ERR_FORMAT, "%s: a vocabulary of words without <eos>", path);
    if (status != LAM_OK) {
        lam_vocab_free(*out);
        *out = NULL;
    }
    return status;
}

lam_status lam_vocab_load(lam_vocab **out, const char *path)
{
    json_t *root;
    *out = NULL;
    LAM_TRY(lam_json_load(&root, path, JSON_LIMIT));
    const lam_status status = from_json(out, root, path);
    json_decref(root);
    return status;
}
