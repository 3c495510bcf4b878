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
    const int end = min_int(a->keys, b->j0 + LAM_BLOCK_K);
    return (lam_span){min_int(max_int(s.lo, b->j0), end), min_int(max_int(s.hi, b->j0), end)};
}

void lam_block_set(lam_block *out, const lam_attn *a, int i0, int j0)
{
    const int with_pos = a->r || a->rbias;
    *out = (lam_block){.i0 = i0, .rows = min_int(LAM_BLOCK_Q, a->queries - i0), .j0 = j0};
    out->groups = lam_ceil(out->rows, LAM_TILE) / LAM_TILE;
    out->pzero = with_pos ? lam_attn_pzero(a) : 0;
    out->K = a->K;
    out->vecs = lam_ceil(a->K, LAM_VEC) / LAM_VEC;
    out->ld = lam_block_ld(a->keys);
    for (int i = 0; i < out->rows; i++) {
        const int g = i / LAM_TILE, to_p = out->pzero - (i0 + i);
        const lam_span key = lam_block_sees(out, a, i);
        out->key[g] = lam_span_join(out->key[g], key);
        if (with_pos)
            out->pos[g] = lam_span_join(out->pos[g], (lam_span){key.lo + to_p, key.hi + to_p});
    }
    for (int g = 0; g < out->groups; g++) {
        out->all = lam_span_join(out->all, out->key[g]);
        out->dist = lam_span_join(out->dist, out->pos[g]);
    }
    assert(out->dist.lo >= 0 && out->dist.hi <= (with_pos ? a->r_rows : 0));
}

/* Where score (0, 0) lies from s on when rows are ld apart, and where band element (0, 0) lies when
 * they are ld + 1 apart. */
static ptrdiff_t key_origin(const lam_block *b)
{
    return LAM_BLOCK_PAD - b->j0;
}

static ptrdiff_t pos_origin(const lam_block *b)
{
    return LAM_BLOCK_PAD - b->j0 + b->i0 - b->pzero;
}

/* Strips of sixteen columns outside, groups inside: three strips stay in the first cache while all
 * rows of the block pass by. */
static void score(const lam_block *b, lam_tile t, ptrdiff_t origin, lam_tile_start start)
{
    const int skewed = t.ldc != b->ld;
    const lam_span all = skewed ? b->dist : b->all, *part = skewed ? b->pos : b->key;
    const int step = LAM_VEC * LAM_TILE_VECS, end = lam_ceil(all.hi, LAM_VEC);
    const lam_tile base = t;
    for (int x = lam_floor(all.lo, LAM_VEC); x < end; x += step)
        for (int g = 0; g < b->groups; g++) {
            const int lo = max_int(x, lam_floor(part[g].lo, LAM_VEC));
            const int hi = min_int(x + step, lam_ceil(part[g].hi, LAM_VEC));
            const size_t row = (size_t)g * LAM_TILE;
            if (lo >= hi || part[g].lo == part[g].hi)
                continue;
            t.c = base.c + ((ptrdiff_t)(row * base.ldc) + lo + origin);
            t.a = base.a + row * base.lda;
            t.b = base.b + (size_t)lo * (size_t)b->K;
            if (start == LAM_TILE_ADD)
                lam_tile_mul(&t, (hi - lo) / LAM_VEC, LAM_TILE_ROWS, LAM_TILE_ADD);
            else
                lam_tile_mul(&t, (hi - lo) / LAM_VEC, LAM_TILE_ROWS, LAM_TILE_SET);
        }
}

/* Rows of queries against strips; the caller adds C's row distance. */
static lam_tile on_strips(const lam_block *b, float *s, const float *q, const float *strips)
{
    return (lam_tile){.c = s,
                      .a = q,
                      .lda = (size_t)b->vecs * LAM_VEC,
                      .b = strips,
                      .ldb = LAM_VEC,
                      .next = LAM_VEC * (size_t)b->K,
                      .depth = b->K};
}

void lam_block_score_pos(const lam_block *b, float *s, const float *q, const float *rt,
                         lam_tile_start start)
{
    lam_tile t = on_strips(b, s, q, rt);
    t.ldc = b->ld + 1;
    score(b, t, pos_origin(b), start);
}

void lam_block_score_key(const lam_block *b, float *s, const float *q, const float *kt,
                         lam_tile_start start)
{
    lam_tile t = on_strips(b, s, q, kt);
    t.ldc = b->ld;
    score(b, t, key_origin(b), start);
}

static void read_rows(const lam_block *b, lam_tile t, ptrdiff_t origin)
{
    const lam_span *part = t.lda != b->ld ? b->pos : b->key;
    const lam_tile base = t;
    for (int g = 0; g < b->groups; g++) {
        const size_t row = (size_t)g * LAM_TILE;
        t.c = base.c + row * base.ldc;
        t.a = base.a + ((ptrdiff_t)(row * base.lda) + part[g].lo + origin);
        t.b = base.b + (size_t)part[g].lo * base.ldb;
        t.depth = part[g].hi - part[g].lo;
        if (t.depth > 0)
            lam_tile_mul(&t, b->vecs, LAM_TILE_ROWS, LAM_TILE_ADD);
    }
}

/* Rows of C from scores and rows of x; the caller adds the scores' row distance. */
static lam_tile on_rows(const lam_block *b, float *c, const float *s, const float *x)
{
    const size_t width = (size_t)b->vecs * LAM_VEC;
    return (lam_tile){.c = c, .ldc = width, .a = s, .b = x, .ldb = width, .next = LAM_VEC};
}

void lam_block_read_key(const lam_block *b, float *c, const float *s, const float *v)
{
    lam_tile t = on_rows(b, c, s, v);
    t.lda = b->ld;
    read_rows(b, t, key_origin(b));
}

void lam_block_read_pos(const lam_block *b, float *c, const float *s, const float *r)
{
    lam_tile t = on_rows(b, c, s, r);
    t.lda = b->ld + 1;
    read_rows(b, t, pos_origin(b));
}

/* Eight keys (or positions) at a time; the groups that see one of them are neighbours, because both
 * ends of the intervals move one way only. */
static void send_rows(const lam_block *b, lam_tile t, ptrdiff_t origin)
{
    const int skewed = t.lda != b->ld;
    const lam_span all = skewed ? b->dist : b->all, *part = skewed ? b->pos : b->key;
    const lam_tile base = t;
    for (int x = lam_floor(all.lo, LAM_TILE); x < all.hi; x += LAM_TILE) {
        int first = b->groups, last = -1;
        for (int g = 0; g < b->groups; g++)
            if (part[g].lo < x + LAM_TILE && part[g].hi > x) {
                first = min_int(first, g);
                last = g;
            }
        if (last < 0)
            continue;
        const size_t row = (size_t)first * LAM_TILE;
        t.c = base.c + (size_t)x * base.ldc;
        t.a = base.a + ((ptrdiff_t)(row * base.lda) + x + origin);
        t.b = base.b + row * base.ldb;
        t.depth = (last + 1 - first) * LAM_TILE;
        lam_tile_mul(&t, b->vecs, LAM_TILE_COLS, LAM_TILE_ADD);
    }
}

void lam_block_send_key(const lam_block *b, float *c, const float *s, const float *x)
{
    lam_tile t = on_rows(b, c, s, x);
    t.lda = b->ld;
    send_rows(b, t, key_origin(b));
}

void lam_block_send_pos(const lam_block *b, float *c, const float *s, const float *x)
{
    lam_tile t = on_rows(b, c, s, x);
    t.lda = b->ld + 1;
    send_rows(b, t, pos_origin(b));
}

void lam_block_fill_pos(const lam_block *b, float *s, const float *rbias)
{
    for (int i = 0; i < b->groups * LAM_TILE; i++) {
        const lam_span pos = b->pos[i / LAM_TILE];
        float *row = s + (ptrdiff_t)((size_t)i * (b->ld + 1));
        if (pos.lo == pos.hi)
            continue;
        for (int p = lam_floor(pos.lo, LAM_VEC); p < pos.hi; p += LAM_VEC)
            lam_store(row + (p + pos_origin(b)), lam_load(rbias + p));
    }
}

void lam_block_sum_pos(const lam_block *b, float *sum, const float *s)
{
    for (int i = 0; i < b->rows; i++) {
        const lam_span pos = b->pos[i / LAM_TILE];
        const float *row = s + (size_t)i * (b->ld + 1);
        for (int p = pos.lo; p < pos.hi; p++)
            sum[p] += row[p + pos_origin(b)];
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
