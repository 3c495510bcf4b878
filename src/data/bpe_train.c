/* bpe_train.c -- see bpe_train.h.
 *
 * Counts of pairs are kept up to date: a merge visits the pieces that have its pair and changes the counts of the pairs
 * beside it.  The most frequent pair is on top of a heap whose entries may be out of date: counts of old pairs only
 * fall, so an entry with a count that was true once is put back with today's, and pairs that a merge has made more of
 * are put on it anew. */
#include "data/bpe_train.h"

#include "core/grow.h"
#include "data/pair_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TELL = 64 }; /* candidates between two calls of tell() */

/* A piece: n tokens of the pool from `at` on. */
typedef struct word {
    size_t at;
    uint32_t n;
    int64_t count;
} word;

typedef struct candidate {
    int64_t count;
    uint64_t key; /* of the pair: in the order of left, then right */
} candidate;

typedef struct trainer {
    const lam_bpe_training *o;
    lam_symbols *tokens;
    lam_merge *merges;
    size_t n_merges, merges_room;
    word *words;
    uint32_t n_words;
    int32_t *pool;
    lam_pair_table pairs;
    candidate *heap;
    size_t waiting, heap_room;
    uint64_t *more; /* pairs that the current merge has made more of */
    size_t n_more, more_room;
} trainer;

/* ---- the heap ---- */

static bool comes_first(const candidate *a, const candidate *b)
{
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static lam_status put(trainer *t, candidate c)
{
    if (c.count < t->o->min_count)
        return LAM_OK; /* it can only become rarer, or comes again */
    LAM_TRY(lam_grow(&t->heap, &t->heap_room, t->waiting + 1, sizeof *t->heap, "pairs"));
    size_t i = t->waiting++;
    for (; i > 0 && comes_first(&c, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = c;
    return LAM_OK;
}

static candidate take(trainer *t)
{
    candidate *heap = t->heap;
    const candidate first = heap[0], last = heap[--t->waiting];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < t->waiting && comes_first(&heap[child + 1], &heap[child]))
            child++;
        if (child >= t->waiting || !comes_first(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

/* ---- initial tokens: bytes ---- */

static lam_status add_bytes(lam_symbols *tokens)
{
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        int32_t id;
        LAM_TRY(lam_symbols_add(tokens, &byte, 1, &id));
    }
    return LAM_OK;
}

/* Pieces of one byte have nothing to merge. */
static lam_status make_words(trainer *t, const lam_symbols *pieces, const int64_t *counts)
{
    size_t total = 0, size;
    const int32_t n = lam_symbols_count(pieces);
    for (int32_t i = 0; i < n; i++) {
        lam_symbols_text(pieces, i, &size);
        total += size;
    }
    t->words = malloc(((size_t)n + 1) * sizeof *t->words);
    t->pool = malloc((total + 1) * sizeof *t->pool);
    if (t->words == NULL || t->pool == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to learn from %d pieces", n);
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        const char *piece = lam_symbols_text(pieces, i, &size);
        if (size < 2 || size > LAM_TOKEN_MAX || counts[i] <= 0)
            continue;
        t->words[t->n_words++] = (word){at, (uint32_t)size, counts[i]};
        for (size_t k = 0; k < size; k++)
            t->pool[at++] = (unsigned char)piece[k];
    }
    return LAM_OK;
}

static lam_status count_pairs(trainer *t)
{
    for (uint32_t w = 0; w < t->n_words; w++) {
        const int32_t *ids = t->pool + t->words[w].at;
        for (uint32_t i = 0; i + 1 < t->words[w].n; i++) {
            lam_pair_entry *e;
            LAM_TRY(lam_pair_table_get(&t->pairs, &e, ids[i], ids[i + 1]));
            e->count += t->words[w].count;
            LAM_TRY(lam_pair_note(e, w));
        }
    }
    for (uint64_t i = 0; i <= t->pairs.mask; i++)
        if (t->pairs.entries[i].key != 0)
            LAM_TRY(put(t, (candidate){t->pairs.entries[i].count, t->pairs.entries[i].key}));
    return LAM_OK;
}

/* ---- one merge ---- */

static lam_status fewer(trainer *t, int32_t left, int32_t right, int64_t count)
{
    lam_pair_entry *e;
    LAM_TRY(lam_pair_table_get(&t->pairs, &e, left, right));
    e->count -= count;
    return LAM_OK;
}

static lam_status more(trainer *t, int32_t left, int32_t right, uint32_t w)
{
    lam_pair_entry *e;
    LAM_TRY(lam_pair_table_get(&t->pairs, &e, left, right));
    e->count += t->words[w].count;
    LAM_TRY(lam_pair_note(e, w));
    if (e->stamp == (int32_t)t->n_merges)
        return LAM_OK;
    e->stamp = (int32_t)t->n_merges;
    LAM_TRY(lam_grow(&t->more, &t->more_room, t->n_more + 1, sizeof *t->more, "pairs"));
    t->more[t->n_more++] = e->key;
    return LAM_OK;
}

/* Merges the pair wherever the piece has it, from left to right.  A neighbour on the left may be one just merged. */
static lam_status merge_word(trainer *t, uint32_t w, lam_merge m, int32_t into)
{
    word *p = &t->words[w];
    int32_t *ids = t->pool + p->at;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (i + 1 == p->n || ids[i] != m.left || ids[i + 1] != m.right) {
            ids[kept++] = ids[i];
            continue;
        }
        if (kept > 0) {
            LAM_TRY(fewer(t, ids[kept - 1], m.left, p->count));
            LAM_TRY(more(t, ids[kept - 1], into, w));
        }
        if (i + 2 < p->n) {
            LAM_TRY(fewer(t, m.right, ids[i + 2], p->count));
            LAM_TRY(more(t, into, ids[i + 2], w));
        }
        ids[kept++] = into;
        i++;
    }
    p->n = kept;
    return LAM_OK;
}

/* The number of the token that both make. */
static lam_status join(trainer *t, lam_merge m, int32_t *into)
{
    char bytes[2 * LAM_TOKEN_MAX];
    size_t left, right;
    const char *text = lam_symbols_text(t->tokens, m.left, &left);
    memcpy(bytes, text, left);
    text = lam_symbols_text(t->tokens, m.right, &right);
    memcpy(bytes + left, text, right);
    return lam_symbols_add(t->tokens, bytes, left + right, into);
}

static lam_status merge_pair(trainer *t, lam_merge m)
{
    lam_pair_entry *e;
    int32_t into;
    LAM_TRY(join(t, m, &into));
    LAM_TRY(lam_grow(&t->merges, &t->merges_room, t->n_merges + 1, sizeof *t->merges, "merges"));
    t->merges[t->n_merges] = m;
    LAM_TRY(lam_pair_table_get(&t->pairs, &e, m.left, m.right));
    uint32_t *pieces = e->pieces; /* ours: the table may move while we go through them */
    const uint32_t n = e->n;
    e->pieces = NULL;
    e->n = e->room = 0;
    t->n_more = 0;
    lam_status status = LAM_OK;
    for (uint32_t i = 0; i < n && status == LAM_OK; i++)
        status = merge_word(t, pieces[i], m, into);
    free(pieces);
    LAM_TRY(status);
    LAM_TRY(lam_pair_table_get(&t->pairs, &e, m.left, m.right));
    e->count = 0;
    for (size_t i = 0; i < t->n_more; i++) {
        const uint64_t key = t->more[i];
        LAM_TRY(lam_pair_table_get(&t->pairs, &e, lam_pair_left(key), lam_pair_right(key)));
        LAM_TRY(put(t, (candidate){e->count, key}));
    }
    t->n_merges++;
    return LAM_OK;
}

static lam_status learn(trainer *t)
{
    for (uint64_t i = 0; t->waiting > 0 && lam_symbols_count(t->tokens) < t->o->size - 1; i++) {
        const candidate c = take(t);
        const lam_merge m = {lam_pair_left(c.key), lam_pair_right(c.key)};
        lam_pair_entry *e;
        if (i % TELL == 0 && t->o->tell != NULL)
            LAM_TRY(t->o->tell(t->o->user, (size_t)lam_symbols_count(t->tokens)));
        LAM_TRY(lam_pair_table_get(&t->pairs, &e, m.left, m.right));
        if (e->count == c.count)
            LAM_TRY(merge_pair(t, m));
        else if (e->count < c.count) /* else it was put on the heap when it became more */
            LAM_TRY(put(t, (candidate){e->count, c.key}));
    }
    return LAM_OK;
}

/* ---- the vocabulary ---- */

/* All tokens, then <|endoftext|>. */
static lam_status make_vocab(lam_vocab **out, const lam_symbols *tokens, const lam_merge *merges,
                             size_t n_merges, const char *pattern)
{
    static const lam_merge none[1];
    const int32_t n = lam_symbols_count(tokens);
    lam_symbol *list = malloc(((size_t)n + 1) * sizeof *list);
    *out = NULL;
    if (list == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d tokens", n);
    for (int32_t i = 0; i < n; i++) {
        list[i] = (lam_symbol){0};
        list[i].text = lam_symbols_text(tokens, i, &list[i].size);
    }
    list[n] = (lam_symbol){LAM_END_OF_TEXT, strlen(LAM_END_OF_TEXT), 0};
    const lam_bpe_rules rules = {.pattern = pattern,
                                 .merges = merges != NULL ? merges : none,
                                 .n_merges = n_merges,
                                 .special = &n,
                                 .n_special = 1,
                                 .separator = n};
    const lam_status status = lam_vocab_create_bpe(out, list, (size_t)n + 1, &rules, "vocabulary");
    free(list);
    return status;
}

lam_status lam_bpe_untrained(lam_vocab **out, const char *pattern)
{
    lam_symbols *tokens;
    *out = NULL;
    LAM_TRY(lam_symbols_create(&tokens));
    lam_status status = add_bytes(tokens);
    if (status == LAM_OK)
        status = make_vocab(out, tokens, NULL, 0, pattern);
    lam_symbols_free(tokens);
    return status;
}

static lam_status train(trainer *t, lam_vocab **out, const lam_symbols *pieces,
                        const int64_t *counts)
{
    LAM_TRY(lam_symbols_create(&t->tokens));
    LAM_TRY(add_bytes(t->tokens));
    LAM_TRY(make_words(t, pieces, counts));
    LAM_TRY(lam_pair_table_open(&t->pairs));
    LAM_TRY(count_pairs(t));
    LAM_TRY(learn(t));
    return make_vocab(out, t->tokens, t->merges, t->n_merges, t->o->pattern);
}

lam_status lam_bpe_train(lam_vocab **out, const lam_symbols *pieces, const int64_t *counts,
                         const lam_bpe_training *training)
{
    trainer t = {.o = training};
    assert(training->size >= LAM_BPE_SMALLEST && training->min_count >= 1);
    *out = NULL;
    const lam_status status = train(&t, out, pieces, counts);
    lam_symbols_free(t.tokens);
    lam_pair_table_close(&t.pairs);
    free(t.merges);
    free(t.words);
    free(t.pool);
    free(t.heap);
    free(t.more);
    return status;
}
