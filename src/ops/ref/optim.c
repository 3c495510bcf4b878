/* ref/optim.c -- the specification of the optimiser's arithmetic: global norm, clipping, and the
 * update rules Adam, SGD with momentum, Adagrad, one scalar at a time; and of a run's totals. */
#include "ops/ref/ref.h"

#include <assert.h>
#include <math.h>

void lam_ref_gnorm(lam_dev *dev, const lam_gnorm *a)
{
    (void)dev;
    double squares = 0.0;
    for (int t = 0; t < a->n_parts; t++)
        for (size_t i = 0; i < a->parts[t].count; i++) {
            const double g = ((const double *)a->grad)[a->parts[t].offset + i];
            squares += g * g;
        }
    *(double *)a->norm = sqrt(squares);
}

/* The step that the rule takes for gradient g of element i; the moments move on. */
static double step_of(const lam_update *a, const lam_part *part, size_t i, double g)
{
    double *m = a->m ? (double *)a->m + i : NULL, *v = a->v ? (double *)a->v + i : NULL;
    switch (a->kind) {
    case LAM_ADAM:
        *m = a->beta1 * *m + (1.0 - a->beta1) * g;
        *v = a->beta2 * *v + (1.0 - a->beta2) * g * g;
        return (*m / part->fix1) / (sqrt(*v / part->fix2) + a->eps);
    case LAM_SGD:
        *m = a->beta1 * *m + g;
        return *m;
    case LAM_ADAGRAD:
        *v += g * g;
        return g / (sqrt(*v) + a->eps);
    }
    return 0.0;
}

void lam_ref_update(lam_dev *dev, const lam_update *a)
{
    (void)dev;
    const double norm = *(const double *)a->norm;
    if (!isfinite(norm))
        return; /* a broken gradient must not reach the weights */
    const double clip = a->clip == 0.0 ? 1.0 : fmin(1.0, a->clip / (norm + 1e-6));

    for (int t = 0; t < a->n_parts; t++) {
        const lam_part *part = &a->parts[t];
        for (size_t i = part->offset; i < part->offset + part->count; i++) {
            double *p = (double *)a->master + i;
            const double g = clip * ((const double *)a->grad)[i];
            *p -= part->lr * part->decay * *p;
            *p -= part->lr * step_of(a, part, i, g);
            if (a->weight)
                ((double *)a->weight)[i] = *p;
        }
    }
}

void lam_ref_tally(lam_dev *dev, const lam_tally *a)
{
    (void)dev;
    double *totals = a->totals;
    double sum = 0.0;
    int finite = 1;
    for (int i = 0; i < a->n; i++)
        sum += ((const double *)a->x)[i];
    for (int i = 0; i < a->n_norms; i++)
        finite &= isfinite(((const double *)a->norms)[i]) != 0;
    if (isfinite(sum)) {
        const double all = totals[0] + totals[1] + sum;
        totals[0] = all;
        totals[1] = all - totals[0]; /* 0 in double; in float what totals[0] lost */
    } else {
        totals[2] += a->n;
    }
    totals[3] += finite ? 0 : 1;
}
