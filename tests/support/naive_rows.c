/* naive_rows.c -- the naive float32 matrix product and row-wise work. */
#include "support/naive.h"

#include <math.h>
#include <string.h>

/* The second half of a product with h. */
static void gemm_back(const lam_gemm *a)
{
    for (int i = 0; i < a->m * a->n; i++) {
        float *c = (float *)a->c + i;
        *c = ((const float *)a->h)[i] > 0.0f ? (float)a->h_scale * *c : 0.0f;
        ((float *)a->dbias)[i % a->n] += *c;
    }
}

void lam_naive_float_gemm(lam_dev *dev, const lam_gemm *a)
{
    (void)dev;
    const size_t down_a = a->ta == LAM_KEEP ? a->lda : 1, along_a = a->ta == LAM_KEEP ? 1 : a->lda;
    const size_t down_b = a->tb == LAM_KEEP ? a->ldb : 1, along_b = a->tb == LAM_KEEP ? 1 : a->ldb;
    const int sums = a->step_c ? 1 : a->batch; /* products that go into one C */
    const int outs = a->batch == 0 ? 0 : a->batch / sums;
    for (int o = 0; o < outs; o++)
        for (int i = 0; i < a->m * a->n; i++) {
            const size_t r = (size_t)(i / a->n), c = (size_t)(i % a->n);
            float *out = (float *)a->c + (size_t)o * a->step_c + r * a->ldc + c;
            float sum = a->beta == 1.0 ? *out : 0.0f;
            for (int p = o * sums; p < (o + 1) * sums; p++)
                for (size_t k = 0; k < (size_t)a->k; k++)
                    sum += ((const float *)a->a)[(size_t)p * a->step_a + r * down_a + k * along_a] *
                           ((const float *)a->b)[(size_t)p * a->step_b + k * down_b + c * along_b];
            if (a->bias)
                sum += ((const float *)a->bias)[c];
            if (a->relu)
                sum = sum > 0.0f ? sum : 0.0f;
            const size_t row = (size_t)o * (size_t)a->m + r;
            *out = sum * lam_naive_keep(&a->drop, row * lam_naive_up8(a->n) + c);
        }
    if (a->h)
        gemm_back(a);
}

typedef struct place {
    size_t row;   /* through all blocks */
    size_t flat;  /* offset in contiguous buffers */
    size_t index; /* of its first element for dropout */
} place;

static place place_of(const lam_norm *a, int b, int r)
{
    const size_t row = (size_t)b * (size_t)a->rows + (size_t)r;
    return (place){row, row * (size_t)a->ld, row * lam_naive_up8(a->width)};
}

static float *at(lam_view v, int ld, int b, int r)
{
    return v.p ? (float *)v.p + (size_t)b * v.step + (size_t)r * (size_t)ld : NULL;
}

static void norm_fwd_row(const lam_norm *a, place at_, const float *x, float *y)
{
    const size_t n = (size_t)a->width, ld = (size_t)a->ld;
    const float *gain = a->gain, *shift = a->shift, *bias = a->bias;
    float *s = a->add && gain ? (float *)a->sum + at_.flat : y;
    memset(y, 0, ld * sizeof *y);
    memset(s, 0, ld * sizeof *s);
    for (size_t c = 0; c < n; c++) {
        s[c] = x[c];
        if (a->add)
            s[c] += lam_naive_keep(&a->drop, at_.index + c) *
                    (((const float *)a->add)[at_.flat + c] + (bias ? bias[c] : 0.0f));
    }
    float mean = 0.0f, var = 0.0f;
    for (size_t c = 0; c < n; c++)
        mean += s[c];
    mean /= (float)n;
    for (size_t c = 0; c < n; c++)
        var += (s[c] - mean) * (s[c] - mean);
    const float rstd = 1.0f / sqrtf(var / (float)n + (float)a->eps);
    if (!gain) {
        if (s != y)
            memcpy(y, s, n * sizeof *y);
        return;
    }
    ((float *)a->mean)[at_.row] = mean;
    ((float *)a->rstd)[at_.row] = rstd;
    for (size_t c = 0; c < n; c++)
        y[c] = (s[c] - mean) * rstd * gain[c] + shift[c];
}

void lam_naive_norm_fwd(lam_dev *dev, const lam_norm *a)
{
    (void)dev;
    for (int b = 0; b < a->blocks; b++)
        for (int r = 0; r < a->rows; r++)
            norm_fwd_row(a, place_of(a, b, r), at(a->x, a->ld, b, r), at(a->y, a->ld, b, r));
}

static void norm_bwd_row(const lam_norm *a, int b, int r)
{
    const place p = place_of(a, b, r);
    const size_t n = (size_t)a->width, ld = (size_t)a->ld;
    const float *s = a->add && a->gain ? (const float *)a->sum + p.flat : at(a->x, a->ld, b, r);
    const float *dy = at(a->dy, a->ld, b, r), *dsum = at(a->dsum, a->ld, b, r), *gain = a->gain;
    float *dx = at(a->dx, a->ld, b, r), *dadd = a->add && a->dadd ? a->dadd : NULL;
    const float mean = gain ? ((const float *)a->mean)[p.row] : 0.0f;
    const float rstd = gain ? ((const float *)a->rstd)[p.row] : 1.0f;
    float g = 0.0f, gx = 0.0f;
    for (size_t c = 0; gain && c < n; c++) {
        const float xhat = (s[c] - mean) * rstd;
        g += dy[c] * gain[c];
        gx += dy[c] * gain[c] * xhat;
        ((float *)a->dgain)[c] += dy[c] * xhat;
        ((float *)a->dshift)[c] += dy[c];
    }
    for (size_t c = 0; c < ld; c++) {
        float ds = 0.0f;
        if (c < n) {
            ds = dy[c];
            if (gain)
                ds = rstd *
                     (dy[c] * gain[c] - g / (float)n - (s[c] - mean) * rstd * (gx / (float)n));
            ds += dsum ? dsum[c] : 0.0f;
        }
        const float masked = c < n ? ds * lam_naive_keep(&a->drop, p.index + c) : 0.0f;
        if (dx)
            dx[c] = ds;
        if (dadd)
            dadd[p.flat + c] = masked;
        if (a->add && a->dbias && c < n)
            ((float *)a->dbias)[c] += masked;
    }
}

void lam_naive_norm_bwd(lam_dev *dev, const lam_norm *a)
{
    (void)dev;
    for (int b = 0; b < a->blocks; b++)
        for (int r = 0; r < a->rows; r++)
            norm_bwd_row(a, b, r);
}

void lam_naive_dropout(lam_dev *dev, const lam_dropout *a)
{
    (void)dev;
    for (int b = 0; b < a->blocks; b++)
        for (int r = 0; r < a->rows; r++)
            for (int c = 0; c < a->ld; c++) {
                const size_t row = (size_t)b * (size_t)a->rows + (size_t)r;
                const size_t index = row * lam_naive_up8(a->width) + (size_t)c;
                const float keep = c < a->width ? lam_naive_keep(&a->drop, index) : 0.0f;
                const float x = c < a->width ? at(a->in, a->ld, b, r)[c] : 0.0f;
                at(a->out, a->ld, b, r)[c] = keep * x;
            }
}

void lam_naive_copy(lam_dev *dev, const lam_copy *a)
{
    (void)dev;
    const uint32_t *in = a->in.p; /* every class has four bytes here */
    for (size_t b = 0; b < (size_t)a->blocks; b++)
        for (size_t i = 0; i < a->count; i++)
            ((uint32_t *)a->out.p)[b * a->out.step + i] = in ? in[b * a->in.step + i] : 0;
}

void lam_naive_colsum(lam_dev *dev, const lam_colsum *a)
{
    (void)dev;
    for (int c = 0; c < a->width; c++)
        for (int r = 0; r < a->rows; r++)
            ((float *)a->out)[c] += ((const float *)a->in)[(size_t)r * (size_t)a->ld + (size_t)c];
}
