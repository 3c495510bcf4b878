/* bpe_encode.c -- from text to tokens with a BPE.
 *
 * Texts repeat their pieces, so most of them are found, whole, in a table of those met lately; it forgets one when
 * another needs its place, and never changes a result.  The others are merged: short ones by looking through all pairs
 * for the lowest rank, long ones with a heap of pairs, which come out in the same order. */
#include "data/bpe_int.h"

#include "core/grow.h"

#include <stdlib.h>
#include <string.h>

enum {
    CACHE = 1 << 16, /* pieces met lately */
    KEY = 4,         /* words of such a piece, */
    CACHED_SIZE = 8 * KEY,
    CACHED_IDS = 7, /* its tokens: an entry is one line of the processor's cache */
    SHORT = 48      /* bytes of a piece that needs no heap */
};
static const uint32_t NONE = UINT32_MAX; /* the rank of a pair that is not merged */

typedef struct cached {
    uint64_t key[KEY]; /* the piece, filled with zeros */
    uint8_t size, n;   /* size 0: free */
    int32_t ids[CACHED_IDS];
} cached;

/* A place in a long piece: its token, and the places beside it. */
typedef struct place {
    int32_t id, before, after; /* -1: none; id -1: merged into the one before */
} place;

/* A pair that was there when it was put on the heap. */
typedef struct candidate {
    uint32_t rank;
    int32_t at, left, right;
} candidate;

struct lam_bpe_coder {
    const lam_bpe *bpe;
    lam_pieces *pieces;
    cached *cache;
    place *places; /* for long pieces, made when one comes */
    candidate *heap;
    size_t room; /* bytes of a piece they are enough for */
};

lam_status lam_bpe_coder_create(lam_bpe_coder **out, const lam_bpe *bpe)
{
    *out = NULL;
    lam_bpe_coder *c = calloc(1, sizeof *c);
    if (c == NULL || (c->cache = calloc(CACHE, sizeof *c->cache)) == NULL) {
        free(c);
        return lam_fail(LAM_ERR_MEMORY, "no memory to encode a text");
    }
    c->bpe = bpe;
    const lam_status status = lam_pieces_create(&c->pieces, bpe->pattern);
    if (status != LAM_OK)
        lam_bpe_coder_free(c);
    else
        *out = c;
    return status;
}

void lam_bpe_coder_free(lam_bpe_coder *c)
{
    if (c == NULL)
        return;
    lam_pieces_free(c->pieces);
    free(c->cache);
    free(c->places);
    free(c->heap);
    free(c);
}

lam_status lam_ids_reserve(lam_ids *ids, size_t more)
{
    return lam_grow(&ids->v, &ids->room, ids->n + more, sizeof *ids->v, "tokens");
}

/* ---- merging a short piece ---- */

static uint32_t rank_of(const lam_bpe *b, int32_t left, int32_t right, int32_t *into)
{
    const lam_pair *p = lam_pair_at(b, left, right);
    *into = p->into;
    return p->key != 0 ? p->rank : NONE;
}

/* ids[0, n) are the bytes of the piece; returns how many tokens are left. */
static size_t merge_short(const lam_bpe *b, int32_t *ids, size_t n)
{
    uint32_t rank[SHORT]; /* of token i with the one behind it */
    int32_t into[SHORT];
    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = rank_of(b, ids[i], ids[i + 1], &into[i]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            best = rank[i] < rank[best] ? i : best;
        if (rank[best] == NONE)
            break;
        const size_t behind = n - best - 2; /* tokens behind the pair: they move up by one */
        ids[best] = into[best];
        memmove(&ids[best + 1], &ids[best + 2], behind * sizeof *ids);
        if (behind > 1) {
            memmove(&rank[best + 1], &rank[best + 2], (behind - 1) * sizeof *rank);
            memmove(&into[best + 1], &into[best + 2], (behind - 1) * sizeof *into);
        }
        n--;
        if (best + 1 < n)
            rank[best] = rank_of(b, ids[best], ids[best + 1], &into[best]);
        if (best > 0)
            rank[best - 1] = rank_of(b, ids[best - 1], ids[best], &into[best - 1]);
    }
    return n;
}

/* ---- merging a long one ---- */

static bool comes_first(const candidate *a, const candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_put(candidate *heap, size_t *n, candidate c)
{
    size_t i = (*n)++;
    for (; i > 0 && comes_first(&c, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = c;
}

static candidate heap_take(candidate *heap, size_t *n)
{
    const candidate first = heap[0], last = heap[--*n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < *n && comes_first(&heap[child + 1], &heap[child]))
            child++;
        if (child >= *n || !comes_first(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

static lam_status reserve_long(lam_bpe_coder *c, size_t size)
{
    if (size <= c->room)
        return LAM_OK;
    free(c->places);
    free(c->heap);
    c->room = 0;
    c->places = malloc(size * sizeof *c->places);
    c->heap = malloc(3 * size * sizeof *c->heap); /* every merge takes one and puts two */
    if (c->places == NULL || c->heap == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a piece of %zu bytes", size);
    c->room = size;
    return LAM_OK;
}

static void consider(lam_bpe_coder *c, size_t *n, int32_t at)
{
    const place *p = &c->places[at];
    int32_t into;
    if (p->after < 0)
        return;
    const int32_t right = c->places[p->after].id;
    const uint32_t rank = rank_of(c->bpe, p->id, right, &into);
    if (rank != NONE)
        heap_put(c->heap, n, (candidate){rank, at, p->id, right});
}

/* The same as merge_short(). */
static lam_status merge_long(lam_bpe_coder *c, int32_t *ids, size_t *n)
{
    size_t waiting = 0;
    LAM_TRY(reserve_long(c, *n));
    place *p = c->places;
    const int32_t size = (int32_t)*n;
    for (int32_t i = 0; i < size; i++)
        p[i] = (place){ids[i], i - 1, i + 1 < size ? i + 1 : -1};
    for (int32_t i = 0; i < size; i++)
        consider(c, &waiting, i);
    while (waiting > 0) {
        const candidate m = heap_take(c->heap, &waiting);
        const int32_t gone = p[m.at].after;
        if (p[m.at].id != m.left || gone < 0 || p[gone].id != m.right)
            continue; /* one of the two is another by now */
        rank_of(c->bpe, m.left, m.right, &p[m.at].id);
        p[gone].id = -1;
        p[m.at].after = p[gone].after;
        if (p[gone].after >= 0)
            p[p[gone].after].before = m.at;
        consider(c, &waiting, m.at);
        if (p[m.at].before >= 0)
            consider(c, &waiting, p[m.at].before);
    }
    *n = 0;
    for (int32_t i = 0; i >= 0; i = p[i].after)
        ids[(*n)++] = p[i].id;
    return LAM_OK;
}

/* ---- one piece ---- */

static lam_status merge_piece(lam_bpe_coder *c, int32_t *ids, size_t *n, const char *piece,
                              size_t size)
{
    const lam_bpe *b = c->bpe;
    if (b->rules.whole) {
        const int32_t id = lam_symbols_find(b->symbols, piece, size);
        if (id >= 0 && !b->special[id]) {
            ids[0] = id;
            *n = 1;
            return LAM_OK;
        }
    }
    for (size_t i = 0; i < size; i++)
        ids[i] = b->byte_id[(unsigned char)piece[i]];
    *n = size;
    if (size > SHORT)
        return merge_long(c, ids, n);
    *n = merge_short(b, ids, size);
    return LAM_OK;
}

/* Appends the tokens of one piece. */
static lam_status encode_piece(lam_bpe_coder *c, lam_ids *out, const char *piece, size_t size)
{
    size_t n;
    LAM_TRY(lam_ids_reserve(out, size)); /* no fewer bytes than tokens */
    LAM_TRY(merge_piece(c, out->v + out->n, &n, piece, size));
    out->n += n;
    return LAM_OK;
}

/* The piece text[0, size) as a key: four words, filled with zeros.  `room` bytes may be read. */
static inline void make_key(uint64_t key[KEY], const char *text, size_t size, size_t room)
{
    static const uint64_t masks[2 * KEY] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint64_t mask[KEY];
    if (room < CACHED_SIZE) {
        memset(key, 0, CACHED_SIZE);
        memcpy(key, text, size);
        return;
    }
    memcpy(key, text, CACHED_SIZE); /* of known length: four moves */
    memcpy(mask, (const char *)masks + CACHED_SIZE - size, CACHED_SIZE);
    for (size_t i = 0; i < KEY; i++)
        key[i] &= mask[i];
}

static inline size_t cache_slot(const uint64_t key[KEY], size_t size)
{
    uint64_t h = size;
    for (size_t i = 0; i < KEY; i++) {
        h = (h ^ key[i]) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    return (size_t)(h & (CACHE - 1));
}

/* A piece of a text with `room` bytes from its beginning on. */
static lam_status encode_cached(lam_bpe_coder *c, lam_ids *out, const char *piece, size_t size,
                                size_t room)
{
    uint64_t key[KEY];
    if (size > CACHED_SIZE)
        return encode_piece(c, out, piece, size);
    make_key(key, piece, size, room);
    cached *e = &c->cache[cache_slot(key, size)];
    if (e->size == size && memcmp(e->key, key, sizeof key) == 0) {
        LAM_TRY(lam_ids_reserve(out, CACHED_IDS));
        memcpy(out->v + out->n, e->ids, sizeof e->ids);
        out->n += e->n;
        return LAM_OK;
    }
    const size_t before = out->n;
    LAM_TRY(encode_piece(c, out, piece, size));
    if (out->n - before <= CACHED_IDS) {
        memcpy(e->key, key, sizeof key);
        e->size = (uint8_t)size;
        e->n = (uint8_t)(out->n - before);
        memcpy(e->ids, out->v + before, e->n * sizeof *e->ids);
    }
    return LAM_OK;
}

/* ---- a whole text ---- */

typedef struct encoding {
    lam_bpe_coder *coder;
    lam_ids *out;
} encoding;

static lam_status encode_next(void *user, const lam_bpe_item *item)
{
    encoding *e = user;
    if (item->special < 0)
        return encode_cached(e->coder, e->out, item->text, item->size, item->room);
    LAM_TRY(lam_ids_reserve(e->out, 1));
    e->out->v[e->out->n++] = item->special;
    return LAM_OK;
}

lam_status lam_bpe_encode(lam_bpe_coder *c, lam_ids *out, const lam_bpe_text *t, size_t from,
                          size_t goal, size_t *end)
{
    encoding e = {c, out};
    *end = from;
    return lam_bpe_walk(c->bpe, c->pieces, t, end, goal, encode_next, &e);
}
