/* piece_counts.c -- see piece_counts.h.  Every chunk of a text is counted by itself, then added. */
#include "data/piece_counts.h"

#include "core/grow.h"
#include "data/chunks.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 22 };

/* Pieces and how often each was met. */
typedef struct tally {
    lam_symbols *pieces;
    int64_t *counts;
    size_t room;
} tally;

typedef struct slot {
    lam_pieces *way;
    tally tally; /* of one chunk */
} slot;

struct lam_piece_counts {
    const lam_bpe *bpe;
    const lam_bpe_text *text; /* that is being counted */
    int32_t most;
    int threads, forgot;
    tally all;
    slot *slots;
    lam_teller *tell;
    void *user;
};

/* ---- one table of counts ---- */

static void clear(tally *t)
{
    lam_symbols_free(t->pieces);
    free(t->counts);
    *t = (tally){0};
}

static lam_status add(tally *t, const char *piece, size_t size, int64_t count)
{
    int32_t id;
    LAM_TRY(lam_symbols_add(t->pieces, piece, size, &id));
    if ((size_t)id >= t->room) {
        const size_t before = t->room;
        LAM_TRY(lam_grow(&t->counts, &t->room, (size_t)id + 512, sizeof *t->counts, "counts"));
        memset(t->counts + before, 0, (t->room - before) * sizeof *t->counts);
    }
    t->counts[id] += count;
    return LAM_OK;
}

static lam_status add_above(tally *to, const tally *from, int64_t above)
{
    for (int32_t i = 0; i < lam_symbols_count(from->pieces); i++) {
        size_t size;
        const char *piece = lam_symbols_text(from->pieces, i, &size);
        if (from->counts[i] > above)
            LAM_TRY(add(to, piece, size, from->counts[i]));
    }
    return LAM_OK;
}

static int falling(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The count above which at most `most` pieces lie. */
static lam_status limit_of(int64_t *limit, const tally *t, int32_t most)
{
    const size_t n = (size_t)lam_symbols_count(t->pieces);
    int64_t *sorted = malloc(n * sizeof *sorted);
    if (sorted == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to sort %zu counts", n);
    memcpy(sorted, t->counts, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, falling);
    *limit = sorted[most];
    free(sorted);
    return LAM_OK;
}

static lam_status forget(lam_piece_counts *c)
{
    tally kept = {0};
    int64_t limit = 0;
    LAM_TRY(limit_of(&limit, &c->all, c->most / 2));
    lam_status status = lam_symbols_create(&kept.pieces);
    if (status == LAM_OK)
        status = add_above(&kept, &c->all, limit);
    if (status != LAM_OK) {
        clear(&kept);
        return status;
    }
    clear(&c->all);
    c->all = kept;
    c->forgot++;
    return LAM_OK;
}

/* ---- counting ---- */

static lam_status count_piece(void *user, const lam_bpe_item *item)
{
    if (item->special >= 0 || item->size > LAM_TOKEN_MAX)
        return LAM_OK;
    return add(user, item->text, item->size, 1);
}

static lam_status count_chunk(void *user, int i, size_t *at, size_t goal)
{
    lam_piece_counts *c = user;
    slot *s = &c->slots[i];
    clear(&s->tally);
    LAM_TRY(lam_symbols_create(&s->tally.pieces));
    return lam_bpe_walk(c->bpe, s->way, c->text, at, goal, count_piece, &s->tally);
}

static lam_status take_chunk(void *user, int i, size_t end)
{
    lam_piece_counts *c = user;
    LAM_TRY(add_above(&c->all, &c->slots[i].tally, 0));
    if (lam_symbols_count(c->all.pieces) > c->most)
        LAM_TRY(forget(c));
    return c->tell != NULL ? c->tell(c->user, end) : LAM_OK;
}

lam_status lam_piece_counts_add(lam_piece_counts *c, const lam_bpe_text *t, lam_teller *tell,
                                void *user)
{
    c->text = t;
    c->tell = tell;
    c->user = user;
    return lam_chunks_run(&(lam_chunks){.text = t->text,
                                        .size = t->size,
                                        .chunk = CHUNK,
                                        .threads = c->threads,
                                        .work = count_chunk,
                                        .take = take_chunk,
                                        .user = c});
}

/* ---- create and free ---- */

static lam_status open_slots(lam_piece_counts *c)
{
    c->slots = calloc((size_t)c->threads, sizeof *c->slots);
    if (c->slots == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d threads", c->threads);
    for (int i = 0; i < c->threads; i++)
        LAM_TRY(lam_pieces_create(&c->slots[i].way, lam_bpe_pattern(c->bpe)));
    return lam_symbols_create(&c->all.pieces);
}

lam_status lam_piece_counts_create(lam_piece_counts **out, const lam_bpe *bpe, int32_t most,
                                   int threads)
{
    *out = NULL;
    lam_piece_counts *c = calloc(1, sizeof *c);
    if (c == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to count pieces");
    c->bpe = bpe;
    c->most = most;
    c->threads = threads;
    const lam_status status = open_slots(c);
    if (status != LAM_OK)
        lam_piece_counts_free(c);
    else
        *out = c;
    return status;
}

void lam_piece_counts_free(lam_piece_counts *c)
{
    if (c == NULL)
        return;
    for (int i = 0; c->slots != NULL && i < c->threads; i++) {
        lam_pieces_free(c->slots[i].way);
        clear(&c->slots[i].tally);
    }
    free(c->slots);
    clear(&c->all);
    free(c);
}

const lam_symbols *lam_piece_counts_pieces(const lam_piece_counts *c)
{
    return c->all.pieces;
}

const int64_t *lam_piece_counts_of(const lam_piece_counts *c)
{
    return c->all.counts;
}

int lam_piece_counts_forgot(const lam_piece_counts *c)
{
    return c->forgot;
}
