/* prefix.c -- see prefix.h. */
#include "infer/prefix.h"

#include <stdlib.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY /* XXH3_state_t on the stack */
#include <xxhash.h>

enum { BUCKETS = 1024 };

typedef struct entry {
    XXH64_hash_t hash;
    size_t n;
    int32_t *tokens;
    lam_past *past;
    struct entry *next;          /* of its bucket */
    struct entry *newer, *older; /* by use */
} entry;

struct lam_prefix_cache {
    size_t segment, limit, bytes;
    entry *buckets[BUCKETS];
    entry *newest, *oldest;
};

lam_status lam_prefix_create(lam_prefix_cache **out, int segment, size_t limit)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return lam_fail(LAM_ERR_MEMORY, "prefix cache: no memory");
    (*out)->segment = (size_t)segment;
    (*out)->limit = limit;
    return LAM_OK;
}

static size_t size_of(const entry *e)
{
    return sizeof *e + e->n * sizeof *e->tokens + lam_past_bytes(e->past);
}

static void unlink_use(lam_prefix_cache *c, entry *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(lam_prefix_cache *c, entry *e)
{
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void remove_entry(lam_prefix_cache *c, entry *e)
{
    entry **at = &c->buckets[e->hash % BUCKETS];
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unlink_use(c, e);
    c->bytes -= size_of(e);
    lam_past_drop(e->past);
    free(e->tokens);
    free(e);
}

void lam_prefix_free(lam_prefix_cache *c)
{
    while (c && c->oldest)
        remove_entry(c, c->oldest);
    free(c);
}

static entry *lookup(const lam_prefix_cache *c, XXH64_hash_t hash, const int32_t *tokens, size_t n)
{
    entry *e = c->buckets[hash % BUCKETS];
    while (e &&
           !(e->hash == hash && e->n == n && memcmp(e->tokens, tokens, n * sizeof *tokens) == 0))
        e = e->next;
    return e;
}

size_t lam_prefix_find(lam_prefix_cache *c, lam_past **past, const int32_t *tokens, size_t n,
                       size_t from)
{
    const size_t step = c->segment * sizeof *tokens;
    XXH3_state_t state;
    entry *found = NULL;
    *past = NULL;
    if (!c->newest)
        return 0;
    XXH3_64bits_reset(&state);
    for (size_t at = c->segment; at < n; at += c->segment) {
        XXH3_64bits_update(&state, tokens + at - c->segment, step);
        entry *const e = at > from ? lookup(c, XXH3_64bits_digest(&state), tokens, at) : NULL;
        found = e ? e : found;
    }
    if (!found)
        return 0;
    unlink_use(c, found);
    link_newest(c, found);
    *past = lam_past_share(found->past);
    return found->n;
}

int lam_prefix_has(const lam_prefix_cache *c, const int32_t *tokens, size_t n)
{
    return lookup(c, XXH3_64bits(tokens, n * sizeof *tokens), tokens, n) != NULL;
}

void lam_prefix_add(lam_prefix_cache *c, const int32_t *tokens, size_t n, lam_past *past)
{
    entry *const e = calloc(1, sizeof *e);
    int32_t *const copy = malloc(n * sizeof *copy);
    if (e && copy) {
        memcpy(copy, tokens, n * sizeof *copy);
        *e = (entry){.hash = XXH3_64bits(tokens, n * sizeof *tokens), .n = n, .tokens = copy};
        e->past = lam_past_share(past);
    }
    if (!e || !copy || size_of(e) > c->limit) {
        lam_past_drop(e ? e->past : NULL);
        free(e);
        free(copy);
        return;
    }
    while (c->bytes + size_of(e) > c->limit)
        remove_entry(c, c->oldest);
    c->bytes += size_of(e);
    e->next = c->buckets[e->hash % BUCKETS];
    c->buckets[e->hash % BUCKETS] = e;
    link_newest(c, e);
}

size_t lam_prefix_bytes(const lam_prefix_cache *c)
{
    return c->bytes;
}
