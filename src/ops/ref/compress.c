/* ref/compress.c -- the specification of pooling and of the reconstruction loss of a compressed memory. */
#include "ops/ref/ref.h"

#include <assert.h>
#include <math.h>

void lam_ref_pool(lam_dev *dev, const lam_pool *a)
{
    (void)dev;
    assert(a->group >= 1 && a->ld >= a->width);
    const size_t ld = (size_t)a->ld, group = (size_t)a->group;
    for (size_t r = 0; r < (size_t)a->rows; r++)
        for (size_t c = 0; c < ld; c++) {
            const double *in = (const double *)a->in + r * group * ld + c;
            double sum = 0.0, top = -INFINITY;
            for (size_t i = 0; i < group; i++) {
                sum += in[i * ld];
                top = in[i * ld] > top ? in[i * ld] : top;
            }
            const double x = a->kind == LAM_MEAN ? sum / a->group : top;
            ((double *)a->out)[r * ld + c] = c < (size_t)a->width ? x : 0.0;
        }
}

void lam_ref_distance(lam_dev *dev, const lam_distance *a)
{
    (void)dev;
    for (size_t r = 0; r < (size_t)a->rows; r++) {
        const double *x = (const double *)a->a + r * (size_t)a->ld;
        const double *y = (const double *)a->b + r * (size_t)a->ld;
        double *d = (double *)a->d + r * (size_t)a->ld, sum = 0.0;
        for (int c = 0; c < a->ld; c++) {
            const double apart = c < a->width ? x[c] - y[c] : 0.0;
            sum += apart * apart;
            d[c] = 2.0 * a->weight * a->scale * apart;
        }
        ((double *)a->sum)[r] = a->weight * sum;
    }
}
