/* vocab_json_bpe.c -- byte pairs in vocab.json: tokens in GPT-2's alphabet of bytes, special ones as they are written;
 * pattern, merges as pairs of numbers in one list, and which tokens are special. */
#include "data/vocab_int.h"

#include "data/byte_text.h"
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

json_t *lam_vocab_json_token(const lam_vocab *v, int32_t id)
{
    size_t size;
    char text[2 * LAM_TOKEN_MAX + 1];
    const char *bytes = lam_vocab_symbol(v, id, &size);
    if (lam_bpe_is_special(v->bpe, id))
        return json_stringn(bytes, size);
    const size_t n = lam_byte_text(text, bytes, size);
    return json_stringn(text, n);
}

static json_t *merges_to_json(const lam_bpe_rules *r)
{
    if (r->merges == NULL)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_merges; i++) {
        list = lam_json_add(list, json_integer(r->merges[i].left));
        list = lam_json_add(list, json_integer(r->merges[i].right));
    }
    return list;
}

static json_t *special_to_json(const lam_bpe_rules *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_special; i++)
        list = lam_json_add(list, json_integer(r->special[i]));
    return list;
}

json_t *lam_vocab_json_add_bpe(json_t *root, const lam_bpe *bpe)
{
    const lam_bpe_rules *r = lam_bpe_rules_of(bpe);
    root = lam_json_set(root, "pattern", json_string(r->pattern));
    root = lam_json_set(root, "nfc", json_boolean(r->nfc));
    root = lam_json_set(root, "whole", json_boolean(r->whole));
    root = lam_json_set(root, "special", special_to_json(r));
    root = lam_json_set(root, "separator",
                        r->separator >= 0 ? json_integer(r->separator) : json_null());
    return lam_json_set(root, "merges", merges_to_json(r));
}

/* ---- reading ---- */

/* What is read, until the vocabulary has copies. */
typedef struct reading {
    const char *path;
    size_t n; /* tokens */
    lam_symbol *list;
    char *bytes; /* of all of them */
    int32_t *special;
    size_t n_special;
    lam_merge *merges;
    size_t n_merges;
} reading;

static lam_status damaged(const reading *r, const char *what, size_t i)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: %s %zu is none", r->path, what, i);
}

static bool read_number(const json_t *item, int32_t *out)
{
    const json_int_t value = json_integer_value(item);
    *out = (int32_t)value;
    return json_is_integer(item) && value >= 0 && value <= INT32_MAX;
}

static lam_status read_special(reading *r, const json_t *list)
{
    r->n_special = json_array_size(list);
    r->special = malloc((r->n_special + 1) * sizeof *r->special);
    if (r->special == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for special tokens", r->path);
    for (size_t i = 0; i < r->n_special; i++)
        if (!read_number(json_array_get(list, i), &r->special[i]))
            return damaged(r, "special token", i);
    return LAM_OK;
}

static lam_status read_merges(reading *r, const json_t *list)
{
    if (json_is_null(list))
        return LAM_OK;
    r->n_merges = json_array_size(list) / 2;
    r->merges = malloc((r->n_merges + 1) * sizeof *r->merges);
    if (r->merges == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu merges", r->path, r->n_merges);
    for (size_t i = 0; i < r->n_merges; i++)
        if (!read_number(json_array_get(list, 2 * i), &r->merges[i].left) ||
            !read_number(json_array_get(list, 2 * i + 1), &r->merges[i].right))
            return damaged(r, "merge", i);
    return LAM_OK;
}

/* Bytes of all the strings, which are no fewer than those they stand for. */
static size_t total_size(const json_t *list)
{
    size_t total = 1;
    for (size_t i = 0; i < json_array_size(list); i++)
        total += json_string_length(json_array_get(list, i));
    return total;
}

static lam_status read_tokens(reading *r, const json_t *symbols, const json_t *counts)
{
    r->n = json_array_size(symbols);
    r->list = malloc(r->n * sizeof *r->list);
    char *to = r->bytes = malloc(total_size(symbols));
    if (r->list == NULL || r->bytes == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu tokens", r->path, r->n);
    for (size_t i = 0, next = 0; i < r->n; i++) { /* special tokens are listed in rising order */
        const json_t *item = json_array_get(symbols, i), *count = json_array_get(counts, i);
        const char *text = json_string_value(item);
        long size = (long)json_string_length(item);
        const bool special = next < r->n_special && (size_t)r->special[next] == i;
        next += special;
        if (text != NULL && special)
            memcpy(to, text, (size_t)size);
        else
            size = text != NULL ? lam_byte_text_read(to, text, (size_t)size) : -1;
        if (size < 0)
            return damaged(r, "token", i);
        if (!json_is_integer(count) || json_integer_value(count) < 0)
            return damaged(r, "count", i);
        r->list[i] = (lam_symbol){to, (size_t)size, json_integer_value(count)};
        to += size;
    }
    return LAM_OK;
}

static lam_status read_all(reading *r, lam_vocab **out, const json_t *root)
{
    const char *pattern = NULL;
    int whole = 0, nfc = 0;
    const json_t *special, *merges, *separator, *symbols, *counts;
    json_error_t why;
    if (json_unpack_ex((json_t *)root, &why, 0, "{s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o}",
                       "pattern", &pattern, "nfc", &nfc, "whole", &whole, "special", &special,
                       "separator", &separator, "merges", &merges, "symbols", &symbols, "counts",
                       &counts) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: not a vocabulary: %s", r->path, why.text);
    lam_bpe_rules rules = {
        .pattern = pattern, .separator = -1, .whole = whole != 0, .nfc = nfc != 0};
    if (!json_is_array(special) || !(json_is_array(merges) || json_is_null(merges)) ||
        json_array_size(merges) % 2 != 0 ||
        !(json_is_null(separator) || read_number(separator, &rules.separator)))
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: not a vocabulary: special tokens, separator or merges are missing",
                        r->path);
    LAM_TRY(read_special(r, special));
    LAM_TRY(read_merges(r, merges));
    LAM_TRY(read_tokens(r, symbols, counts));
    rules.special = r->special;
    rules.n_special = r->n_special;
    rules.merges = r->merges;
    rules.n_merges = r->n_merges;
    return lam_vocab_create_bpe(out, r->list, r->n, &rules, r->path);
}

lam_status lam_vocab_json_bpe(lam_vocab **out, const json_t *root, const char *path)
{
    reading r = {.path = path};
    *out = NULL;
    const lam_status status = read_all(&r, out, root);
    free(r.list);
    free(r.bytes);
    free(r.special);
    free(r.merges);
    return status;
}
