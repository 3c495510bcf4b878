/* ref/gemm.c -- matrix products by the schoolbook rule, Eq. 1 and every other linear map.
 *
 * One sum per element, terms in the order of k.  The gradients of C = A B are products too
 * (dA = dC B^T, dB = A^T dC), so there is no backward function here, but for the epilogue's: with h
 * the gradient that was just computed goes back through it (ref/rowwise.c). */
#include "ops/ref/ref.h"

#include <assert.h>

/* Element (row, col) of a matrix, or of the transpose of what is stored. */
static double element(const double *p, size_t ld, lam_trans trans, size_t row, size_t col)
{
    return trans == LAM_KEEP ? p[row * ld + col] : p[col * ld + row];
}

/* The same of B, whatever it is stored as. */
static double weight(const lam_gemm *a, const void *b, size_t row, size_t col)
{
    const size_t stored = a->tb == LAM_KEEP ? row : col, other = a->tb == LAM_KEEP ? col : row;
    const double x = lam_ref_element(b, a->b_class, stored * a->ldb + other);
    return a->b_class == LAM_BYTE ? ((const double *)a->b_scale)[stored] * x : x;
}

/* drop(relu(x + bias)), as far as asked; `row` counts through the batch. */
static double finish(const lam_gemm *a, double x, size_t row, size_t col)
{
    if (a->bias)
        x += ((const double *)a->bias)[col];
    if (a->relu && x < 0.0)
        x = 0.0;
    return x * lam_ref_mask(&a->drop, (size_t)a->n, row, col);
}

/* One product.  `first` and `last` say whether it is the first and last one to be summed into this
 * C: what C held before counts once, and the sum is finished once. */
static void product(const lam_gemm *a, size_t i, int first, int last)
{
    const double *x = (const double *)a->a + i * a->step_a;
    const void *y = a->b_class == LAM_ACT ? (const double *)a->b + i * a->step_b : a->b;
    double *c = (double *)a->c + i * a->step_c;
    uint16_t *cache = (uint16_t *)a->c + i * a->step_c;
    const size_t m = (size_t)a->m, n = (size_t)a->n, k = (size_t)a->k;
    const size_t above = a->step_c == 0 ? 0 : i * m; /* rows of C in earlier products */

    for (size_t row = 0; row < m; row++)
        for (size_t col = 0; col < n; col++) {
            double *out = &c[row * a->ldc + col];
            double sum = first && a->beta == 0.0 ? 0.0 : *out;
            for (size_t t = 0; t < k; t++)
                sum += element(x, a->lda, a->ta, row, t) * weight(a, y, t, col);
            if (a->c_class == LAM_HALF)
                lam_convert(&cache[row * a->ldc + col], LAM_BF16, &sum, LAM_F64, 1);
            else
                *out = last ? finish(a, sum, above + row, col) : sum;
        }
}

void lam_ref_gemm(lam_dev *dev, const lam_gemm *a)
{
    assert(a->m >= 0 && a->n >= 0 && a->k >= 0 && a->batch >= 0);
    assert(a->beta == 0.0 || a->beta == 1.0);
    assert(a->b_class == LAM_ACT || a->step_b == 0);
    assert(a->c_class != LAM_HALF || (a->beta == 0.0 && (a->batch < 2 || a->step_c > 0)));
    assert(!a->h || (a->batch == 1 && a->ldc == (size_t)a->n && a->beta == 0.0 && !a->bias &&
                     !a->relu && a->drop.p == 0.0 && a->c_class == LAM_ACT));
    const size_t batch = (size_t)a->batch;
    const int separate = a->step_c != 0;
    for (size_t i = 0; i < batch; i++)
        product(a, i, separate || i == 0, separate || i + 1 == batch);
    if (a->h) {
        const lam_relu_bwd back = lam_gemm_back(a);
        lam_ref_relu_bwd(dev, &back);
    }
}
