/* ref/exact_gemm.c -- the specification of products in exact arithmetic: sums of integers. */
#include "ops/ref/exact.h"

#include <assert.h>

/* One row of A of one product. */
typedef struct row {
    const float *x;
    lam_exact_grid grid;
} row;

/* What is quantised of element t: where B's scales lie along the sum, its share of them is in it. */
static float element(const lam_gemm *a, const float *x, size_t t)
{
    return a->tb == LAM_FLIP ? x[t] : x[t] * ((const float *)a->b_scale)[t];
}

static row row_of(const lam_gemm *a, size_t i, size_t r)
{
    const float *x = (const float *)a->a + i * a->step_a + r * a->lda;
    int32_t size = 0;
    for (size_t t = 0; t < (size_t)a->k; t++) {
        const int32_t now = lam_exact_size(element(a, x, t));
        size = now > size ? now : size;
    }
    return (row){x, lam_exact_grid_of(size, LAM_EXACT_ROW)};
}

/* Column `col` of the row's product with B, before the epilogue. */
static float product(const lam_gemm *a, const row *x, size_t col)
{
    const int8_t *b = a->b;
    const int flip = a->tb == LAM_FLIP;
    int64_t sum = 0;
    for (size_t t = 0; t < (size_t)a->k; t++)
        sum += (int64_t)lam_ref_level(x->grid, element(a, x->x, t)) *
               b[flip ? col * a->ldb + t : t * a->ldb + col];
    const float scale = flip ? x->grid.scale * ((const float *)a->b_scale)[col] : x->grid.scale;
    return (float)sum * scale;
}

static void finish(const lam_gemm *a, float *c, size_t col, float x)
{
    if (a->beta != 0.0)
        x = *c + x;
    if (a->bias)
        x = x + ((const float *)a->bias)[col];
    *c = a->relu && x < 0.0f ? 0.0f : x;
}

/* A row of C in int8. */
static void put_bytes(const lam_gemm *a, const row *x, size_t at)
{
    const size_t group = (size_t)a->c_group;
    float values[LAM_NEXT_WIDTH];
    assert(group <= LAM_NEXT_WIDTH && (size_t)a->n % group == 0 && at % group == 0);
    for (size_t col = 0; col < (size_t)a->n; col += group) {
        for (size_t c = 0; c < group; c++)
            values[c] = product(a, x, col + c);
        lam_ref_pack((int8_t *)a->c + at + col, (float *)a->c_scale + (at + col) / group, values,
                     group);
    }
}

void lam_ref_exact_gemm(lam_dev *dev, const lam_gemm *a)
{
    (void)dev;
    assert(a->ta == LAM_KEEP && a->b_class == LAM_BYTE && a->step_b == 0 && !a->h);
    assert(a->drop.p == 0.0 && (a->batch < 2 || a->step_c > 0));
    for (size_t i = 0; i < (size_t)a->batch; i++)
        for (size_t r = 0; r < (size_t)a->m; r++) {
            const row x = row_of(a, i, r);
            const size_t at = i * a->step_c + r * a->ldc;
            if (a->c_class == LAM_BYTE) {
                put_bytes(a, &x, at);
                continue;
            }
            for (size_t col = 0; col < (size_t)a->n; col++)
                finish(a, (float *)a->c + at + col, col, product(a, &x, col));
        }
}
