/* ref/exact_rows.c -- the specification of everything else in exact arithmetic: residual + LayerNorm, copies,
 * interpolation, embedding rows, cross-entropy. */
#include "ops/ref/exact.h"

#include <assert.h>
#include <string.h>

static void clear_padding(float *row, int width, int ld)
{
    for (int c = width; c < ld; c++)
        row[c] = 0.0f;
}

static void residual(const lam_norm *a, float *s, const float *x, const float *add)
{
    const float *bias = a->bias;
    for (int c = 0; c < a->width; c++) {
        const float more = bias ? add[c] + bias[c] : add[c];
        s[c] = x[c] + more;
    }
    clear_padding(s, a->width, a->ld);
}

static lam_exact_moments moments(const lam_norm *a, const float *s)
{
    const lam_exact_grid grid = lam_ref_grid(s, (size_t)a->width, LAM_EXACT_NORM);
    int64_t sum = 0, squares = 0;
    for (int c = 0; c < a->width; c++) {
        const int64_t q = lam_ref_level(grid, s[c]);
        sum += q;
        squares += q * q;
    }
    return lam_exact_norm(sum, squares, a->width, grid.scale, a->eps);
}

static void norm_row(const lam_norm *a, size_t b, size_t r)
{
    const size_t ld = (size_t)a->ld, row = b * (size_t)a->rows + r;
    const float *s = lam_ref_floats(a->x, ld, b, r), *gain = a->gain, *shift = a->shift;
    float *y = lam_ref_floats(a->y, ld, b, r);
    if (a->add) {
        float *sum = gain ? (float *)a->sum + row * ld : y;
        residual(a, sum, s, (const float *)a->add + row * ld);
        s = sum;
    }
    if (gain) {
        const lam_exact_moments m = moments(a, s);
        ((float *)a->mean)[row] = m.mean;
        ((float *)a->rstd)[row] = m.rstd;
        for (int c = 0; c < a->width; c++)
            y[c] = ((s[c] - m.mean) * m.rstd) * gain[c] + shift[c];
    } else if (y != s) {
        memmove(y, s, (size_t)a->width * sizeof *y);
    }
    clear_padding(y, a->width, a->ld);
}

void lam_ref_exact_norm_fwd(lam_dev *dev, const lam_norm *a)
{
    (void)dev;
    assert(a->drop.p == 0.0);
    for (size_t b = 0; b < (size_t)a->blocks; b++)
        for (size_t r = 0; r < (size_t)a->rows; r++)
            norm_row(a, b, r);
}

/* Without dropout: a copy. */
void lam_ref_exact_dropout(lam_dev *dev, const lam_dropout *a)
{
    (void)dev;
    assert(a->drop.p == 0.0);
    for (size_t b = 0; b < (size_t)a->blocks; b++)
        for (size_t r = 0; r < (size_t)a->rows; r++) {
            float *out = lam_ref_floats(a->out, (size_t)a->ld, b, r);
            memmove(out, lam_ref_floats(a->in, (size_t)a->ld, b, r),
                    (size_t)a->width * sizeof *out);
            clear_padding(out, a->width, a->ld);
        }
}

void lam_ref_exact_copy(lam_dev *dev, const lam_copy *a)
{
    lam_ref_copy(dev, a);
}

static void interp_head(const lam_interp *a, size_t b, size_t r, size_t h)
{
    const size_t H = (size_t)a->H, K = (size_t)a->K, HK = H * K;
    const float *c_old = lam_ref_floats(a->c_old, HK, b, r) + h * K;
    const float *c_new = lam_ref_floats(a->c_new, HK, b, r) + h * K;
    float *c_out = lam_ref_floats(a->c_out, HK, b, r) + h * K;
    const lam_exact_blend mix = lam_exact_blend_of(lam_ref_floats(a->lse_old, H, b, r)[h],
                                                   lam_ref_floats(a->lse_new, H, b, r)[h], a->eps);
    for (size_t c = 0; c < K; c++)
        c_out[c] = mix.alpha * c_old[c] + mix.rest * c_new[c];
    lam_ref_floats(a->alpha, H, b, r)[h] = mix.alpha;
    lam_ref_floats(a->lse_out, H, b, r)[h] = mix.lse;
}

void lam_ref_exact_interp_fwd(lam_dev *dev, const lam_interp *a)
{
    (void)dev;
    for (size_t b = 0; b < (size_t)a->B; b++)
        for (size_t r = 0; r < (size_t)a->rows; r++)
            for (size_t h = 0; h < (size_t)a->H; h++)
                interp_head(a, b, r, h);
}

void lam_ref_exact_embed_fwd(lam_dev *dev, const lam_embed *a)
{
    (void)dev;
    assert(a->table_class == LAM_BYTE);
    for (size_t r = 0; r < (size_t)a->rows; r++) {
        const long row = (long)((const int32_t *)a->ids)[r] - a->first;
        const int known = row >= 0 && row < a->count;
        const int8_t *in = (const int8_t *)a->table + (known ? row : 0) * (long)a->ld;
        const double own = known ? (double)((const float *)a->table_scale)[row] : 0.0;
        const float scale = (float)(a->scale * own);
        float *out = (float *)a->out + r * (size_t)a->ld;
        for (int c = 0; c < a->ld; c++)
            out[c] = known && c < a->width ? (float)in[c] * scale : 0.0f;
    }
}

static float loss(const float *logits, int cols, int32_t target)
{
    int32_t top = INT32_MIN;
    int64_t n = 0;
    for (int c = 0; c < cols; c++)
        top = lam_exact_rank(logits[c]) > top ? lam_exact_rank(logits[c]) : top;
    const float most = lam_exact_unrank(top);
    for (int c = 0; c < cols; c++)
        n += lam_exact_round64((double)lam_exact_expf(logits[c] - most) * LAM_EXACT_XENT);
    return lam_exact_nll(most, n, logits[target]);
}

void lam_ref_exact_xent(lam_dev *dev, const lam_xent *a)
{
    (void)dev;
    const int32_t *target = a->target, *index = a->index;
    assert(a->grad_scale == 0.0);
    for (size_t r = 0; r < (size_t)a->rows; r++) {
        assert(target[r] < a->cols);
        float *nll = (float *)a->nll + (index ? (size_t)index[r] : r);
        const float now =
            target[r] < 0 ? 0.0f : loss((const float *)a->logits + r * a->ld, a->cols, target[r]);
        *nll = a->add ? *nll + now : now;
    }
}

void lam_ref_exact_gather(lam_dev *dev, const lam_pick *a)
{
    (void)dev;
    const int32_t *index = a->index;
    for (size_t r = 0; r < (size_t)a->rows; r++)
        memcpy((float *)a->out + r * a->ld_out, (const float *)a->in + (size_t)index[r] * a->ld_in,
               (size_t)a->width * sizeof(float));
}
