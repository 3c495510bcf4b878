/* numbered.c -- see numbered.h. */
#include "convert/numbered.h"

#include "core/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 22, UNUSED_MOST = 1 << 16 }; /* tokens, and numbers without one */

typedef struct token {
    size_t at, size; /* in text; size 0: none */
    bool special;
} token;

struct lam_numbered {
    const char *label;
    token *list;
    size_t n, room; /* n: above the highest number */
    int64_t count;
    char *text;
    size_t used, text_room;
};

lam_status lam_numbered_create(lam_numbered **out, const char *label)
{
    lam_numbered *t = *out = calloc(1, sizeof *t);
    if (t == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a vocabulary", label);
    t->label = label;
    return LAM_OK;
}

void lam_numbered_free(lam_numbered *t)
{
    if (t == NULL)
        return;
    free(t->list);
    free(t->text);
    free(t);
}

static lam_status reserve(lam_numbered *t, size_t number, size_t size)
{
    if (number >= t->room) {
        const size_t before = t->room;
        LAM_TRY(lam_grow(&t->list, &t->room, number + 1, sizeof *t->list, "tokens"));
        memset(t->list + before, 0, (t->room - before) * sizeof *t->list);
    }
    return lam_grow(&t->text, &t->text_room, t->used + size, 1, "bytes of tokens");
}

lam_status lam_numbered_add(lam_numbered *t, int64_t number, const char *bytes, size_t size)
{
    if (number < 0 || number >= MOST || size == 0 || size > LAM_TOKEN_MAX)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: token %lld has %zu bytes: numbers are 0 to %d, sizes 1 to %d",
                        t->label, (long long)number, size, MOST - 1, LAM_TOKEN_MAX);
    LAM_TRY(reserve(t, (size_t)number, size));
    token *k = &t->list[number];
    if (k->size > 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: two tokens have the number %lld", t->label,
                        (long long)number);
    memcpy(t->text + t->used, bytes, size);
    *k = (token){t->used, size, false};
    t->used += size;
    t->count++;
    t->n = t->n > (size_t)number ? t->n : (size_t)number + 1;
    return LAM_OK;
}

lam_status lam_numbered_special(lam_numbered *t, int64_t number, const char *text, size_t size)
{
    token *k = number >= 0 && (uint64_t)number < t->n ? &t->list[number] : NULL;
    const bool same =
        k != NULL && k->size == size && size > 0 && memcmp(t->text + k->at, text, size) == 0;
    if (!same)
        LAM_TRY(lam_numbered_add(t, number, text, size));
    t->list[number].special = true;
    return LAM_OK;
}

int64_t lam_numbered_count(const lam_numbered *t)
{
    return t->count;
}

static lam_status fill_gaps(lam_numbered *t)
{
    char name[32];
    if (t->n - (size_t)t->count > UNUSED_MOST)
        return lam_fail(LAM_ERR_FORMAT, "%s: %zu numbers below %zu have no token", t->label,
                        t->n - (size_t)t->count, t->n);
    for (size_t i = 0; i < t->n; i++) {
        const int size = snprintf(name, sizeof name, "<|unused_%zu|>", i);
        if (t->list[i].size == 0)
            LAM_TRY(lam_numbered_special(t, (int64_t)i, name, (size_t)size));
    }
    return LAM_OK;
}

static int32_t find_separator(const lam_numbered *t)
{
    static const char *const names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (size_t i = 0; i < t->n; i++)
            if (t->list[i].special && t->list[i].size == strlen(names[k]) &&
                memcmp(t->text + t->list[i].at, names[k], t->list[i].size) == 0)
                return (int32_t)i;
    return -1;
}

lam_status lam_numbered_vocab(lam_vocab **out, lam_numbered *t, const lam_bpe_rules *rules)
{
    lam_bpe_rules all = *rules;
    *out = NULL;
    LAM_TRY(fill_gaps(t));
    lam_symbol *list = malloc((t->n + 1) * sizeof *list);
    int32_t *special = malloc((t->n + 1) * sizeof *special);
    lam_status status = LAM_OK;
    if (list == NULL || special == NULL)
        status = lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu tokens", t->label, t->n);
    for (size_t i = 0; i < t->n && status == LAM_OK; i++) {
        list[i] = (lam_symbol){t->text + t->list[i].at, t->list[i].size, 0};
        if (t->list[i].special)
            special[all.n_special++] = (int32_t)i;
    }
    all.special = special;
    all.separator = find_separator(t);
    if (status == LAM_OK)
        status = lam_vocab_create_bpe(out, list, t->n, &all, t->label);
    free(list);
    free(special);
    return status;
}
