/* cpu/ortho.c -- Muon's momentum, Newton-Schulz's polynomial and rows of one length.
 *
 * ref/ortho.c says what is computed.  Where a norm is of a whole matrix, the matrix is one thread's work; else a
 * row is. */
#include "ops/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* u, into x, and the sum of its squares. */
static double move_on(const lam_ortho_begin *a, float *m, float *x, const float *grad, float clip)
{
    const float beta = (float)a->beta;
    double squares = 0.0;
#pragma omp simd reduction(+ : squares)
    for (size_t i = 0; i < a->size; i++) {
        const float g = clip * grad[i];
        m[i] = beta * m[i] + g;
        x[i] = g + beta * m[i];
        squares += (double)x[i] * (double)x[i];
    }
    return squares;
}

void lam_cpu_ortho_begin(lam_dev *dev, const lam_ortho_begin *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t count = (size_t)a->count, size = a->size;
    const double norm = (double)*(const float *)a->norm;
    const double clip = a->clip == 0.0 ? 1.0 : fmin(1.0, a->clip / (norm + 1e-6));
    if (!isfinite(norm)) {
        memset(a->x, 0, count * size * sizeof(float));
        return;
    }
#pragma omp parallel for num_threads(lam_cpu_team(cpu, count *size)) schedule(static)
    for (size_t k = 0; k < count; k++) {
        float *x = (float *)a->x + k * size;
        const double squares = move_on(a, (float *)a->m + a->offset[k], x,
                                       (const float *)a->grad + a->offset[k], (float)clip);
        const float inverse = squares > 0.0 ? (float)(1.0 / sqrt(squares)) : 0.0f;
#pragma omp simd
        for (size_t i = 0; i < size; i++)
            x[i] *= inverse;
    }
}

void lam_cpu_ortho_mix(lam_dev *dev, const lam_ortho_mix *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t n = (size_t)a->n, rows = (size_t)a->count * n;
    const float diagonal = (float)a->a, b = (float)a->b, c = (float)a->c;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *n)) schedule(static)
    for (size_t row = 0; row < rows; row++) {
        const float *A = (const float *)a->A + row * n, *P = (const float *)a->P + row * n;
        float *q = (float *)a->q + row * n;
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            q[i] = b * A[i] + c * P[i];
        q[row % n] += diagonal;
    }
}

void lam_cpu_ortho_even(lam_dev *dev, const lam_ortho_even *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows, cols = (size_t)a->cols, all = (size_t)a->count * rows;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, all *cols)) schedule(static)
    for (size_t row = 0; row < all; row++) {
        float *x = (float *)a->x + a->offset[row / rows] + row % rows * cols;
        double squares = 0.0;
#pragma omp simd reduction(+ : squares)
        for (size_t i = 0; i < cols; i++)
            squares += (double)x[i] * (double)x[i];
        const float factor = (float)fmin(a->length / sqrt(squares), LAM_EVEN_MOST);
#pragma omp simd
        for (size_t i = 0; i < cols; i++)
            x[i] *= factor;
    }
}
