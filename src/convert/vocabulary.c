/* vocabulary.c -- see vocabulary.h. */
#include "convert/vocabulary.h"

#include "convert/tiktoken.h"
#include "convert/tokenizer_json.h"
#include "core/file.h"
#include "data/utf8.h"
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 30 };

/* Symbols by number, wherever they came from. */
typedef struct words {
    const char *label;
    lam_py_text *v;
    size_t n;
    const lam_py *counter; /* NULL: not counted */
    bool lower;
} words;

/* ---- which kind ---- */

static int byte_value(lam_py_text w)
{
    int value = 0;
    if (w.n < 1 || w.n > 3 || (w.n > 1 && w.s[0] == '0'))
        return -1;
    for (size_t i = 0; i < w.n; i++) {
        if (w.s[i] < '0' || w.s[i] > '9')
            return -1;
        value = 10 * value + (w.s[i] - '0');
    }
    return value <= 255 ? value : -1;
}

static int is_text(lam_py_text w)
{
    for (size_t at = 0; at < w.n;) {
        int32_t codepoint;
        const int k = lam_utf8_decode((const unsigned char *)w.s + at, w.n - at, &codepoint);
        if (k <= 0 || codepoint == 0)
            return 0;
        at += (size_t)k;
    }
    return w.n > 0;
}

static int is_character(lam_py_text w)
{
    int32_t codepoint;
    return w.n > 0 && lam_utf8_decode((const unsigned char *)w.s, w.n, &codepoint) == (int)w.n;
}

static int equals(lam_py_text w, const char *text)
{
    return w.n == strlen(text) && memcmp(w.s, text, w.n) == 0;
}

static int holds(const words *all, const char *text)
{
    for (size_t i = 0; i < all->n; i++)
        if (equals(all->v[i], text))
            return 1;
    return 0;
}

static lam_status choose_kind(const words *all, lam_text_kind *kind)
{
    int bytes = 1, characters = 1;
    for (size_t i = 0; i < all->n; i++) {
        bytes &= byte_value(all->v[i]) >= 0;
        characters &= is_character(all->v[i]);
        if (!is_text(all->v[i]))
            return lam_fail(LAM_ERR_FORMAT, "%s: symbol %zu of the vocabulary is not UTF-8 text",
                            all->label, i);
    }
    *kind = holds(all, "<eos>") ? LAM_WORDS
            : bytes             ? LAM_BYTES
            : characters        ? LAM_CHARS
                                : LAM_WORDS;
    if (*kind == LAM_WORDS && !holds(all, "<eos>"))
        return lam_fail(
            LAM_ERR_UNSUPPORTED,
            "%s: its vocabulary is neither of bytes nor of characters, and of words without <eos>",
            all->label);
    return LAM_OK;
}

/* ---- the vocabulary ---- */

typedef struct counted {
    lam_py_text word;
    int64_t count;
} counted;

static int by_text(const void *pa, const void *pb)
{
    const counted *a = pa, *b = pb;
    const size_t n = a->word.n < b->word.n ? a->word.n : b->word.n;
    const int order = memcmp(a->word.s, b->word.s, n);
    return order != 0 ? order : (a->word.n > b->word.n) - (a->word.n < b->word.n);
}

/* counts[i] of every symbol; 0 where it was not counted. */
static lam_status fill_counts(const words *all, int64_t *counts)
{
    const lam_py_list *pairs = lam_py_pairs(all->counter);
    const size_t n = pairs ? pairs->n / 2 : 0;
    size_t used = 0;
    counted *table = malloc((n + 1) * sizeof *table);
    if (!table)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu counts", all->label, n);
    for (size_t i = 0; i < n; i++)
        if (lam_py_is(pairs->v[2 * i], LAM_PY_TEXT) && lam_py_is(pairs->v[2 * i + 1], LAM_PY_INT) &&
            pairs->v[2 * i + 1]->as.integer >= 0)
            table[used++] = (counted){pairs->v[2 * i]->as.text, pairs->v[2 * i + 1]->as.integer};
    qsort(table, used, sizeof *table, by_text);
    for (size_t i = 0; i < all->n; i++) {
        const counted wanted = {all->v[i], 0};
        const counted *found = bsearch(&wanted, table, used, sizeof *table, by_text);
        counts[i] = found ? found->count : 0;
    }
    free(table);
    return LAM_OK;
}

/* What the symbol is in our vocabularies; `byte` holds it where it is one. */
static lam_py_text symbol_of(const words *all, size_t i, lam_text_kind kind, bool underscore,
                             char *byte)
{
    if (kind == LAM_BYTES)
        *byte = (char)byte_value(all->v[i]);
    else if (kind == LAM_CHARS && underscore && equals(all->v[i], "_"))
        *byte = ' ';
    else
        return all->v[i];
    return (lam_py_text){byte, 1};
}

static lam_status build(lam_vocab **out, const words *all)
{
    lam_vocab_rules rules = {.lower = all->lower, .blanks = true};
    lam_status status = choose_kind(all, &rules.kind);
    if (status != LAM_OK)
        return status;
    const bool underscore = !holds(all, " ");
    rules.lower = rules.kind != LAM_BYTES && all->lower;
    rules.drop_newlines = rules.kind == LAM_BYTES && !holds(all, "10");
    lam_symbol *list = malloc((all->n + 1) * sizeof *list);
    char *bytes = malloc(all->n + 1);
    int64_t *counts = calloc(all->n + 1, sizeof *counts);
    if (!list || !bytes || !counts)
        status = lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu symbols", all->label, all->n);
    if (status == LAM_OK)
        status = fill_counts(all, counts);
    for (size_t i = 0; i < all->n && status == LAM_OK; i++) {
        const lam_py_text w = symbol_of(all, i, rules.kind, underscore, &bytes[i]);
        list[i] = (lam_symbol){w.s, w.n, counts[i]};
    }
    if (status == LAM_OK)
        status = lam_vocab_create_list(out, list, all->n, &rules);
    free(list);
    free(bytes);
    free(counts);
    return status;
}

/* ---- where it is ---- */

static const lam_py *find_vocab(const lam_py *root)
{
    const lam_py *const places[] = {root, lam_py_get(root, "vocab"), lam_py_attr(root, "vocab")};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (lam_py_is(lam_py_attr(places[i], "idx2sym"), LAM_PY_LIST))
            return places[i];
    return NULL;
}

/* Symbols differ, so they lie side by side in the pickle; a list of one text a million times would take hours to
 * look through.  `step`: 2 for the keys of a mapping. */
static lam_status check_words(const lam_py_list *list, size_t step, const lam_torch *file)
{
    enum {
        MIN_WORDS = 1 << 10,
        BYTES = 4
    }; /* of the file, for each: less than any compression leaves */
    size_t total = 0;
    const size_t n = list ? list->n / step : 0, most = lam_torch_size(file) / BYTES + MIN_WORDS;
    if (n > most)
        return lam_fail(LAM_ERR_FORMAT, "%s: a vocabulary of %zu symbols, at most %zu in %zu bytes",
                        lam_torch_label(file), n, most, lam_torch_size(file));
    for (size_t i = 0; i < n; i++)
        total += lam_py_is(list->v[i * step], LAM_PY_TEXT) ? list->v[i * step]->as.text.n : 0;
    if (total > lam_torch_pickled(file))
        return lam_fail(LAM_ERR_FORMAT, "%s: the vocabulary repeats its symbols",
                        lam_torch_label(file));
    return LAM_OK;
}

lam_status lam_vocabulary_from_torch(lam_vocab **out, const lam_torch *file)
{
    const lam_py *node = find_vocab(lam_torch_root(file));
    *out = NULL;
    if (!node)
        return LAM_OK;
    const lam_py_list *symbols = &lam_py_attr(node, "idx2sym")->as.list;
    LAM_TRY(check_words(symbols, 1, file));
    LAM_TRY(check_words(lam_py_pairs(lam_py_attr(node, "counter")), 2, file));
    const lam_py *lower = lam_py_attr(node, "lower_case");
    words all = {.label = lam_torch_label(file),
                 .n = symbols->n,
                 .counter = lam_py_attr(node, "counter"),
                 .lower = lam_py_is(lower, LAM_PY_BOOL) && lower->as.integer};
    all.v = malloc((all.n + 1) * sizeof *all.v);
    if (!all.v)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu symbols", all.label, all.n);
    lam_status status = LAM_OK;
    for (size_t i = 0; i < all.n && status == LAM_OK; i++) {
        if (lam_py_is(symbols->v[i], LAM_PY_TEXT))
            all.v[i] = symbols->v[i]->as.text;
        else
            status = lam_fail(LAM_ERR_FORMAT, "%s: symbol %zu of the vocabulary is no text",
                              all.label, i);
    }
    if (status == LAM_OK)
        status = build(out, &all);
    free(all.v);
    return status;
}

/* ---- text files ---- */

static lam_status split_lines(words *all, const char *text, size_t size)
{
    size_t room = 0;
    for (size_t i = 0; i < size; i++)
        room += text[i] == '\n';
    all->v = malloc((room + 1) * sizeof *all->v);
    if (!all->v)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu lines", all->label, room);
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t line = end ? (size_t)(end - text) - at : size - at;
        size_t n = 0;
        while (n < line && text[at + n] != ' ' && text[at + n] != '\t' && text[at + n] != '\r')
            n++;
        if (n > 0)
            all->v[all->n++] = (lam_py_text){text + at, n};
        at += line + 1;
    }
    return LAM_OK;
}

static lam_status from_lines(lam_vocab **out, const char *path)
{
    char *text;
    size_t size;
    words all = {.label = path};
    LAM_TRY(lam_file_load(&text, &size, path, MAX_TEXT));
    lam_status status = split_lines(&all, text, size);
    if (status == LAM_OK)
        status = build(out, &all);
    free(all.v);
    free(text);
    return status;
}

static lam_status from_json(lam_vocab **out, const char *path)
{
    json_t *root;
    LAM_TRY(lam_json_load(&root, path, MAX_TEXT));
    const bool theirs = lam_tokenizer_json_is(root), ours = json_object_get(root, "format") != NULL;
    lam_status status = LAM_OK;
    if (theirs)
        status = lam_tokenizer_json_read(out, root, path);
    else if (!ours && json_object_size(root) > 0)
        status = lam_fail(LAM_ERR_UNSUPPORTED,
                          "%s: neither a vocab.json of lamemo nor a tokenizer.json; a vocabulary "
                          "without merges cannot be used",
                          path);
    json_decref(root);
    return theirs || status != LAM_OK ? status : lam_vocab_load(out, path);
}

static lam_status from_archive(lam_vocab **out, const char *path)
{
    lam_torch *file;
    LAM_TRY(lam_torch_open(&file, path));
    lam_status status = lam_vocabulary_from_torch(out, file);
    if (status == LAM_OK && !*out)
        status = lam_fail(LAM_ERR_FORMAT, "%s: no vocabulary (idx2sym) found in it", path);
    lam_torch_close(file);
    return status;
}

lam_status lam_vocabulary_load(lam_vocab **out, const char *path, const char *pattern)
{
    lam_map map;
    *out = NULL;
    LAM_TRY(lam_map_open(&map, path));
    const bool archive = map.size >= 2 && memcmp(map.data, "PK", 2) == 0;
    const bool json = map.size >= 1 && map.data[0] == '{';
    const bool ranks = lam_tiktoken_is((const char *)map.data, map.size);
    lam_map_close(&map);
    if (ranks)
        return lam_tiktoken_load(out, path, pattern);
    if (pattern != NULL)
        return lam_fail(LAM_ERR_ARG, "%s: has a pattern of its own, or none", path);
    return json ? from_json(out, path) : archive ? from_archive(out, path) : from_lines(out, path);
}
