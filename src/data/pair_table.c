/* pair_table.c -- see pair_table.h.  Open addressing; pairs that are gone are dropped when the table grows. */
#include "data/pair_table.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 1 << 16 };

lam_status lam_pair_table_open(lam_pair_table *t)
{
    *t = (lam_pair_table){.mask = FIRST - 1};
    t->entries = calloc(FIRST, sizeof *t->entries);
    return t->entries != NULL ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory for pairs");
}

void lam_pair_table_close(lam_pair_table *t)
{
    for (uint64_t i = 0; t->entries != NULL && i <= t->mask; i++)
        free(t->entries[i].pieces);
    free(t->entries);
    *t = (lam_pair_table){0};
}

static lam_pair_entry *place_of(const lam_pair_table *t, uint64_t key)
{
    uint64_t i = key * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 32) & t->mask;
    while (t->entries[i].key != key && t->entries[i].key != 0)
        i = (i + 1) & t->mask;
    return &t->entries[i];
}

/* Keeps the table at most half full. */
static lam_status grow(lam_pair_table *t)
{
    uint64_t alive = 0;
    if (t->used <= t->mask / 2)
        return LAM_OK;
    for (uint64_t i = 0; i <= t->mask; i++)
        alive += t->entries[i].count > 0;
    const uint64_t room = alive > t->mask / 4 ? 2 * (t->mask + 1) : t->mask + 1;
    lam_pair_table larger = {.entries = calloc(room, sizeof *larger.entries), .mask = room - 1};
    if (larger.entries == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %llu pairs", (unsigned long long)alive);
    for (uint64_t i = 0; i <= t->mask; i++) {
        lam_pair_entry *e = &t->entries[i];
        if (e->count > 0) {
            *place_of(&larger, e->key) = *e;
            larger.used++;
        } else {
            free(e->pieces);
        }
    }
    free(t->entries);
    *t = larger;
    return LAM_OK;
}

lam_status lam_pair_table_get(lam_pair_table *t, lam_pair_entry **out, int32_t left, int32_t right)
{
    const uint64_t key = ((uint64_t)(uint32_t)left + 1) << 32 | (uint32_t)right;
    *out = place_of(t, key);
    if ((*out)->key == key)
        return LAM_OK;
    LAM_TRY(grow(t));
    *out = place_of(t, key);
    **out = (lam_pair_entry){.key = key, .stamp = -1};
    t->used++;
    return LAM_OK;
}

lam_status lam_pair_note(lam_pair_entry *e, uint32_t piece)
{
    if (e->n > 0 && e->pieces[e->n - 1] == piece)
        return LAM_OK;
    if (e->n == e->room) {
        const uint32_t room = e->room > 0 ? 2 * e->room : 4;
        uint32_t *pieces = realloc(e->pieces, room * sizeof *pieces);
        if (pieces == NULL)
            return lam_fail(LAM_ERR_MEMORY, "no memory for %u pieces of a pair", room);
        e->pieces = pieces;
        e->room = room;
    }
    e->pieces[e->n++] = piece;
    return LAM_OK;
}
