/* gemm_finish.c -- behind a product: bias, ReLU and dropout, or the gradient of those (ref/gemm.c specifies).
 *
 * Rows are finished by the thread that has just computed them, a few at a time, while they are in its second cache: in a pass of
 * its own each would come from memory once more.  Sums over rows are taken as chunks.h says. */
#include "ops/cpu/gemm_int.h"

lam_finish lam_finish_make(const lam_cpu_dev *dev, const lam_gemm *g)
{
    lam_finish f = {.mask = lam_mask_make(&g->drop)};
    f.some = g->bias || g->relu || f.mask.on || g->h;
    if (g->h) {
        f.chunks = lam_chunks_of((size_t)g->m, 1, (size_t)g->n);
        f.partial = lam_partial_sums(dev, f.chunks, 1, (size_t)g->n);
    }
    return f;
}

/* n of sixteen columns of one row: drop(relu(c + bias)). */
LAM_INLINE void finish_strip(float *c, const float *bias, const lam_mask *mask, uint64_t bits,
                             int relu, size_t n)
{
    lam_f16v x = lam_load_n(c, n);
    if (bias)
        x = lam_add(x, lam_load_n(bias, n));
    if (relu)
        x = lam_max(lam_splat(0.0f), x); /* a NaN stays one */
    lam_store_n(c, lam_keep16(lam_mul(x, lam_splat(mask->scale)), bits), n);
}

/* Columns col to col + n - 1 of row `row`, c being the first of them. */
static void forward_row(float *c, const lam_gemm *g, const lam_mask *mask, size_t row, size_t col,
                        size_t n)
{
    const uint64_t block = lam_mask_block(row, (size_t)g->n);
    const float *bias = g->bias ? (const float *)g->bias + col : NULL;
    uint64_t bits = 0;
    size_t i = 0;
    if (mask->on &&
        col % 64 != 0) /* those of the sixteen columns in front, of a word begun before */
        bits = lam_mask_bits(mask, block + col / 64 * 8) >> (col % 64 - LAM_VEC);
    for (; i + LAM_VEC <= n; i += LAM_VEC) {
        bits = lam_mask_next(mask, bits, block, col + i);
        finish_strip(c + i, bias ? bias + i : NULL, mask, bits, g->relu, LAM_VEC);
    }
    if (i < n) {
        bits = lam_mask_next(mask, bits, block, col + i);
        finish_strip(c + i, bias ? bias + i : NULL, mask, bits, g->relu, n - i);
    }
}

/* fwd was h = drop(relu(z + bias)): a positive h is an element that passed both. */
static void backward_row(float *dh, const float *h, float *sum, float scale, size_t n)
{
#pragma omp simd
    for (size_t j = 0; j < n; j++) {
        const float g = h[j] > 0.0f ? scale * dh[j] : 0.0f;
        dh[j] = g;
        sum[j] += g;
    }
}

void lam_finish_rows(const lam_finish *f, const lam_product *p, size_t row, size_t rows, size_t col,
                     size_t n)
{
    const lam_gemm *g = p->shape;
    const size_t above = g->step_c == 0 ? 0 : p->which * (size_t)g->m, at = p->col + col;
    for (size_t i = row; i < row + rows; i++) {
        const size_t in_c = p->row + i;
        float *const c = p->c + i * g->ldc + col;
        if (!g->h) {
            forward_row(c, g, &f->mask, above + in_c, at, n);
            continue;
        }
        float *const sum = f->partial + in_c / f->chunks.size * lam_line_of((size_t)g->n) + at;
        if (in_c % f->chunks.size == 0)
            memset(sum, 0, n * sizeof *sum);
        backward_row(c, (const float *)g->h + in_c * g->ldc + at, sum, (float)g->h_scale, n);
    }
}

void lam_finish_sums(const lam_finish *f, const lam_gemm *g)
{
    if (g->h)
        lam_fold(g->dbias, f->partial, f->chunks, 0, 1, (size_t)g->n);
}
