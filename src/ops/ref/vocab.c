/* ref/vocab.c -- the specification of what touches token ids: embedding rows, softmax
 * cross-entropy (Eq. 4, whose printed product of logs is meant as a sum), row lists. */
#include "ops/ref/ref.h"

#include <assert.h>
#include <math.h>

/* The table row of an id; -1 when it belongs to another table. */
static long table_row(const lam_embed *a, size_t r)
{
    const int32_t id = ((const int32_t *)a->ids)[r];
    return id < a->first || id - a->first >= a->count ? -1 : id - a->first;
}

void lam_ref_embed_fwd(lam_dev *dev, const lam_embed *a)
{
    (void)dev;
    for (size_t r = 0; r < (size_t)a->rows; r++) {
        const long row = table_row(a, r);
        double *out = (double *)a->out + r * (size_t)a->ld;
        for (int c = 0; c < a->ld; c++) {
            out[c] = 0.0;
            if (row < 0 || c >= a->width)
                continue;
            out[c] = a->scale * lam_ref_element(a->table, a->table_class,
                                                (size_t)row * (size_t)a->ld + (size_t)c);
            if (a->table_class == LAM_BYTE)
                out[c] *= ((const double *)a->table_scale)[row];
        }
    }
}

/* fwd was out[r] = scale * table[ids[r] - first]; an id that occurs twice receives both. */
void lam_ref_embed_bwd(lam_dev *dev, const lam_embed *a)
{
    (void)dev;
    for (size_t r = 0; r < (size_t)a->rows; r++) {
        const long row = table_row(a, r);
        const double *dout = (const double *)a->dout + r * (size_t)a->ld;
        for (int c = 0; row >= 0 && c < a->width; c++)
            ((double *)a->dtable)[(size_t)row * (size_t)a->ld + (size_t)c] += a->scale * dout[c];
    }
}

/* log sum exp with the largest logit taken out, so that nothing overflows. */
static double log_sum_exp(const double *logits, int cols)
{
    double top = -INFINITY, sum = 0.0;
    for (int c = 0; c < cols; c++)
        top = fmax(top, logits[c]);
    for (int c = 0; c < cols; c++)
        sum += exp(logits[c] - top);
    return top + log(sum);
}

/* nll = lse - logit[target], whose gradient with respect to the logits is softmax - onehot. */
void lam_ref_xent(lam_dev *dev, const lam_xent *a)
{
    (void)dev;
    const int32_t *target = a->target, *index = a->index;
    for (size_t r = 0; r < (size_t)a->rows; r++) {
        assert(target[r] < a->cols);
        const int scored = target[r] >= 0;
        double *logits = (double *)a->logits + r * a->ld;
        double *nll = (double *)a->nll + (index ? (size_t)index[r] : r);
        const double lse = log_sum_exp(logits, a->cols);
        const double loss = scored ? lse - logits[target[r]] : 0.0;
        *nll = a->add ? *nll + loss : loss;
        for (int c = 0; a->grad_scale != 0.0 && c < a->cols; c++)
            logits[c] = scored ? a->grad_scale * (exp(logits[c] - lse) - (c == target[r])) : 0.0;
    }
}

void lam_ref_gather(lam_dev *dev, const lam_pick *a)
{
    (void)dev;
    const int32_t *index = a->index;
    for (size_t r = 0; r < (size_t)a->rows; r++)
        for (size_t c = 0; c < (size_t)a->width; c++)
            ((double *)a->out)[r * a->ld_out + c] =
                ((const double *)a->in)[(size_t)index[r] * a->ld_in + c];
}

void lam_ref_scatter(lam_dev *dev, const lam_pick *a)
{
    (void)dev;
    const int32_t *index = a->index;
    for (size_t r = 0; r < (size_t)a->rows; r++)
        for (size_t c = 0; c < (size_t)a->width; c++)
            ((double *)a->out)[(size_t)index[r] * a->ld_out + c] +=
                ((const double *)a->in)[r * a->ld_in + c];
}
