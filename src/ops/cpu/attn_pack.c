/* attn_pack.c -- copying and transposing a head's rows. */
#include "ops/cpu/attn_pack.h"

#include "ops/cpu/attn_shuffle.h"

static const float *row_at(const lam_pack_source *src, int n)
{
    return src->base + n * src->step;
}

static void copy_row(float *out, const float *in, int K)
{
    int c = 0;
    for (; c + LAM_VEC <= K; c += LAM_VEC)
        lam_store(out + c, lam_load(in + c));
    if (c < K)
        lam_store(out + c, lam_load_n(in + c, (size_t)(K - c)));
}

void lam_pack_rows(float *rows, const lam_pack_source *src)
{
    const size_t width = (size_t)lam_ceil(src->K, LAM_VEC);
    for (int n = src->part.lo; n < src->part.hi; n++)
        copy_row(rows + (size_t)n * width, row_at(src, n), src->K);
}

/* What is left at the edges: rows outside the source read as zero, columns past K do not exist. */
static void pack_edge(float *out, const lam_pack_source *src, int first, int c)
{
    const int left = src->K - c < LAM_VEC ? src->K - c : LAM_VEC;
    float rows[LAM_VEC * LAM_VEC], columns[LAM_VEC * LAM_VEC];
    for (int i = 0; i < LAM_VEC; i++) {
        const int n = first + i, inside = n >= src->part.lo && n < src->part.hi;
        lam_store(rows + i * LAM_VEC,
                  lam_load_n(inside ? row_at(src, n) + c : src->base, inside ? (size_t)left : 0));
    }
    lam_transpose16(columns, rows, LAM_VEC);
    memcpy(out, columns, (size_t)left * LAM_VEC * sizeof *out);
}

static void pack_strip(float *strip, const lam_pack_source *src, int first)
{
    const int whole = first >= src->part.lo && first + LAM_VEC <= src->part.hi;
    for (int c = 0; c < src->K; c += LAM_VEC)
        if (whole && c + LAM_VEC <= src->K)
            lam_transpose16(strip + c * LAM_VEC, row_at(src, first) + c, src->step);
        else
            pack_edge(strip + c * LAM_VEC, src, first, c);
}

void lam_pack_strips(float *strips, const lam_pack_source *src)
{
    for (int n = lam_floor(src->part.lo, LAM_VEC); n < src->part.hi; n += LAM_VEC)
        pack_strip(strips + (size_t)n * (size_t)src->K, src, n);
}

void lam_pack_query(float *out, const float *in, const float *bias, int K, float scale)
{
    for (int c = 0; c < K; c += LAM_VEC) {
        const size_t n = K - c < LAM_VEC ? (size_t)(K - c) : LAM_VEC;
        lam_f16v x = lam_load_n(in + c, n);
        if (bias)
            x = lam_add(x, lam_load_n(bias + c, n));
        lam_store(out + c, lam_mul(x, lam_splat(scale)));
    }
}

void lam_pack_queries(float *out, const lam_pack_source *src, const float *bias, float scale)
{
    const int rows = src->part.hi - src->part.lo;
    const size_t width = (size_t)lam_ceil(src->K, LAM_VEC);
    for (int i = 0; i < rows; i++)
        lam_pack_query(out + (size_t)i * width, row_at(src, src->part.lo + i), bias, src->K, scale);
    memset(out + (size_t)rows * width, 0,
           ((size_t)lam_ceil(rows, LAM_TILE) - (size_t)rows) * width * sizeof *out);
}

lam_pack_source lam_pack_source_head(const lam_attn *a, lam_view view, size_t ld, int b, int h)
{
    return (lam_pack_source){
        .base = lam_attn_head(a, view, b, h), .step = (ptrdiff_t)ld, .K = a->K};
}

lam_pack_source lam_pack_source_pos(const lam_attn *a, int h)
{
    const float *base = (const float *)a->r + (size_t)h * (size_t)a->K;
    if (a->r_sign > 0)
        return (lam_pack_source){.base = base, .step = (ptrdiff_t)a->ldr, .K = a->K};
    return (lam_pack_source){
        .base = base + (size_t)(a->r_rows - 1) * a->ldr, .step = -(ptrdiff_t)a->ldr, .K = a->K};
}

/* The first and the last query that sees a key; the same ones when none does.  The ends of what queries see move one way
 * only, so these two tell all. */
static lam_span outer_queries(const lam_attn *a)
{
    lam_span x = {0, a->queries - 1};
    lam_span first = lam_attn_sees(a, x.lo), last = lam_attn_sees(a, x.hi);
    while (x.lo < x.hi && first.lo == first.hi)
        first = lam_attn_sees(a, ++x.lo);
    while (x.lo < x.hi && last.lo == last.hi)
        last = lam_attn_sees(a, --x.hi);
    return x;
}

lam_span lam_attn_all_keys(const lam_attn *a)
{
    const lam_span i = outer_queries(a), first = lam_attn_sees(a, i.lo),
                   last = lam_attn_sees(a, i.hi);
    return first.lo == first.hi ? (lam_span){0, 0} : (lam_span){first.lo, last.hi};
}

lam_span lam_attn_all_pos(const lam_attn *a)
{
    const lam_span i = outer_queries(a), first = lam_attn_sees(a, i.lo),
                   last = lam_attn_sees(a, i.hi);
    if ((!a->r && !a->rbias) || first.lo == first.hi)
        return (lam_span){0, 0};
    return (lam_span){lam_attn_pzero(a) - i.hi + last.lo, lam_attn_pzero(a) - i.lo + first.hi};
}

void lam_pack_rbias(float *out, const lam_attn *a, int h)
{
    const float *rbias = a->rbias, scale = (float)a->scale;
    for (int p = 0; p < lam_ceil(a->r_rows, LAM_VEC); p++) {
        const int row = a->r_sign > 0 ? p : a->r_rows - 1 - p;
        out[p] = p < a->r_rows ? scale * rbias[(size_t)row * (size_t)a->H + (size_t)h] : 0.0f;
    }
}
