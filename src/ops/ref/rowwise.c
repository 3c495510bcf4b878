/* ref/rowwise.c -- the specification of residual + LayerNorm (the f of Eq. 3), ReLU's gradient,
 * dropout, copies and column sums.
 *
 * Columns width..ld-1 of a row are padding: never read, written as zero in every output row. */
#include "ops/ref/ref.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void clear_padding(double *row, int width, int ld)
{
    for (int c = width; row && c < ld; c++)
        row[c] = 0.0;
}

/* s = x + drop(add + bias), written to s (which is `sum`, or y when nothing is normalised). */
static void residual(const lam_norm *a, double *s, const double *x, const double *add, size_t row)
{
    const double *bias = a->bias;
    for (int c = 0; c < a->width; c++) {
        const double mask = lam_ref_mask(&a->drop, (size_t)a->width, row, (size_t)c);
        s[c] = x[c] + mask * (add[c] + (bias ? bias[c] : 0.0));
    }
    clear_padding(s, a->width, a->ld);
}

/* mean and 1 / sqrt(variance + eps), the variance being the biased one (divided by width). */
static void moments(double *mean, double *rstd, const double *s, const lam_norm *a)
{
    double sum = 0.0, squares = 0.0;
    for (int c = 0; c < a->width; c++)
        sum += s[c];
    *mean = sum / a->width;
    for (int c = 0; c < a->width; c++)
        squares += (s[c] - *mean) * (s[c] - *mean);
    *rstd = 1.0 / sqrt(squares / a->width + a->eps);
}

void lam_ref_norm_fwd(lam_dev *dev, const lam_norm *a)
{
    (void)dev;
    assert(a->width >= 1 && a->ld >= a->width);
    const size_t ld = (size_t)a->ld, blocks = (size_t)a->blocks, rows = (size_t)a->rows;
    const double *gain = a->gain, *shift = a->shift;

    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < rows; r++) {
            const size_t row = b * rows + r;
            const double *x = lam_ref_row(a->x, ld, b, r), *s = x;
            double *y = lam_ref_row(a->y, ld, b, r);
            if (a->add) {
                double *sum = gain ? (double *)a->sum + row * ld : y;
                residual(a, sum, x, (const double *)a->add + row * ld, row);
                s = sum;
            }
            double mean = 0.0, rstd = 1.0;
            if (gain) {
                moments(&mean, &rstd, s, a);
                ((double *)a->mean)[row] = mean;
                ((double *)a->rstd)[row] = rstd;
            }
            for (int c = 0; c < a->width; c++)
                y[c] = gain ? (s[c] - mean) * rstd * gain[c] + shift[c] : s[c];
            clear_padding(y, a->width, a->ld);
        }
}

/* What LayerNorm' needs of a row before it can go column by column. */
typedef struct row_means {
    double mean, rstd;
    double g, gx; /* means of dy * gain and of dy * gain * xhat */
} row_means;

/* fwd was xhat = (s - mean) rstd;  y = xhat gain + shift.  Also adds this row to dgain, dshift. */
static row_means norm_row(const lam_norm *a, const double *s, const double *dy, size_t row)
{
    const double *gain = a->gain;
    double *dgain = a->dgain, *dshift = a->dshift;
    row_means m = {((const double *)a->mean)[row], ((const double *)a->rstd)[row], 0.0, 0.0};
    for (int c = 0; c < a->width; c++) {
        const double xhat = (s[c] - m.mean) * m.rstd;
        dgain[c] += dy[c] * xhat;
        dshift[c] += dy[c];
        m.g += dy[c] * gain[c] / a->width;
        m.gx += dy[c] * gain[c] * xhat / a->width;
    }
    return m;
}

/* fwd was s = x + drop(add + bias); so dx = ds, and dadd = dbias = ds under the same mask. */
static void spread(const lam_norm *a, double ds, double *dx, double *dadd, size_t row, int c)
{
    const double masked = ds * lam_ref_mask(&a->drop, (size_t)a->width, row, (size_t)c);
    if (dx)
        dx[c] = ds;
    if (dadd)
        dadd[c] = masked;
    if (a->add && a->dbias)
        ((double *)a->dbias)[c] += masked;
}

/* ds = rstd (g - mean(g) - xhat mean(g xhat)) + dsum with g = dy gain; without a norm, dy + dsum.
 * Each column is read before it is written, because dx may be dy or dsum. */
void lam_ref_norm_bwd(lam_dev *dev, const lam_norm *a)
{
    (void)dev;
    const size_t ld = (size_t)a->ld, blocks = (size_t)a->blocks, rows = (size_t)a->rows;
    const double *gain = a->gain;

    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < rows; r++) {
            const size_t row = b * rows + r;
            const double *s =
                a->add && gain ? (const double *)a->sum + row * ld : lam_ref_row(a->x, ld, b, r);
            const double *dy = lam_ref_row(a->dy, ld, b, r), *dsum = lam_ref_row(a->dsum, ld, b, r);
            double *dx = lam_ref_row(a->dx, ld, b, r);
            double *dadd = a->add && a->dadd ? (double *)a->dadd + row * ld : NULL;
            const row_means m = gain ? norm_row(a, s, dy, row) : (row_means){0};
            for (int c = 0; c < a->width; c++) {
                double ds = dy[c];
                if (gain)
                    ds = m.rstd * (dy[c] * gain[c] - m.g - (s[c] - m.mean) * m.rstd * m.gx);
                spread(a, ds + (dsum ? dsum[c] : 0.0), dx, dadd, row, c);
            }
            clear_padding(dx, a->width, a->ld);
            clear_padding(dadd, a->width, a->ld);
        }
}

/* fwd was h = drop(relu(z + bias)): a positive h is an element that passed both. */
void lam_ref_relu_bwd(lam_dev *dev, const lam_relu_bwd *a)
{
    (void)dev;
    double *dbias = a->dbias;
    for (size_t r = 0; r < (size_t)a->rows; r++) {
        const double *h = (const double *)a->h + r * (size_t)a->width;
        double *dh = (double *)a->dh + r * (size_t)a->width;
        for (int c = 0; c < a->width; c++) {
            dh[c] = h[c] > 0.0 ? a->scale * dh[c] : 0.0;
            dbias[c] += dh[c];
        }
    }
}

void lam_ref_dropout(lam_dev *dev, const lam_dropout *a)
{
    (void)dev;
    const size_t ld = (size_t)a->ld, blocks = (size_t)a->blocks, rows = (size_t)a->rows;
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < rows; r++) {
            const double *in = lam_ref_row(a->in, ld, b, r);
            double *out = lam_ref_row(a->out, ld, b, r);
            for (int c = 0; c < a->width; c++)
                out[c] = in[c] * lam_ref_mask(&a->drop, (size_t)a->width, b * rows + r, (size_t)c);
            clear_padding(out, a->width, a->ld);
        }
}

void lam_ref_copy(lam_dev *dev, const lam_copy *a)
{
    const size_t bytes = a->count * lam_class_size(dev, a->type);
    for (size_t b = 0; b < (size_t)a->blocks; b++) {
        void *out = lam_at(dev, a->type, a->out.p, b * a->out.step);
        if (a->in.p)
            memmove(out, lam_at(dev, a->type, a->in.p, b * a->in.step), bytes);
        else
            memset(out, 0, bytes);
    }
}

void lam_ref_colsum(lam_dev *dev, const lam_colsum *a)
{
    (void)dev;
    double *out = a->out;
    for (size_t r = 0; r < (size_t)a->rows; r++)
        for (int c = 0; c < a->width; c++)
            out[c] += ((const double *)a->in)[r * (size_t)a->ld + (size_t)c];
}
