/* attn_pack.h -- copies of a head's rows in the two shapes the tiles read.
 *
 *   rows    [n][width]            width = K rounded up to 16, the rest zero
 *   strips  [n / 16][K][16]       the transpose, in strips of sixteen rows of the source; rows that
 *                                 fill up the last strip are zero
 * A copy is read many times by every block of queries, costs little, and removes three cares at once:
 * row strides that fall on few cache sets, widths that are no multiple of 16, and transposition. */
#ifndef LAM_OPS_CPU_ATTN_PACK_H
#define LAM_OPS_CPU_ATTN_PACK_H

#include "ops/cpu/attn_block.h"

/* Rows [part.lo, part.hi) of a matrix whose row n starts at base + n * step; step may be negative. */
typedef struct lam_pack_source {
    const float *base;
    ptrdiff_t step;
    int K;
    lam_span part;
} lam_pack_source;

/* Row n goes to row n: both start at the place of row part.lo (strips: of its strip). */
void lam_pack_rows(float *rows, const lam_pack_source *src);
void lam_pack_strips(float *strips, const lam_pack_source *src);

/* out[c] = scale * (in[c] + bias[c]) for one row, zeros up to a multiple of 16; bias may be NULL.
 * The same for src's rows, moved to row 0, and zero rows up to a multiple of eight. */
void lam_pack_query(float *out, const float *in, const float *bias, int K, float scale);
void lam_pack_queries(float *out, const lam_pack_source *src, const float *bias, float scale);

/* Row 0 of stream b in a view of heads, at the columns of head h. */
static inline float *lam_attn_head(const lam_attn *a, lam_view view, int b, int h)
{
    return (float *)view.p + ((size_t)b * view.step + (size_t)h * (size_t)a->K);
}

/* Head h of a view's stream b, and of r in the order of p. */
lam_pack_source lam_pack_source_head(const lam_attn *a, lam_view view, size_t ld, int b, int h);
lam_pack_source lam_pack_source_pos(const lam_attn *a, int h);

/* Adds rows of src to what tiles ask memory for; a full list takes no more. */
static inline void lam_warm_add(lam_warm *w, lam_pack_source src, lam_span rows)
{
    if (w->n < LAM_WARM && rows.lo < rows.hi)
        w->list[w->n++] = (lam_warm_rows){.at = src.base + rows.lo * src.step,
                                          .step = src.step,
                                          .rows = rows.hi - rows.lo,
                                          .width = src.K};
}

/* scale * rbias of head h in the order of p, zeros up to a multiple of 16. */
void lam_pack_rbias(float *out, const lam_attn *a, int h);

/* The keys, and the positions p, that any query of the call sees. */
lam_span lam_attn_all_keys(const lam_attn *a);
lam_span lam_attn_all_pos(const lam_attn *a);

#endif
