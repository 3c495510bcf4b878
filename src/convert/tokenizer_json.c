/* tokenizer_json.c -- reading tokenizer.json; tokenizer_json_save.c writes it. */
#include "convert/tokenizer_json.h"

#include "convert/numbered.h"
#include "data/byte_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- asking the JSON ---- */

static const char *type_of(const json_t *node)
{
    const char *type = json_string_value(json_object_get(node, "type"));
    return type != NULL ? type : "without a type";
}

static bool is_type(const json_t *node, const char *type)
{
    return strcmp(type_of(node), type) == 0;
}

/* A key that is missing, null, false, 0 or "" means nothing. */
static bool is_set(const json_t *node, const char *key)
{
    const json_t *value = json_object_get(node, key);
    return !(value == NULL || json_is_null(value) || json_is_false(value) ||
             (json_is_number(value) && json_number_value(value) == 0) ||
             (json_is_string(value) && json_string_length(value) == 0));
}

static lam_status unsupported(const char *path, const char *part, const char *what)
{
    return lam_fail(LAM_ERR_UNSUPPORTED, "%s: %s '%s' is not supported", path, part, what);
}

bool lam_tokenizer_json_is(const json_t *root)
{
    return json_is_object(json_object_get(root, "model")) &&
           json_object_get(root, "added_tokens") != NULL;
}

/* ---- how a text is cut ---- */

static lam_status read_normalizer(bool *nfc, const json_t *node, const char *path)
{
    const json_t *list = json_object_get(node, "normalizers");
    if (node == NULL || json_is_null(node))
        return LAM_OK;
    if (is_type(node, "Sequence")) {
        for (size_t i = 0; i < json_array_size(list); i++)
            LAM_TRY(read_normalizer(nfc, json_array_get(list, i), path));
        return LAM_OK;
    }
    if (!is_type(node, "NFC"))
        return unsupported(path, "normalizer", type_of(node));
    *nfc = true;
    return LAM_OK;
}

/* A regular expression whose matches are pieces.  "Removed" with invert drops what lies between them, of which
 * these patterns leave nothing. */
static lam_status read_split(const char **pattern, const json_t *node, const char *path)
{
    const char *regex =
        json_string_value(json_object_get(json_object_get(node, "pattern"), "Regex"));
    const char *behavior = json_string_value(json_object_get(node, "behavior"));
    const bool invert = json_is_true(json_object_get(node, "invert"));
    if (regex == NULL)
        return unsupported(path, "pre_tokenizer", "Split by a string");
    if (behavior == NULL || !((strcmp(behavior, "Isolated") == 0 && !invert) ||
                              (strcmp(behavior, "Removed") == 0 && invert)))
        return unsupported(path, "behavior of the pre_tokenizer Split",
                           behavior != NULL ? behavior : "none");
    if (*pattern != NULL)
        return unsupported(path, "pre_tokenizer", "Sequence of several Splits");
    *pattern = regex;
    return LAM_OK;
}

static lam_status read_byte_level(const char **pattern, const json_t *node, const char *path)
{
    if (is_set(node, "add_prefix_space"))
        return unsupported(path, "pre_tokenizer ByteLevel with", "add_prefix_space");
    if (json_is_false(json_object_get(node, "use_regex")))
        return LAM_OK;
    if (*pattern != NULL)
        return unsupported(path, "pre_tokenizer", "ByteLevel with use_regex behind Split");
    *pattern = lam_pattern_named("gpt2");
    return LAM_OK;
}

/* Sets *pattern; *bytes: there is a ByteLevel. */
static lam_status read_pre_tokenizer(const char **pattern, bool *bytes, const json_t *node,
                                     const char *path)
{
    const json_t *list = json_object_get(node, "pretokenizers");
    if (is_type(node, "Sequence")) {
        for (size_t i = 0; i < json_array_size(list); i++)
            LAM_TRY(read_pre_tokenizer(pattern, bytes, json_array_get(list, i), path));
        return LAM_OK;
    }
    if (is_type(node, "ByteLevel")) {
        *bytes = true;
        return read_byte_level(pattern, node, path);
    }
    if (is_type(node, "Split") && !*bytes)
        return read_split(pattern, node, path);
    return unsupported(path, "pre_tokenizer", json_is_object(node) ? type_of(node) : "none");
}

/* ---- tokens ---- */

static lam_status read_vocab(lam_numbered *tokens, const json_t *vocab, const json_t *added,
                             const char *path)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)vocab, key, value) {
        char bytes[2 * LAM_TOKEN_MAX];
        const size_t size = strlen(key);
        if (json_object_get(added, key) != NULL)
            continue; /* it comes with the added tokens */
        if (!json_is_integer(value) || size > sizeof bytes)
            return lam_fail(LAM_ERR_FORMAT,
                            "%s: token '%.40s' has no number, or is longer than %d bytes", path,
                            key, LAM_TOKEN_MAX);
        const long n = lam_byte_text_read(bytes, key, size);
        if (n < 0)
            return lam_fail(
                LAM_ERR_UNSUPPORTED,
                "%s: not a byte-level BPE: token '%.40s' is not written in its alphabet", path,
                key);
        LAM_TRY(lam_numbered_add(tokens, json_integer_value(value), bytes, (size_t)n));
    }
    return LAM_OK;
}

/* Added tokens that are not special stand in any text as they are; ours are read when asked for only.  That may be for
 * markup such as <tool_call>, not for blanks. */
static lam_status check_added(const json_t *item, const char *content, const char *path)
{
    static const char *const ways[] = {"single_word", "lstrip", "rstrip"};
    for (int i = 0; i < 3; i++)
        if (is_set(item, ways[i]))
            return lam_fail(LAM_ERR_UNSUPPORTED, "%s: added token '%.40s' with %s is not supported",
                            path, content, ways[i]);
    if (!is_set(item, "special") && *content != '<' && *content != '[')
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "%s: added token '%.40s', which is not special, is not supported", path,
                        content);
    return LAM_OK;
}

static lam_status read_added(lam_numbered *tokens, const json_t *list, json_t *names,
                             const json_t *vocab, const char *path)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i), *id = json_object_get(item, "id");
        const char *content = json_string_value(json_object_get(item, "content"));
        const json_t *listed = content != NULL ? json_object_get(vocab, content) : NULL;
        if (content == NULL || !json_is_integer(id))
            return lam_fail(LAM_ERR_FORMAT, "%s: added token %zu has no content or no id", path, i);
        LAM_TRY(check_added(item, content, path));
        if (listed != NULL && json_integer_value(listed) != json_integer_value(id))
            return lam_fail(LAM_ERR_FORMAT, "%s: token '%.40s' has two numbers", path, content);
        LAM_TRY(lam_numbered_special(tokens, json_integer_value(id), content, strlen(content)));
        if (json_object_set_new(names, content, json_true()) != 0)
            return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu added tokens", path, i);
    }
    return LAM_OK;
}

/* ---- merges ---- */

/* "a b" or ["a", "b"]: the two tokens. */
static bool split_merge(const json_t *item, const json_t *vocab, lam_merge *out)
{
    const json_t *left, *right;
    char first[4 * LAM_TOKEN_MAX];
    const char *text = json_string_value(item), *blank = text != NULL ? strchr(text, ' ') : NULL;
    if (json_array_size(item) == 2) {
        const char *a = json_string_value(json_array_get(item, 0));
        const char *b = json_string_value(json_array_get(item, 1));
        left = a != NULL ? json_object_get(vocab, a) : NULL;
        right = b != NULL ? json_object_get(vocab, b) : NULL;
    } else {
        if (blank == NULL || (size_t)(blank - text) >= sizeof first)
            return false;
        memcpy(first, text, (size_t)(blank - text));
        first[blank - text] = '\0';
        left = json_object_get(vocab, first);
        right = json_object_get(vocab, blank + 1);
    }
    if (!json_is_integer(left) || !json_is_integer(right))
        return false;
    *out = (lam_merge){(int32_t)json_integer_value(left), (int32_t)json_integer_value(right)};
    return true;
}

static lam_status read_merges(lam_merge **out, const json_t *list, const json_t *vocab,
                              const char *path)
{
    const size_t n = json_array_size(list);
    *out = malloc((n + 1) * sizeof **out);
    if (*out == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu merges", path, n);
    for (size_t i = 0; i < n; i++)
        if (!split_merge(json_array_get(list, i), vocab, &(*out)[i]))
            return lam_fail(LAM_ERR_FORMAT, "%s: merge %zu does not join two tokens", path, i);
    return LAM_OK;
}

/* ---- the whole ---- */

static lam_status check_model(const json_t *model, const char *path)
{
    static const char *const keys[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                       "byte_fallback"};
    /* Old files do not name the type of a BPE. */
    if (json_object_get(model, "type") != NULL && !is_type(model, "BPE"))
        return unsupported(path, "model", type_of(model));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_set(model, keys[i]))
            return unsupported(path, "model BPE with", keys[i]);
    if (!json_is_object(json_object_get(model, "vocab")) ||
        !json_is_array(json_object_get(model, "merges")))
        return lam_fail(LAM_ERR_FORMAT, "%s: its model has no vocabulary or no merges", path);
    return LAM_OK;
}

/* What must go away at the end. */
typedef struct reading {
    lam_numbered *tokens;
    lam_merge *merges;
    json_t *names; /* of added tokens */
} reading;

static lam_status read_all(reading *r, lam_vocab **out, const json_t *root, const char *path)
{
    const json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
    const json_t *merges = json_object_get(model, "merges");
    lam_bpe_rules rules = {.whole = is_set(model, "ignore_merges")};
    bool bytes = false;
    LAM_TRY(check_model(model, path));
    LAM_TRY(read_normalizer(&rules.nfc, json_object_get(root, "normalizer"), path));
    LAM_TRY(
        read_pre_tokenizer(&rules.pattern, &bytes, json_object_get(root, "pre_tokenizer"), path));
    if (!bytes || rules.pattern == NULL)
        return unsupported(path, "pre_tokenizer",
                           bytes ? "ByteLevel without a pattern" : "no ByteLevel");
    LAM_TRY(lam_numbered_create(&r->tokens, path));
    if ((r->names = json_object()) == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
    LAM_TRY(read_added(r->tokens, json_object_get(root, "added_tokens"), r->names, vocab, path));
    LAM_TRY(read_vocab(r->tokens, vocab, r->names, path));
    LAM_TRY(read_merges(&r->merges, merges, vocab, path));
    rules.merges = r->merges;
    rules.n_merges = json_array_size(merges);
    return lam_numbered_vocab(out, r->tokens, &rules);
}

lam_status lam_tokenizer_json_read(lam_vocab **out, const json_t *root, const char *path)
{
    reading r = {0};
    *out = NULL;
    const lam_status status = read_all(&r, out, root, path);
    lam_numbered_free(r.tokens);
    free(r.merges);
    json_decref(r.names);
    return status;
}
