/* cpu/rowwise_norm.c -- residual + LayerNorm, the f of Eq. 3, forward and backward.
 *
 * ref/rowwise.c says what is computed.  Here a row is walked in strips of sixteen columns while it is
 * in the first cache, and the sums over rows (dgain, dshift, dbias) are taken as chunks.h says. */
#include "ops/cpu/chunks.h"
#include "ops/cpu/philox.h"

/* n of sixteen columns of s = x + drop(add + bias); returns them (zero beyond n). */
LAM_INLINE lam_f16v residual_strip(float *s, const float *x, const float *add, const float *bias,
                                   float scale, uint64_t bits, size_t n)
{
    lam_f16v y = lam_load_n(add, n);
    if (bias)
        y = lam_add(y, lam_load_n(bias, n));
    y = lam_fma(lam_keep16(y, bits), lam_splat(scale), lam_load_n(x, n));
    lam_store_n(s, y, n);
    return y;
}

/* A whole row of it; returns the sum of s over the row. */
static float residual(const lam_norm *a, const lam_mask *mask, float *s, const float *x,
                      const float *add, size_t row)
{
    const size_t width = (size_t)a->width;
    const uint64_t block = lam_mask_block(row, width);
    const float *bias = a->bias, scale = mask->scale;
    lam_f16v sum = lam_splat(0.0f);
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + LAM_VEC <= width; i += LAM_VEC) {
        bits = lam_mask_next(mask, bits, block, i);
        sum = lam_add(sum, residual_strip(s + i, x + i, add + i, bias ? bias + i : NULL, scale,
                                          bits, LAM_VEC));
    }
    if (i < width) {
        bits = lam_mask_next(mask, bits, block, i);
        sum = lam_add(sum, residual_strip(s + i, x + i, add + i, bias ? bias + i : NULL, scale,
                                          bits, width - i));
    }
    lam_clear_padding(s, width, (size_t)a->ld);
    return lam_sum16(sum);
}

static float sum_of(const float *s, size_t width)
{
    lam_f16v sum = lam_splat(0.0f);
    size_t i = 0;
    for (; i + LAM_VEC <= width; i += LAM_VEC)
        sum = lam_add(sum, lam_load(s + i));
    return lam_sum16(lam_add(sum, lam_load_n(s + i, width - i)));
}

/* sum (s - mean)^2: a second pass, because s^2 - mean^2 would cancel. */
static float squares_of(const float *s, size_t width, float mean)
{
    lam_f16v sum = lam_splat(0.0f);
    size_t i = 0;
    for (; i + LAM_VEC <= width; i += LAM_VEC) {
        const lam_f16v d = lam_sub(lam_load(s + i), lam_splat(mean));
        sum = lam_fma(d, d, sum);
    }
    float rest = 0.0f;
    for (; i < width; i++)
        rest += (s[i] - mean) * (s[i] - mean);
    return lam_sum16(sum) + rest;
}

static void normalise(const lam_norm *a, float *y, const float *s, float sum, size_t row)
{
    const size_t width = (size_t)a->width;
    const float *gain = a->gain, *shift = a->shift;
    const float mean = sum / (float)width;
    const float rstd = 1.0f / sqrtf(squares_of(s, width, mean) / (float)width + (float)a->eps);
    ((float *)a->mean)[row] = mean;
    ((float *)a->rstd)[row] = rstd;
#pragma omp simd
    for (size_t i = 0; i < width; i++)
        y[i] = (s[i] - mean) * rstd * gain[i] + shift[i];
    lam_clear_padding(y, width, (size_t)a->ld);
}

void lam_cpu_norm_fwd(lam_dev *dev, const lam_norm *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    assert(a->width >= 1 && a->ld >= a->width);
    const size_t ld = (size_t)a->ld, rows = (size_t)a->rows, all = rows * (size_t)a->blocks;
    const size_t width = (size_t)a->width;
    const lam_mask mask = lam_mask_make(&a->drop);

#pragma omp parallel for num_threads(lam_cpu_team(cpu, all *ld)) schedule(static)
    for (size_t row = 0; row < all; row++) {
        const float *x = lam_cpu_row(a->x, ld, row / rows, row % rows), *s = x;
        float *y = lam_cpu_row(a->y, ld, row / rows, row % rows), sum = 0.0f;
        if (a->add) {
            float *to = a->gain ? (float *)a->sum + row * ld : y;
            sum = residual(a, &mask, to, x, (const float *)a->add + row * ld, row);
            s = to;
        } else if (a->gain) {
            sum = sum_of(x, width);
        } else {
            memmove(y, x, width * sizeof *y);
            lam_clear_padding(y, width, ld);
        }
        if (a->gain)
            normalise(a, y, s, sum, row);
    }
}

/* One row: pointers NULL where there is nothing to read or write. */
typedef struct norm_row {
    const float *s, *dy, *dsum;
    float *dx, *dadd;
    float *dgain, *dshift, *dbias; /* partial sums of the chunk */
    float mean, rstd;
    float g, gx; /* means of dy * gain and of dy * gain * xhat */
    uint64_t block;
} norm_row;

LAM_INLINE lam_f16v xhat_of(lam_f16v s, const norm_row *r)
{
    return lam_mul(lam_sub(s, lam_splat(r->mean)), lam_splat(r->rstd));
}

/* fwd was xhat = (s - mean) rstd;  y = xhat gain + shift. */
static void norm_means(norm_row *r, const float *gain, size_t width)
{
    const float *s = r->s, *dy = r->dy, mean = r->mean, rstd = r->rstd;
    float *dgain = r->dgain, *dshift = r->dshift;
    lam_f16v g = lam_splat(0.0f), gx = g;
    float rest_g = 0.0f, rest_gx = 0.0f;
    size_t i = 0;
    for (; i + LAM_VEC <= width; i += LAM_VEC) {
        const lam_f16v d = lam_load(dy + i), dg = lam_mul(d, lam_load(gain + i));
        const lam_f16v xhat = xhat_of(lam_load(s + i), r);
        g = lam_add(g, dg);
        gx = lam_fma(dg, xhat, gx);
        lam_store(dgain + i, lam_fma(d, xhat, lam_load(dgain + i)));
        lam_store(dshift + i, lam_add(lam_load(dshift + i), d));
    }
    for (; i < width; i++) {
        const float xhat = (s[i] - mean) * rstd;
        rest_g += dy[i] * gain[i];
        rest_gx += dy[i] * gain[i] * xhat;
        dgain[i] += dy[i] * xhat;
        dshift[i] += dy[i];
    }
    r->g = (lam_sum16(g) + rest_g) / (float)width;
    r->gx = (lam_sum16(gx) + rest_gx) / (float)width;
}

/* n of sixteen columns of
 *   ds = rstd (dy gain - mean(dy gain) - xhat mean(dy gain xhat)) + dsum, or dy + dsum;
 * fwd was s = x + drop(add + bias): so dx = ds, and dadd = dbias = ds under the same mask.
 * All is read before it is written, because dx may be dy or dsum. */
LAM_INLINE void spread_strip(const norm_row *r, const float *gain, float scale, uint64_t bits,
                             size_t i, size_t n)
{
    lam_f16v ds = lam_load_n(r->dy + i, n);
    if (gain) {
        const lam_f16v xhat = xhat_of(lam_load_n(r->s + i, n), r);
        const lam_f16v back = lam_mul(lam_neg(xhat), lam_splat(r->gx));
        ds = lam_sub(lam_fma(ds, lam_load_n(gain + i, n), back), lam_splat(r->g));
        ds = lam_mul(ds, lam_splat(r->rstd));
    }
    if (r->dsum)
        ds = lam_add(ds, lam_load_n(r->dsum + i, n));
    if (r->dx)
        lam_store_n(r->dx + i, ds, n);
    const lam_f16v masked = lam_keep16(lam_mul(ds, lam_splat(scale)), bits);
    if (r->dadd)
        lam_store_n(r->dadd + i, masked, n);
    if (r->dbias)
        lam_store_n(r->dbias + i, lam_add(lam_load_n(r->dbias + i, n), masked), n);
}

static void spread(const norm_row *r, const lam_norm *a, const lam_mask *mask)
{
    const size_t width = (size_t)a->width;
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + LAM_VEC <= width; i += LAM_VEC) {
        bits = lam_mask_next(mask, bits, r->block, i);
        spread_strip(r, a->gain, mask->scale, bits, i, LAM_VEC);
    }
    if (i < width) {
        bits = lam_mask_next(mask, bits, r->block, i);
        spread_strip(r, a->gain, mask->scale, bits, i, width - i);
    }
    lam_clear_padding(r->dx, width, (size_t)a->ld);
    lam_clear_padding(r->dadd, width, (size_t)a->ld);
}

/* `sums` are the chunk's three lines. */
static norm_row norm_row_at(const lam_norm *a, float *sums, size_t row)
{
    const size_t ld = (size_t)a->ld, width = (size_t)a->width, line = lam_line_of(width);
    const size_t b = row / (size_t)a->rows, t = row % (size_t)a->rows;
    norm_row r = {.dy = lam_cpu_row(a->dy, ld, b, t),
                  .dsum = lam_cpu_row(a->dsum, ld, b, t),
                  .dx = lam_cpu_row(a->dx, ld, b, t),
                  .block = lam_mask_block(row, width)};
    if (a->add) {
        r.dadd = a->dadd ? (float *)a->dadd + row * ld : NULL;
        r.dbias = a->dbias ? sums + 2 * line : NULL;
    }
    if (a->gain) {
        r.s = a->add ? (const float *)a->sum + row * ld : lam_cpu_row(a->x, ld, b, t);
        r.mean = ((const float *)a->mean)[row];
        r.rstd = ((const float *)a->rstd)[row];
        r.dgain = sums;
        r.dshift = sums + line;
    }
    return r;
}

void lam_cpu_norm_bwd(lam_dev *dev, const lam_norm *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t width = (size_t)a->width, all = (size_t)a->rows * (size_t)a->blocks;
    const lam_mask mask = lam_mask_make(&a->drop);
    const lam_chunks c = lam_chunks_of(all, LAM_MAX_SUMS, width);
    float *partial = lam_partial_sums(cpu, c, LAM_MAX_SUMS, width);

#pragma omp parallel for num_threads(lam_cpu_team(cpu, all *width)) schedule(static)
    for (size_t i = 0; i < c.n; i++) {
        float *sums = partial + i * LAM_MAX_SUMS * lam_line_of(width);
        memset(sums, 0, LAM_MAX_SUMS * lam_line_of(width) * sizeof *sums);
        for (size_t row = i * c.size; row < lam_chunk_end(c, i); row++) {
            norm_row r = norm_row_at(a, sums, row);
            if (a->gain)
                norm_means(&r, a->gain, width);
            spread(&r, a, &mask);
        }
    }
    if (a->gain) {
        lam_fold(a->dgain, partial, c, 0, LAM_MAX_SUMS, width);
        lam_fold(a->dshift, partial, c, 1, LAM_MAX_SUMS, width);
    }
    if (a->add && a->dbias)
        lam_fold(a->dbias, partial, c, 2, LAM_MAX_SUMS, width);
}
