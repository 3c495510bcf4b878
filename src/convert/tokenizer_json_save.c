/* tokenizer_json_save.c -- writing tokenizer.json. */
#include "convert/tokenizer_json.h"

#include "core/file.h"
#include "data/byte_text.h"
#include "io/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writing {
    const lam_vocab *vocab;
    const lam_bpe *bpe;
    const lam_bpe_rules *rules;
} writing;

/* A token as the file writes it. */
static const char *spell(const writing *w, int32_t id, char text[2 * LAM_TOKEN_MAX + 1])
{
    size_t size;
    const char *bytes = lam_vocab_symbol(w->vocab, id, &size);
    if (lam_bpe_is_special(w->bpe, id))
        return bytes;
    lam_byte_text(text, bytes, size);
    return text;
}

/* All of these are NULL without memory. */
static json_t *added_tokens(const writing *w)
{
    json_t *list = json_array();
    for (size_t i = 0; i < w->rules->n_special; i++) {
        char text[2 * LAM_TOKEN_MAX + 1];
        const int32_t id = w->rules->special[i];
        list =
            lam_json_add(list, json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (int)id,
                                         "content", spell(w, id, text), "single_word", 0, "lstrip",
                                         0, "rstrip", 0, "normalized", 0, "special", 1));
    }
    return list;
}

static json_t *byte_level(int use_regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 0, "use_regex", use_regex);
}

/* GPT-2's own pattern is part of ByteLevel, and known to programs that know no other. */
static json_t *pre_tokenizer(const writing *w)
{
    const char *pattern = w->rules->pattern;
    if (strcmp(pattern, lam_pattern_named("gpt2")) == 0)
        return byte_level(1);
    return json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence", "pretokenizers",
                     "type", "Split", "pattern", "Regex", pattern, "behavior", "Isolated", "invert",
                     0, byte_level(0));
}

static json_t *vocabulary(const writing *w)
{
    json_t *tokens = json_object();
    for (int32_t i = 0; i < lam_vocab_size(w->vocab); i++) {
        char text[2 * LAM_TOKEN_MAX + 1];
        tokens = lam_json_set(tokens, spell(w, i, text), json_integer(i));
    }
    return tokens;
}

/* ---- merges ---- */

/* "left right". */
static json_t *add_merge(const writing *w, json_t *list, lam_merge m)
{
    char left[2 * LAM_TOKEN_MAX + 1], right[2 * LAM_TOKEN_MAX + 1], both[4 * LAM_TOKEN_MAX + 2];
    snprintf(both, sizeof both, "%s %s", spell(w, m.left, left), spell(w, m.right, right));
    return lam_json_add(list, json_string(both));
}

static int by_numbers(const void *pa, const void *pb)
{
    const lam_merge *a = pa, *b = pb;
    return a->left != b->left ? (a->left > b->left) - (a->left < b->left)
                              : (a->right > b->right) - (a->right < b->right);
}

static int32_t find_token(const writing *w, const char *bytes, size_t size)
{
    const int32_t id = lam_vocab_find(w->vocab, bytes, size);
    return id >= 0 && lam_bpe_is_special(w->bpe, id) ? -1 : id;
}

/* Ranks that are numbers become a list of all ways to make a token of two, token by token, as Hugging Face converts
 * such files. */
static json_t *add_ways(const writing *w, json_t *list, int32_t id)
{
    lam_merge ways[LAM_TOKEN_MAX];
    size_t n = 0, size;
    const char *bytes = lam_vocab_symbol(w->vocab, id, &size);
    for (size_t k = 1; k < size; k++) {
        const lam_merge m = {find_token(w, bytes, k), find_token(w, bytes + k, size - k)};
        if (m.left >= 0 && m.right >= 0)
            ways[n++] = m;
    }
    qsort(ways, n, sizeof *ways, by_numbers);
    for (size_t i = 0; i < n; i++)
        list = add_merge(w, list, ways[i]);
    return list;
}

static json_t *merges(const writing *w)
{
    json_t *list = json_array();
    for (size_t i = 0; i < w->rules->n_merges; i++)
        list = add_merge(w, list, w->rules->merges[i]);
    for (int32_t i = 0; i < lam_vocab_size(w->vocab) && w->rules->merges == NULL; i++)
        list = lam_bpe_is_special(w->bpe, i) ? list : add_ways(w, list, i);
    return list;
}

/* ---- the whole ---- */

static json_t *describe(const writing *w)
{
    json_t *model = json_pack(
        "{s:s, s:n, s:n, s:s, s:s, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "", "end_of_word_suffix", "", "fuse_unk", 0, "byte_fallback",
        0, "ignore_merges", w->rules->whole, "vocab", vocabulary(w), "merges", merges(w));
    json_t *normalizer = w->rules->nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", added_tokens(w), "normalizer",
                     normalizer, "pre_tokenizer", pre_tokenizer(w), "post_processor", byte_level(1),
                     "decoder", byte_level(1), "model", model);
}

lam_status lam_tokenizer_json_save(const lam_vocab *vocab, const char *path)
{
    const writing w = {vocab, lam_vocab_bpe(vocab),
                       lam_vocab_bpe(vocab) ? lam_bpe_rules_of(lam_vocab_bpe(vocab)) : NULL};
    if (w.bpe == NULL)
        return lam_fail(
            LAM_ERR_ARG,
            "%s: only a vocabulary of byte pairs becomes a tokenizer.json, not one of %s", path,
            lam_text_kind_name(lam_vocab_kind(vocab)));
    return lam_json_save(path, describe(&w), JSON_INDENT(1));
}
