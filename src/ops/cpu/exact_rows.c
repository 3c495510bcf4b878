/* exact_rows.c -- everything else in exact arithmetic on the CPU (specified in ref/exact_rows.c). */
#include "ops/cpu/exact.h"

#include <string.h>

static void clear_padding(float *row, size_t width, size_t ld)
{
    memset(row + width, 0, (ld - width) * sizeof *row);
}

/* ---- residual + LayerNorm ---- */

static void residual(float *s, const float *x, const float *add, const float *bias, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        const float more = bias ? add[c] + bias[c] : add[c];
        s[c] = x[c] + more;
    }
}

static lam_exact_moments moments(const lam_norm *a, const float *s)
{
    const size_t n = (size_t)a->width;
    int32_t size = 0;
    int64_t sum = 0, squares = 0;
    for (size_t c = 0; c < n; c++) {
        const int32_t now = lam_exact_size(s[c]);
        size = now > size ? now : size;
    }
    const lam_exact_grid grid = lam_exact_grid_of(size, LAM_EXACT_NORM);
    for (size_t c = 0; c < n && grid.up > 0.0f; c++) {
        const int32_t q = lam_exact_round(s[c] * grid.up);
        sum += q;
        squares += (int64_t)q * q;
    }
    return lam_exact_norm(sum, squares, a->width, grid.scale, a->eps);
}

static void normalise(float *y, const float *s, lam_exact_moments m, const float *gain,
                      const float *shift, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        const float scaled = ((s[c] - m.mean) * m.rstd) * gain[c];
        y[c] = scaled + shift[c];
    }
}

static void norm_row(const lam_norm *a, size_t row)
{
    const size_t rows = (size_t)a->rows, ld = (size_t)a->ld, width = (size_t)a->width;
    const float *s = lam_cpu_row(a->x, ld, row / rows, row % rows);
    float *y = lam_cpu_row(a->y, ld, row / rows, row % rows);
    if (a->add) {
        float *sum = a->gain ? (float *)a->sum + row * ld : y;
        residual(sum, s, (const float *)a->add + row * ld, a->bias, width);
        clear_padding(sum, width, ld);
        s = sum;
    }
    if (a->gain) {
        const lam_exact_moments m = moments(a, s);
        ((float *)a->mean)[row] = m.mean;
        ((float *)a->rstd)[row] = m.rstd;
        normalise(y, s, m, a->gain, a->shift, width);
    } else if (y != s) {
        memmove(y, s, width * sizeof *y);
    }
    clear_padding(y, width, ld);
}

void lam_cpu_exact_norm_fwd(lam_dev *dev, const lam_norm *a)
{
    const size_t all = (size_t)a->blocks * (size_t)a->rows;
    assert(a->drop.p == 0.0);
#pragma omp parallel num_threads(lam_cpu_team(lam_cpu(dev), all *(size_t)a->ld))
    {
        const uint64_t before = lam_cpu_exact_begin();
#pragma omp for schedule(static)
        for (size_t row = 0; row < all; row++)
            norm_row(a, row);
        lam_cpu_exact_end(before);
    }
}

/* ---- copies ---- */

void lam_cpu_exact_dropout(lam_dev *dev, const lam_dropout *a)
{
    const size_t rows = (size_t)a->rows, all = rows * (size_t)a->blocks;
    const size_t width = (size_t)a->width, ld = (size_t)a->ld;
    assert(a->drop.p == 0.0);
#pragma omp parallel for num_threads(lam_cpu_team(lam_cpu(dev), all *ld)) schedule(static)
    for (size_t row = 0; row < all; row++) {
        float *out = lam_cpu_row(a->out, ld, row / rows, row % rows);
        memmove(out, lam_cpu_row(a->in, ld, row / rows, row % rows), width * sizeof *out);
        clear_padding(out, width, ld);
    }
}

void lam_cpu_exact_copy(lam_dev *dev, const lam_copy *a)
{
    if (lam_class_size(dev, a->type) == sizeof(float)) {
        lam_cpu_copy(dev, a);
        return;
    }
    const size_t size = lam_class_size(dev, a->type), bytes = a->count * size;
    for (size_t b = 0; b < (size_t)a->blocks; b++) {
        char *out = (char *)a->out.p + b * a->out.step * size;
        if (a->in.p)
            memmove(out, (const char *)a->in.p + b * a->in.step * size, bytes);
        else
            memset(out, 0, bytes);
    }
}

void lam_cpu_exact_gather(lam_dev *dev, const lam_pick *a)
{
    lam_cpu_gather(dev, a);
}

/* ---- memory interpolation ---- */

static void blend(float *out, const float *old, const float *now, float alpha, float rest, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        const float x = alpha * old[c], y = rest * now[c];
        out[c] = x + y;
    }
}

static void interp_slot(const lam_interp *a, size_t b, size_t r)
{
    const size_t H = (size_t)a->H, K = (size_t)a->K, HK = H * K;
    const float *lse_old = lam_cpu_row(a->lse_old, H, b, r);
    const float *lse_new = lam_cpu_row(a->lse_new, H, b, r);
    for (size_t h = 0; h < H; h++) {
        const lam_exact_blend mix = lam_exact_blend_of(lse_old[h], lse_new[h], a->eps);
        blend(lam_cpu_row(a->c_out, HK, b, r) + h * K, lam_cpu_row(a->c_old, HK, b, r) + h * K,
              lam_cpu_row(a->c_new, HK, b, r) + h * K, mix.alpha, mix.rest, K);
        lam_cpu_row(a->alpha, H, b, r)[h] = mix.alpha;
        lam_cpu_row(a->lse_out, H, b, r)[h] = mix.lse;
    }
}

void lam_cpu_exact_interp_fwd(lam_dev *dev, const lam_interp *a)
{
    const size_t rows = (size_t)a->rows, all = (size_t)a->B * rows;
#pragma omp parallel num_threads(lam_cpu_team(lam_cpu(dev), all *(size_t)a->H *(size_t)a->K))
    {
        const uint64_t before = lam_cpu_exact_begin();
#pragma omp for schedule(static)
        for (size_t i = 0; i < all; i++)
            interp_slot(a, i / rows, i % rows);
        lam_cpu_exact_end(before);
    }
}

/* ---- tokens ---- */

static void embed_row(const lam_embed *a, size_t r)
{
    const long row = (long)((const int32_t *)a->ids)[r] - a->first;
    const size_t width = (size_t)a->width, ld = (size_t)a->ld;
    float *out = (float *)a->out + r * ld;
    if (row < 0 || row >= a->count) {
        memset(out, 0, ld * sizeof *out);
        return;
    }
    const int8_t *in = (const int8_t *)a->table + (size_t)row * ld;
    const float scale = (float)(a->scale * (double)((const float *)a->table_scale)[row]);
    for (size_t c = 0; c < width; c++)
        out[c] = (float)in[c] * scale;
    clear_padding(out, width, ld);
}

void lam_cpu_exact_embed_fwd(lam_dev *dev, const lam_embed *a)
{
    const size_t rows = (size_t)a->rows;
    assert(a->table_class == LAM_BYTE);
#pragma omp parallel num_threads(lam_cpu_team(lam_cpu(dev), rows *(size_t)a->ld))
    {
        const uint64_t before = lam_cpu_exact_begin();
#pragma omp for schedule(static)
        for (size_t r = 0; r < rows; r++)
            embed_row(a, r);
        lam_cpu_exact_end(before);
    }
}

static float loss(const float *logits, size_t cols, int32_t target)
{
    int32_t top = INT32_MIN;
    int64_t n = 0;
    for (size_t c = 0; c < cols; c++) {
        const int32_t rank = lam_exact_rank(logits[c]);
        top = rank > top ? rank : top;
    }
    const float most = lam_exact_unrank(top);
    for (size_t c = 0; c < cols; c++)
        n += lam_exact_round64((double)lam_exact_expf(logits[c] - most) * LAM_EXACT_XENT);
    return lam_exact_nll(most, n, logits[target]);
}

void lam_cpu_exact_xent(lam_dev *dev, const lam_xent *a)
{
    const size_t rows = (size_t)a->rows, cols = (size_t)a->cols;
    const int32_t *target = a->target, *index = a->index;
    assert(a->grad_scale == 0.0);
#pragma omp parallel num_threads(lam_cpu_team(lam_cpu(dev), rows *cols))
    {
        const uint64_t before = lam_cpu_exact_begin();
#pragma omp for schedule(static)
        for (size_t r = 0; r < rows; r++) {
            float *nll = (float *)a->nll + (index ? (size_t)index[r] : r);
            const float now =
                target[r] < 0 ? 0.0f : loss((const float *)a->logits + r * a->ld, cols, target[r]);
            *nll = a->add ? *nll + now : now;
        }
        lam_cpu_exact_end(before);
    }
}
