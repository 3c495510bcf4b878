/* symbols.c -- open addressing with linear probing over numbers, the strings in one growing block.
 *
 * Slots keep the hash beside the number, so that probing and growing never read the strings and most
 * comparisons end at four bytes.  Nothing is ever removed.  Each table hashes by a secret of its own: strings made to
 * meet in one slot would take a minute of a file of some megabytes. */
#include "data/symbols.h"

#include "core/grow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct slot {
    int32_t id; /* -1: free */
    uint32_t hash;
} slot;

typedef struct entry {
    size_t offset; /* of the string in text */
    uint32_t size;
    uint32_t hash;
} entry;

struct lam_symbols {
    uint64_t secret;
    entry *entries;
    int32_t count;
    slot *slots; /* a power of two of them, at most half full */
    uint32_t mask;
    char *text;
    size_t room, text_used, text_room;
};

enum { FIRST_ROOM = 1024, FIRST_SLOTS = 4096, FIRST_TEXT = 1 << 14 };

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

/* Eight bytes at a time: multiply, fold. */
static uint32_t hash_of(const lam_symbols *set, const void *text, size_t size)
{
    const char *s = text;
    uint64_t h = set->secret ^ size, word = 0;
    for (; size >= 8; s += 8, size -= 8) {
        memcpy(&word, s, 8);
        h = mix(h, word);
    }
    word = 0;
    for (size_t i = 0; i < size; i++)
        word = word << 8 | (unsigned char)s[i];
    return (uint32_t)mix(h, word);
}

lam_status lam_symbols_create(lam_symbols **out)
{
    *out = NULL;
    lam_symbols *set = calloc(1, sizeof *set);
    if (set == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a symbol table");
    if (getentropy(&set->secret, sizeof set->secret) != 0)
        set->secret = (uintptr_t)set; /* better than nothing */
    set->entries = malloc(FIRST_ROOM * sizeof *set->entries);
    set->slots = malloc(FIRST_SLOTS * sizeof *set->slots);
    set->text = malloc(FIRST_TEXT);
    if (set->entries == NULL || set->slots == NULL || set->text == NULL) {
        lam_symbols_free(set);
        return lam_fail(LAM_ERR_MEMORY, "no memory for a symbol table");
    }
    set->room = FIRST_ROOM;
    set->mask = FIRST_SLOTS - 1;
    set->text_room = FIRST_TEXT;
    memset(set->slots, 0xff, FIRST_SLOTS * sizeof *set->slots);
    *out = set;
    return LAM_OK;
}

void lam_symbols_free(lam_symbols *set)
{
    if (set == NULL)
        return;
    free(set->entries);
    free(set->slots);
    free(set->text);
    free(set);
}

/* The slot that holds the string, or the free one where it belongs. */
static slot *slot_of(const lam_symbols *set, const void *text, size_t size, uint32_t hash)
{
    for (uint32_t i = hash & set->mask;; i = (i + 1) & set->mask) {
        slot *s = &set->slots[i];
        if (s->id < 0)
            return s;
        if (s->hash != hash)
            continue;
        const entry *e = &set->entries[s->id];
        if (e->size == size && memcmp(set->text + e->offset, text, size) == 0)
            return s;
    }
}

/* Keeps the table at most half full, so that probing stays short. */
static lam_status grow_slots(lam_symbols *set)
{
    if ((uint32_t)set->count < (set->mask + 1) / 2)
        return LAM_OK;
    const size_t n = ((size_t)set->mask + 1) * 2;
    slot *slots = malloc(n * sizeof *slots);
    if (slots == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu symbols", n);
    memset(slots, 0xff, n * sizeof *slots);
    free(set->slots);
    set->slots = slots;
    set->mask = (uint32_t)(n - 1);
    for (int32_t id = 0; id < set->count; id++) {
        const uint32_t hash = set->entries[id].hash;
        uint32_t i = hash & set->mask;
        while (slots[i].id >= 0)
            i = (i + 1) & set->mask;
        slots[i] = (slot){id, hash};
    }
    return LAM_OK;
}

lam_status lam_symbols_add(lam_symbols *set, const void *text, size_t size, int32_t *id)
{
    const uint32_t hash = hash_of(set, text, size);
    *id = slot_of(set, text, size, hash)->id;
    if (*id >= 0)
        return LAM_OK;

    if (size > LAM_SYMBOL_MAX)
        return lam_fail(LAM_ERR_FORMAT, "a symbol longer than %d bytes", LAM_SYMBOL_MAX);
    if (set->count == LAM_SYMBOLS_MAX)
        return lam_fail(LAM_ERR_FORMAT, "more than %d different symbols", LAM_SYMBOLS_MAX);
    LAM_TRY(lam_grow(&set->entries, &set->room, (size_t)set->count + 1, sizeof *set->entries,
                     "symbols"));
    LAM_TRY(
        lam_grow(&set->text, &set->text_room, set->text_used + size + 1, 1, "bytes of symbols"));
    LAM_TRY(grow_slots(set));

    *id = set->count++;
    set->entries[*id] = (entry){set->text_used, (uint32_t)size, hash};
    memcpy(set->text + set->text_used, text, size);
    set->text[set->text_used + size] = '\0';
    set->text_used += size + 1;
    *slot_of(set, text, size, hash) = (slot){*id, hash};
    return LAM_OK;
}

int32_t lam_symbols_find(const lam_symbols *set, const void *text, size_t size)
{
    return slot_of(set, text, size, hash_of(set, text, size))->id;
}

int32_t lam_symbols_count(const lam_symbols *set)
{
    return set->count;
}

const char *lam_symbols_text(const lam_symbols *set, int32_t id, size_t *size)
{
    *size = set->entries[id].size;
    return set->text + set->entries[id].offset;
}
