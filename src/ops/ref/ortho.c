/* ref/ortho.c -- the specification of Muon's momentum, of Newton-Schulz's polynomial and of rows of one length. */
#include "ops/ref/ref.h"

#include <math.h>

/* u, into x, and its norm. */
static double move_on(const lam_ortho_begin *a, double *m, double *x, const double *grad,
                      double clip)
{
    double squares = 0.0;
    for (size_t i = 0; i < a->size; i++) {
        const double g = clip * grad[i];
        m[i] = a->beta * m[i] + g;
        x[i] = g + a->beta * m[i];
        squares += x[i] * x[i];
    }
    return sqrt(squares);
}

void lam_ref_ortho_begin(lam_dev *dev, const lam_ortho_begin *a)
{
    (void)dev;
    const double norm = *(const double *)a->norm;
    const double clip = a->clip == 0.0 ? 1.0 : fmin(1.0, a->clip / (norm + 1e-6));
    for (size_t k = 0; k < (size_t)a->count; k++) {
        double *x = (double *)a->x + k * a->size, length = 0.0;
        if (isfinite(norm))
            length = move_on(a, (double *)a->m + a->offset[k], x,
                             (const double *)a->grad + a->offset[k], clip);
        for (size_t i = 0; i < a->size; i++)
            x[i] = length > 0.0 ? x[i] / length : 0.0;
    }
}

void lam_ref_ortho_mix(lam_dev *dev, const lam_ortho_mix *a)
{
    (void)dev;
    const double *A = a->A, *P = a->P;
    double *q = a->q;
    const size_t n = (size_t)a->n;
    for (size_t k = 0; k < (size_t)a->count; k++)
        for (size_t row = 0; row < n; row++)
            for (size_t col = 0; col < n; col++) {
                const size_t i = (k * n + row) * n + col;
                q[i] = (row == col ? a->a : 0.0) + a->b * A[i] + a->c * P[i];
            }
}

void lam_ref_ortho_even(lam_dev *dev, const lam_ortho_even *a)
{
    (void)dev;
    const size_t rows = (size_t)a->rows, cols = (size_t)a->cols;
    for (size_t k = 0; k < (size_t)a->count; k++)
        for (size_t row = 0; row < rows; row++) {
            double *x = (double *)a->x + a->offset[k] + row * cols, squares = 0.0;
            for (size_t i = 0; i < cols; i++)
                squares += x[i] * x[i];
            const double factor = fmin(a->length / sqrt(squares), LAM_EVEN_MOST);
            for (size_t i = 0; i < cols; i++)
                x[i] *= factor;
        }
}
