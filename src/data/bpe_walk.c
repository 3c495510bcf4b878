/* bpe_walk.c -- what a text consists of for BPE: pieces, and special tokens where they are read. */
#include "data/bpe_int.h"

#include <string.h>

/* Bytes behind the beginning of a piece that can matter to where it ends. */
enum { REACH = LAM_PIECE_MAX + 64 };

/* The longest special token that the text has at s[0, n), or -1. */
static int32_t special_at(const lam_bpe *b, const char *s, size_t n)
{
    int32_t found = -1;
    size_t length = 0;
    for (size_t i = 0; i < b->rules.n_special; i++) {
        size_t size;
        const char *text = lam_symbols_text(b->symbols, b->rules.special[i], &size);
        if (size > length && size <= n && memcmp(text, s, size) == 0) {
            found = b->rules.special[i];
            length = size;
        }
    }
    return found;
}

/* The next special token that begins in text[from, to): *at its place, or `to`; returns its number, or -1. */
static int32_t find_special(const lam_bpe *b, const lam_bpe_text *t, size_t from, size_t to,
                            size_t *at)
{
    for (*at = from; *at < to; ++*at) {
        if (!b->begins[(unsigned char)t->text[*at]])
            continue;
        const int32_t id = special_at(b, t->text + *at, t->size - *at);
        if (id >= 0)
            return id;
    }
    return -1;
}

/* Pieces up to `stop`, where the text ends or a special token begins. */
static lam_status walk_plain(lam_pieces *pieces, const lam_bpe_text *t, size_t stop, size_t *at,
                             size_t goal, lam_bpe_visitor *visit, void *user)
{
    size_t from = *at, to;
    lam_pieces_start(pieces, t->text, stop, from);
    for (; from < stop && from < goal; from = to) {
        LAM_TRY(lam_pieces_next(pieces, from, &to));
        LAM_TRY(visit(user, &(lam_bpe_item){-1, t->text + from, to - from, t->size - from}));
    }
    *at = from;
    return LAM_OK;
}

lam_status lam_bpe_walk(const lam_bpe *b, lam_pieces *pieces, const lam_bpe_text *t, size_t *at,
                        size_t goal, lam_bpe_visitor *visit, void *user)
{
    /* Behind this a special token changes nothing, so it need not be looked for. */
    const size_t reach = t->size > goal && t->size - goal > REACH ? goal + REACH : t->size;
    while (*at < t->size && *at < goal) {
        size_t stop = t->size, size;
        int32_t id = -1;
        if (t->special == LAM_SPECIAL_READ)
            id = find_special(b, t, *at, reach, &stop);
        LAM_TRY(walk_plain(pieces, t, stop, at, goal, visit, user));
        if (id < 0 || *at != stop || *at >= goal)
            continue;
        lam_symbols_text(b->symbols, id, &size);
        LAM_TRY(visit(user, &(lam_bpe_item){id, t->text + stop, size, t->size - stop}));
        *at += size;
    }
    return LAM_OK;
}
