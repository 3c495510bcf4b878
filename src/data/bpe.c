/* bpe.c -- making a BPE: the table of pairs, checked.  bpe_encode.c uses it. */
#include "data/bpe_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- the rules, copied ---- */

/* n things of `width` bytes, where there may be none; NULL without memory. */
static void *copy_of(const void *from, size_t n, size_t width)
{
    void *to = malloc((n + 1) * width);
    if (to != NULL && n > 0)
        memcpy(to, from, n * width);
    return to;
}

static lam_status keep_rules(lam_bpe *b, const lam_bpe_rules *rules, const char *label)
{
    b->rules = *rules;
    b->rules.merges = NULL;
    b->rules.special = copy_of(rules->special, rules->n_special, sizeof *rules->special);
    if (rules->merges != NULL)
        b->rules.merges = copy_of(rules->merges, rules->n_merges, sizeof *rules->merges);
    if (b->rules.special == NULL || (rules->merges != NULL && b->rules.merges == NULL))
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu merges", rules->n_merges);
    const lam_status status = lam_pattern_create(&b->pattern, rules->pattern);
    if (status == LAM_ERR_FORMAT)
        return lam_fail(status, "%s: %s", label, lam_error());
    LAM_TRY(status);
    b->rules.pattern = lam_pattern_source(b->pattern);
    return LAM_OK;
}

static lam_status mark_special(lam_bpe *b, const char *label)
{
    const int32_t n = lam_symbols_count(b->symbols);
    bool listed = b->rules.separator < 0;
    b->special = calloc((size_t)n + 1, sizeof *b->special);
    if (b->special == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d tokens", n);
    for (size_t i = 0; i < b->rules.n_special; i++) {
        const int32_t id = b->rules.special[i];
        if (id < 0 || id >= n || (i > 0 && id <= b->rules.special[i - 1]))
            return lam_fail(LAM_ERR_FORMAT,
                            "%s: special token %d: not a number below %d, or not in rising order",
                            label, id, n);
        size_t size;
        const char *text = lam_symbols_text(b->symbols, id, &size);
        if (size == 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: special token %d is empty", label, id);
        b->special[id] = true;
        b->begins[(unsigned char)*text] = true;
        listed = listed || id == b->rules.separator;
    }
    return listed ? LAM_OK
                  : lam_fail(LAM_ERR_FORMAT, "%s: the separator, %d, is no special token", label,
                             b->rules.separator);
}

/* ---- tokens ---- */

/* The number of the token with these bytes, or -1; special tokens are none. */
static int32_t find_token(const lam_bpe *b, const char *bytes, size_t size)
{
    const int32_t id = lam_symbols_find(b->symbols, bytes, size);
    return id >= 0 && b->special[id] ? -1 : id;
}

static lam_status check_tokens(lam_bpe *b, const char *label)
{
    for (int32_t i = 0; i < lam_symbols_count(b->symbols); i++) {
        size_t size;
        lam_symbols_text(b->symbols, i, &size);
        if (size == 0 || size > LAM_TOKEN_MAX)
            return lam_fail(LAM_ERR_FORMAT, "%s: token %d has %zu bytes, must have 1 to %d", label,
                            i, size, LAM_TOKEN_MAX);
    }
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        b->byte_id[i] = find_token(b, &byte, 1);
        if (b->byte_id[i] < 0)
            return lam_fail(LAM_ERR_FORMAT,
                            "%s: not a byte-level vocabulary: byte 0x%02x has no token", label, i);
    }
    return LAM_OK;
}

/* ---- pairs ---- */

static lam_status make_table(lam_bpe *b, size_t n)
{
    size_t room = 1024;
    while (room < 2 * n)
        room *= 2;
    b->pairs = calloc(room, sizeof *b->pairs);
    if (b->pairs == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu merges", n);
    b->mask = room - 1;
    return LAM_OK;
}

static lam_status add_merges(lam_bpe *b, const char *label)
{
    const int32_t n = lam_symbols_count(b->symbols);
    LAM_TRY(make_table(b, b->rules.n_merges));
    for (size_t i = 0; i < b->rules.n_merges; i++) {
        const lam_merge m = b->rules.merges[i];
        if (m.left < 0 || m.left >= n || m.right < 0 || m.right >= n || b->special[m.left] ||
            b->special[m.right])
            return lam_fail(LAM_ERR_FORMAT, "%s: merge %zu joins %d and %d: not two tokens", label,
                            i, m.left, m.right);
        char bytes[2 * LAM_TOKEN_MAX];
        size_t left, right;
        const char *text = lam_symbols_text(b->symbols, m.left, &left);
        memcpy(bytes, text, left);
        text = lam_symbols_text(b->symbols, m.right, &right);
        memcpy(bytes + left, text, right);
        const int32_t into = find_token(b, bytes, left + right);
        lam_pair *p = lam_pair_at(b, m.left, m.right);
        if (into < 0 || p->key != 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: merge %zu joins %d and %d, which %s", label, i,
                            m.left, m.right, into < 0 ? "are no token together" : "another did");
        *p = (lam_pair){lam_pair_key(m.left, m.right), (uint32_t)i, into};
    }
    return LAM_OK;
}

/* Returns in how many ways a token is made of two, and adds them to the table once there is one. */
static size_t split_token(lam_bpe *b, int32_t id)
{
    size_t size, n = 0;
    const char *text = lam_symbols_text(b->symbols, id, &size);
    for (size_t k = 1; k < size && !b->special[id]; k++) {
        const int32_t left = find_token(b, text, k);
        const int32_t right = left >= 0 ? find_token(b, text + k, size - k) : -1;
        if (right < 0)
            continue;
        n++;
        if (b->pairs != NULL)
            *lam_pair_at(b, left, right) = (lam_pair){lam_pair_key(left, right), (uint32_t)id, id};
    }
    return n;
}

static lam_status add_all_pairs(lam_bpe *b)
{
    const int32_t tokens = lam_symbols_count(b->symbols);
    size_t n = 0;
    for (int32_t i = 0; i < tokens; i++)
        n += split_token(b, i);
    LAM_TRY(make_table(b, n));
    for (int32_t i = 0; i < tokens; i++)
        split_token(b, i);
    return LAM_OK;
}

/* ---- create and free ---- */

static lam_status build(lam_bpe *b, const lam_bpe_rules *rules, const char *label)
{
    LAM_TRY(keep_rules(b, rules, label));
    LAM_TRY(mark_special(b, label));
    LAM_TRY(check_tokens(b, label));
    return rules->merges != NULL ? add_merges(b, label) : add_all_pairs(b);
}

lam_status lam_bpe_create(lam_bpe **out, const lam_symbols *symbols, const lam_bpe_rules *rules,
                          const char *label)
{
    *out = NULL;
    lam_bpe *b = calloc(1, sizeof *b);
    if (b == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for merges");
    b->symbols = symbols;
    const lam_status status = build(b, rules, label);
    if (status != LAM_OK)
        lam_bpe_free(b);
    else
        *out = b;
    return status;
}

void lam_bpe_free(lam_bpe *b)
{
    if (b == NULL)
        return;
    free((void *)b->rules.merges);
    free((void *)b->rules.special);
    lam_pattern_free(b->pattern);
    free(b->pairs);
    free(b->special);
    free(b);
}

const lam_bpe_rules *lam_bpe_rules_of(const lam_bpe *b)
{
    return &b->rules;
}

const lam_pattern *lam_bpe_pattern(const lam_bpe *b)
{
    return b->pattern;
}

bool lam_bpe_is_special(const lam_bpe *b, int32_t id)
{
    return b->special[id];
}

bool lam_bpe_alike(const lam_bpe *a, const lam_bpe *b)
{
    const lam_bpe_rules *x = &a->rules, *y = &b->rules;
    return strcmp(x->pattern, y->pattern) == 0 && x->whole == y->whole && x->nfc == y->nfc &&
           x->n_merges == y->n_merges && (x->merges == NULL) == (y->merges == NULL) &&
           (x->n_merges == 0 || memcmp(x->merges, y->merges, x->n_merges * sizeof *x->merges) == 0);
}
