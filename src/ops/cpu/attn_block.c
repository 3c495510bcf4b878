/* attn_block.c -- what a block of scores sees, and its six products, cut into tiles. */
#include "ops/cpu/attn_block.h"

#include <assert.h>

static int min_int(int x, int y)
{
    return x < y ? x : y;
}

static int max_int(int x, int y)
{
    return x > y ? x : y;
}

lam_span lam_span_join(lam_span x, lam_span y)
{
    if (y.lo == y.hi)
        return x;
    if (x.lo == x.hi)
        return y;
    return (lam_span){min_int(x.lo, y.lo), max_int(x.hi, y.hi)};
}

lam_span lam_attn_sees(const lam_attn *a, int i)
{
    const int next = a->shift + i + 1; /* the first key on the right of the query */
    const int cut = min_int(max_int(next, 0), a->keys);
    switch (a->mode) {
    case LAM_CAUSAL:
        if (a->reach > 0)
            return (lam_span){min_int(max_int(next - a->reach, 0), a->keys), cut};
        return (lam_span){0, cut};
    case LAM_AHEAD:
        return (lam_span){cut, a->keys};
    case LAM_FULL:
        break;
    }
    return (lam_span){0, a->keys};
}

int lam_attn_pzero(const lam_attn *a)
{
    assert(a->r_sign == 1 || a->r_sign == -1);
    return (a->r_sign > 0 ? a->r_zero : a->r_rows - 1 - a->r_zero) - a->shift;
}

/* An odd number of vectors, so that rows do not all fall on the same cache sets. */
size_t lam_block_ld(int keys)
{
    const int width = lam_ceil(min_int(keys, LAM_BLOCK_K), LAM_VEC) + 2 * LAM_BLOCK_PAD;
    return (size_t)((width / LAM_VEC) | 1) * LAM_VEC;
}

lam_span lam_block_sees(const lam_block *b, const lam_attn *a, int i)
{
    if (i >= b->rows)
        return (lam_span){b->j0, b->j0};
    const lam_span s = lam_attn_sees(a, b->i0 + i);
    const int end = min_int(a->keys, b->j0 + LAM_BLOCK_K), start = max_int(b->j0, b->oldest);
    const int lo = min_int(max_int(s.lo, start), end);
    return (lam_span){lo, max_int(min_int(s.hi, end), lo)};
}

/* The union of the intervals of rows [first, last), and of the p they mean.  Both ends of the
 * intervals move right with the rows, both ends of the p move left, so the outermost rows that see
 * anything tell all. */
static void group_set(lam_block *b, const lam_attn *a, int g)
{
    int first = g * LAM_TILE, last = min_int(first + LAM_TILE, b->rows) - 1;
    lam_span top = lam_block_sees(b, a, first), end = lam_block_sees(b, a, last);
    while (first < last && top.lo == top.hi)
        top = lam_block_sees(b, a, ++first);
    while (first < last && end.lo == end.hi)
        end = lam_block_sees(b, a, --last);
    if (top.lo == top.hi)
        return;
    b->key[g] = (lam_span){top.lo, end.hi};
    if (a->r || a->rbias)
        b->pos[g] =
            (lam_span){b->pzero + end.lo - (b->i0 + last), b->pzero + top.hi - (b->i0 + first)};
}

void lam_block_set(lam_block *out, const lam_attn *a, int stream, int i0, int j0)
{
    const int with_pos = a->r || a->rbias;
    *out = (lam_block){.i0 = i0, .rows = min_int(LAM_BLOCK_Q, a->queries - i0), .j0 = j0};
    out->oldest = lam_attn_oldest(a, (size_t)stream);
    out->groups = lam_ceil(out->rows, LAM_TILE) / LAM_TILE;
    out->pzero = with_pos ? lam_attn_pzero(a) : 0;
    out->K = a->K;
    out->vecs = lam_ceil(a->K, LAM_VEC) / LAM_VEC;
    out->ld = lam_block_ld(a->keys);
    for (int g = 0; g < out->groups; g++) {
        group_set(out, a, g);
        out->all = lam_span_join(out->all, out->key[g]);
        out->dist = lam_span_join(out->dist, out->pos[g]);
    }
    assert(out->dist.lo >= 0 && out->dist.hi <= (with_pos ? a->r_rows : 0));
}

/* Where score (i, j) lies from s on, and where band element (i, p) lies when rows are ld + 1 apart:
 * add j, or p. */
static ptrdiff_t key_offset(const lam_block *b, int i)
{
    return (ptrdiff_t)((size_t)i * b->ld) + LAM_BLOCK_PAD - b->j0;
}

static ptrdiff_t pos_offset(const lam_block *b, int i)
{
    return (ptrdiff_t)((size_t)i * (b->ld + 1)) + LAM_BLOCK_PAD - b->j0 + b->i0 - b->pzero;
}

/* Rows of queries times strips: columns `part` of C, rounded out to whole strips; t holds C's
 * address at part.lo's strip, A and all of B. */
static void score(const lam_block *b, lam_tile t, lam_span part, lam_tile_start start)
{
    const int lo = lam_floor(part.lo, LAM_VEC), n = (lam_ceil(part.hi, LAM_VEC) - lo) / LAM_VEC;
    t.lda = (size_t)b->vecs * LAM_VEC;
    t.b += (size_t)lo * (size_t)b->K;
    t.ldb = LAM_VEC;
    t.next = LAM_VEC * (size_t)b->K;
    t.warm = b->warm;
    t.depth = b->K;
    if (start == LAM_TILE_ADD)
        lam_tile_mul(&t, n, LAM_TILE_ROWS, LAM_TILE_ADD);
    else
        lam_tile_mul(&t, n, LAM_TILE_ROWS, LAM_TILE_SET);
}

static const float *group_row(const lam_block *b, const float *x, int g)
{
    return x + (size_t)(g * LAM_TILE) * (size_t)b->vecs * LAM_VEC;
}

void lam_block_score_pos(const lam_block *b, int g, float *s, const float *q, const float *rt,
                         lam_tile_start start)
{
    const lam_span part = b->pos[g];
    float *c = s + (pos_offset(b, g * LAM_TILE) + lam_floor(part.lo, LAM_VEC));
    if (part.lo < part.hi)
        score(b, (lam_tile){.c = c, .ldc = b->ld + 1, .a = group_row(b, q, g), .b = rt}, part,
              start);
}

void lam_block_score_key(const lam_block *b, int g, float *s, const float *q, const float *kt,
                         lam_tile_start start)
{
    const lam_span part = b->key[g];
    float *c = s + (key_offset(b, g * LAM_TILE) + lam_floor(part.lo, LAM_VEC));
    if (part.lo < part.hi)
        score(b, (lam_tile){.c = c, .ldc = b->ld, .a = group_row(b, q, g), .b = kt}, part, start);
}

/* Scores times rows of x: t holds the scores' address at part.lo and their row distance. */
static void read_rows(const lam_block *b, lam_tile t, lam_span part)
{
    const size_t width = (size_t)b->vecs * LAM_VEC;
    t.ldc = t.ldb = width;
    t.next = LAM_VEC;
    t.warm = b->warm;
    t.b += (size_t)part.lo * width;
    t.depth = part.hi - part.lo;
    lam_tile_mul(&t, b->vecs, LAM_TILE_ROWS, LAM_TILE_ADD);
}

void lam_block_read_key(const lam_block *b, int g, float *c, const float *s, const float *v)
{
    const lam_span part = b->key[g];
    const float *from = s + (key_offset(b, g * LAM_TILE) + part.lo);
    if (part.lo < part.hi)
        read_rows(b, (lam_tile){.c = c, .a = from, .lda = b->ld, .b = v}, part);
}

void lam_block_read_pos(const lam_block *b, int g, float *c, const float *s, const float *r)
{
    const lam_span part = b->pos[g];
    const float *from = s + (pos_offset(b, g * LAM_TILE) + part.lo);
    if (part.lo < part.hi)
        read_rows(b, (lam_tile){.c = c, .a = from, .lda = b->ld + 1, .b = r}, part);
}

/* The groups that see one of eight keys (or positions) are neighbours, because both ends of the
 * intervals move one way only. */
static lam_span groups_at(const lam_block *b, const lam_span *part, int x)
{
    lam_span found = {0, 0};
    for (int g = 0; g < b->groups; g++)
        if (part[g].lo < x + LAM_TILE && part[g].hi > x)
            found = lam_span_join(found, (lam_span){g, g + 1});
    return found;
}

/* Eight rows of c collect from the groups that see them: t holds the scores' address at those rows
 * of the first such group, and their row distance. */
static void send_rows(const lam_block *b, lam_tile t, lam_span groups)
{
    const size_t width = (size_t)b->vecs * LAM_VEC;
    t.ldc = t.ldb = width;
    t.next = LAM_VEC;
    t.warm = b->warm;
    t.b = group_row(b, t.b, groups.lo);
    t.depth = (groups.hi - groups.lo) * LAM_TILE;
    lam_tile_mul(&t, b->vecs, LAM_TILE_COLS, LAM_TILE_ADD);
}

void lam_block_send_key(const lam_block *b, float *c, const float *s, const float *x)
{
    const size_t width = (size_t)b->vecs * LAM_VEC;
    for (int j = lam_floor(b->all.lo, LAM_TILE); j < b->all.hi; j += LAM_TILE) {
        const lam_span groups = groups_at(b, b->key, j);
        const float *from = s + (key_offset(b, groups.lo * LAM_TILE) + j);
        if (groups.lo < groups.hi)
            send_rows(b, (lam_tile){.c = c + (size_t)j * width, .a = from, .lda = b->ld, .b = x},
                      groups);
    }
}

void lam_block_send_pos(const lam_block *b, float *c, const float *s, const float *x)
{
    const size_t width = (size_t)b->vecs * LAM_VEC;
    for (int p = lam_floor(b->dist.lo, LAM_TILE); p < b->dist.hi; p += LAM_TILE) {
        const lam_span groups = groups_at(b, b->pos, p);
        const float *from = s + (pos_offset(b, groups.lo * LAM_TILE) + p);
        if (groups.lo < groups.hi)
            send_rows(b,
                      (lam_tile){.c = c + (size_t)p * width, .a = from, .lda = b->ld + 1, .b = x},
                      groups);
    }
}

void lam_block_fill_pos(const lam_block *b, int g, float *s, const float *rbias)
{
    const lam_span pos = b->pos[g];
    for (int i = g * LAM_TILE; i < (g + 1) * LAM_TILE && pos.lo < pos.hi; i++)
        for (int p = lam_floor(pos.lo, LAM_VEC); p < pos.hi; p += LAM_VEC)
            lam_store(s + (pos_offset(b, i) + p), lam_load(rbias + p));
}

void lam_block_sum_pos(const lam_block *b, float *sum, const float *s)
{
    for (int i = 0; i < b->rows; i++) {
        const lam_span pos = b->pos[i / LAM_TILE];
        for (int p = pos.lo; p < pos.hi; p++)
            sum[p] += s[pos_offset(b, i) + p];
    }
}

void lam_block_clear(const lam_block *b, float *s, int i, lam_span seen)
{
    const lam_span part = b->key[i / LAM_TILE];
    if (part.lo == part.hi)
        return;
    const int from = lam_floor(part.lo, LAM_VEC) - LAM_VEC;
    const int to = lam_ceil(part.hi, LAM_VEC) + LAM_VEC;
    const int none = seen.lo == seen.hi;
    const int lo = none ? to : lam_floor(seen.lo, LAM_VEC), hi = lam_ceil(seen.hi, LAM_VEC);
    for (int j = from; j < lo; j += LAM_VEC)
        lam_store(lam_block_at(b, s, i, j), lam_splat(0.0f));
    for (int j = none ? to : hi; j < to; j += LAM_VEC)
        lam_store(lam_block_at(b, s, i, j), lam_splat(0.0f));
}
