/* attn_block.h -- a block of scores: where its visible part lies, and the products around it.
 *
 * A block is up to 64 queries of one stream and head against a chunk of up to 512 keys.  The keys a
 * query sees are always one interval whose two ends move right with the query, so a mask is two
 * numbers a row; a group of eight rows (one tile) works on the union of its intervals and skips the
 * rest, and only the fringe inside a group is masked element by element.  A group is served from
 * scores to output while its rows are in the first cache.
 *
 * Positions.  r is packed in the order p = pzero + (j - i) of ascending keys.  With a row distance
 * of ld the score (i, j) sits at i * ld + j = i * (ld + 1) + (j - i): read with the row distance
 * ld + 1 the same memory is the band (i, p).  So the positional product writes straight into the
 * scores, its backward reads straight from them, and no skewed copy exists.  The price is a margin
 * left and right of every row, where the corners of a tile of the band fall. */
#ifndef LAM_OPS_CPU_ATTN_BLOCK_H
#define LAM_OPS_CPU_ATTN_BLOCK_H

#include "ops/attn.h"
#include "ops/cpu/attn_tile.h"

enum {
    LAM_BLOCK_Q = 64,   /* queries of a block; a multiple of LAM_TILE */
    LAM_BLOCK_K = 512,  /* keys of a chunk; a multiple of 64, the elements of one mask word */
    LAM_BLOCK_PAD = 32, /* margin of a row of scores: 15 (strip) + 7 (skew), rounded up */
    LAM_BLOCK_GROUPS = LAM_BLOCK_Q / LAM_TILE
};

typedef struct lam_span {
    int lo, hi; /* lo <= x < hi; empty when equal */
} lam_span;

typedef struct lam_block {
    int i0, rows;   /* first query and how many; rows up to the next multiple of 8 see nothing */
    int j0;         /* first key of the chunk */
    int oldest;     /* first valid key of the stream */
    int groups;     /* of eight rows */
    int pzero;      /* p = pzero + j - i */
    int K, vecs;    /* head width, and the vectors that hold it */
    size_t ld;      /* row distance of scores */
    lam_warm *warm; /* what to ask memory for meanwhile, or NULL */
    lam_span all;   /* keys that any row sees */
    lam_span dist;  /* p that any row sees; empty without a positional term */
    lam_span key[LAM_BLOCK_GROUPS], pos[LAM_BLOCK_GROUPS]; /* the same of each group */
} lam_block;

static inline int lam_floor(int x, int step) /* x >= 0 */
{
    return x - x % step;
}

static inline int lam_ceil(int x, int step)
{
    return lam_floor(x + step - 1, step);
}

/* The smallest interval that holds both; an empty y adds nothing. */
lam_span lam_span_join(lam_span x, lam_span y);
/* The keys of [0, keys) that query i sees, in a stream where all of them are valid. */
lam_span lam_attn_sees(const lam_attn *a, int i);
/* p = lam_attn_pzero + j - i; r's row p or, when r_sign < 0, r_rows - 1 - p. */
int lam_attn_pzero(const lam_attn *a);
/* Floats from one row of scores to the next. */
size_t lam_block_ld(int keys);

/* The block of stream `stream` that starts at query i0 and key j0; all.lo == all.hi when nothing is visible. */
void lam_block_set(lam_block *out, const lam_attn *a, int stream, int i0, int j0);
/* The visible keys of row i (0 <= i < 8 * groups) within the chunk. */
lam_span lam_block_sees(const lam_block *b, const lam_attn *a, int i);
/* The address of score (i0 + i, j). */
static inline float *lam_block_at(const lam_block *b, float *s, int i, int j)
{
    return s + (size_t)i * b->ld + (LAM_BLOCK_PAD + j - b->j0);
}

/* For the eight rows of group g.  S = (S +) Q R^T over the band; S = (S +) Q K^T.  q has rows of
 * 16 * vecs, kt and rt are strips (attn_pack.h). */
void lam_block_score_pos(const lam_block *b, int g, float *s, const float *q, const float *rt,
                         lam_tile_start start);
void lam_block_score_key(const lam_block *b, int g, float *s, const float *q, const float *kt,
                         lam_tile_start start);
/* S = rbias[p] as far as lam_block_score_pos goes; rbias is padded to 16. */
void lam_block_fill_pos(const lam_block *b, int g, float *s, const float *rbias);
/* C += S V and C += S~ R, c being the group's eight rows.  Here and below scores outside a row's
 * interval must be zero (lam_block_clear). */
void lam_block_read_key(const lam_block *b, int g, float *c, const float *s, const float *v);
void lam_block_read_pos(const lam_block *b, int g, float *c, const float *s, const float *r);

/* For the whole block.  C += S^T X and C += S~^T X: rows of keys or positions collect from rows of
 * queries; sum[p] += the column of the band. */
void lam_block_send_key(const lam_block *b, float *c, const float *s, const float *x);
void lam_block_send_pos(const lam_block *b, float *c, const float *s, const float *x);
void lam_block_sum_pos(const lam_block *b, float *sum, const float *s);

/* Zero in row i around the vectors that hold `seen`, as far as the products above read. */
void lam_block_clear(const lam_block *b, float *s, int i, lam_span seen);

#endif
