/* overlap.c -- see overlap.h. */
#include "data/overlap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_MAX = 256, BLOCK = 1 << 15, FEWEST = 16 /* different tokens of a piece */ };

static const uint64_t BASE = 0x9e3779b97f4a7c15u; /* odd, so that no token fades from the hash */

typedef struct slot {
    uint64_t hash;
    int64_t at; /* of the piece, in tokens; -1: empty */
    bool found;
} slot;

typedef struct search {
    lam_overlap *out;
    const lam_tokens *held_out, *other;
    uint64_t leave; /* what the oldest token of a piece is multiplied by */
    slot *slots;
    size_t mask;
    int32_t ids[PIECE_MAX + BLOCK];
} search;

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static uint64_t hash_of(const int32_t *ids, int n)
{
    uint64_t h = 0;
    for (int i = 0; i < n; i++)
        h = h * BASE + (uint64_t)ids[i] + 1;
    return h;
}

/* A row of dots or blanks is no text that anybody wrote twice. */
static bool is_text(const int32_t *ids, int n)
{
    uint64_t seen[16] = {0};
    int different = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t bit = (uint32_t)ids[i] % 1024;
        different += (seen[bit / 64] >> bit % 64 & 1) == 0;
        seen[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    return different >= FEWEST;
}

/* The slot of the hash, or the empty one where it belongs. */
static slot *place(const search *s, uint64_t hash)
{
    size_t i = (size_t)mix(hash) & s->mask;
    while (s->slots[i].at >= 0 && s->slots[i].hash != hash)
        i = (i + 1) & s->mask;
    return &s->slots[i];
}

static lam_status keep_pieces(search *s)
{
    const int n = s->out->piece;
    const int64_t all = s->held_out->count / n;
    const int64_t stride = (all + LAM_OVERLAP_PIECES - 1) / LAM_OVERLAP_PIECES;
    size_t room = 16;
    while (stride > 0 && room < 2 * (size_t)(all / stride + 1))
        room *= 2;
    s->slots = malloc(room * sizeof *s->slots);
    if (s->slots == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to compare the splits");
    s->mask = room - 1;
    for (size_t i = 0; i < room; i++)
        s->slots[i].at = -1;
    for (int64_t i = 0; i < all; i += stride) {
        lam_tokens_copy(s->held_out, s->ids, i * n, (size_t)n);
        if (!is_text(s->ids, n))
            continue;
        const uint64_t hash = hash_of(s->ids, n);
        slot *at = place(s, hash);
        if (at->at < 0) /* one that is there twice is looked for once */
            *at = (slot){.hash = hash, .at = i * n};
        s->out->looked += at->at == i * n;
    }
    return LAM_OK;
}

static void note(search *s, slot *at, const int32_t *ids, int64_t where)
{
    int32_t piece[PIECE_MAX];
    lam_tokens_copy(s->held_out, piece, at->at, (size_t)s->out->piece);
    if (memcmp(piece, ids, (size_t)s->out->piece * sizeof *ids) != 0)
        return;
    at->found = true;
    if (s->out->found++ == 0 || at->at < s->out->at) {
        s->out->at = at->at;
        s->out->other = where;
    }
}

/* Rolls over ids[0, n), the first of them token `from` of the other split; a piece ends at every token behind the
 * first. */
static void roll(search *s, int64_t from, int n)
{
    const int piece = s->out->piece;
    uint64_t hash = hash_of(s->ids, piece);
    for (int i = 0;; i++) {
        slot *at = place(s, hash);
        if (at->at >= 0 && !at->found)
            note(s, at, s->ids + i, from + i);
        if (i + piece == n)
            return;
        hash =
            (hash - ((uint64_t)s->ids[i] + 1) * s->leave) * BASE + (uint64_t)s->ids[i + piece] + 1;
    }
}

static lam_status look(search *s, lam_overlap_tell *tell, void *user)
{
    const int64_t total = s->other->count;
    for (int64_t from = 0; from + s->out->piece <= total; from += BLOCK) {
        const int64_t left = total - from, most = BLOCK - 1 + s->out->piece;
        const int n = (int)(left < most ? left : most);
        lam_tokens_copy(s->other, s->ids, from, (size_t)n);
        roll(s, from, n);
        LAM_TRY(tell(user, from, total));
    }
    return LAM_OK;
}

lam_status lam_overlap_find(lam_overlap *out, const lam_tokens *held_out, const lam_tokens *other,
                            lam_text_kind kind, lam_overlap_tell *tell, void *user)
{
    *out =
        (lam_overlap){.piece = kind == LAM_BYTES || kind == LAM_CHARS ? PIECE_MAX : PIECE_MAX / 4};
    search *s = malloc(sizeof *s);
    if (s == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to compare the splits");
    *s = (search){.out = out, .held_out = held_out, .other = other, .leave = 1};
    for (int i = 1; i < out->piece; i++)
        s->leave *= BASE;
    lam_status status = keep_pieces(s);
    if (status == LAM_OK && out->looked > 0)
        status = look(s, tell, user);
    free(s->slots);
    free(s);
    return status;
}
