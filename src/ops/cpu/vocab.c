/* cpu/vocab.c -- embedding rows, softmax cross-entropy (Eq. 4), row lists.
 *
 * ref/vocab.c says what is computed.  embed_bwd is parallel over columns: every thread walks all rows
 * in order, so that an id which occurs twice receives both gradients in the order of the rows. */
#include "ops/cpu/cpu.h"
#include "ops/cpu/narrow.h"

/* The table row of an id; -1 when it belongs to another table. */
static ptrdiff_t table_row(const lam_embed *a, size_t r)
{
    const int32_t id = ((const int32_t *)a->ids)[r];
    return id < a->first || id - a->first >= a->count ? -1 : id - a->first;
}

/* to = scale * row `row` of the table, whatever it is stored as. */
static void look_up(float *to, const lam_embed *a, size_t row)
{
    const size_t at = row * (size_t)a->ld;
    const float scale = (float)a->scale;
    if (a->table_class == LAM_HALF)
        lam_widen_row(to, (const uint16_t *)a->table + at, LAM_HALF, scale, (size_t)a->width);
    else if (a->table_class == LAM_BYTE)
        lam_widen_row(to, (const int8_t *)a->table + at, LAM_BYTE,
                      scale * ((const float *)a->table_scale)[row], (size_t)a->width);
    else
        lam_widen_row(to, (const float *)a->table + at, LAM_ACT, scale, (size_t)a->width);
}

void lam_cpu_embed_fwd(lam_dev *dev, const lam_embed *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows, width = (size_t)a->width, ld = (size_t)a->ld;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *ld)) schedule(static)
    for (size_t r = 0; r < rows; r++) {
        const ptrdiff_t row = table_row(a, r);
        float *out = (float *)a->out + r * ld;
        const size_t filled = row >= 0 ? width : 0;
        if (row >= 0)
            look_up(out, a, (size_t)row);
        if (filled < ld)
            memset(out + filled, 0, (ld - filled) * sizeof *out);
    }
}

/* fwd was out[r] = scale * table[ids[r] - first]. */
void lam_cpu_embed_bwd(lam_dev *dev, const lam_embed *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows, width = (size_t)a->width, ld = (size_t)a->ld;
    const size_t strip = 64, strips = (width + strip - 1) / strip;
    const float scale = (float)a->scale;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *width)) schedule(static)
    for (size_t i = 0; i < strips; i++) {
        const size_t begin = i * strip, end = begin + strip < width ? begin + strip : width;
        for (size_t r = 0; r < rows; r++) {
            const ptrdiff_t id = table_row(a, r);
            const float *dout = (const float *)a->dout + r * ld;
            if (id < 0)
                continue;
            float *row = (float *)a->dtable + (size_t)id * ld;
#pragma omp simd
            for (size_t c = begin; c < end; c++)
                row[c] += scale * dout[c];
        }
    }
}

static float top_of(const float *logits, size_t cols)
{
    lam_f16v top = lam_splat(-INFINITY);
    size_t c = 0;
    for (; c + LAM_VEC <= cols; c += LAM_VEC)
        top = lam_max(top, lam_load(logits + c));
    float most = lam_max16(top);
    for (; c < cols; c++)
        most = most > logits[c] ? most : logits[c];
    return most;
}

/* n of sixteen columns of exp(logit - top), which stay in `to` unless it is NULL; zero beyond n. */
LAM_INLINE lam_f16v exp_strip(float *to, const float *logits, float top, size_t n)
{
    const lam_f16v e = lam_exp16(lam_sub(lam_load_n(logits, n), lam_splat(top)));
    if (to)
        lam_store_n(to, e, n);
    return e;
}

/* sum exp(logit - top); the sums of 512 columns are added in double, for the largest vocabularies. */
static double exp_sum(float *to, const float *logits, float top, size_t cols)
{
    double total = 0.0;
    size_t c = 0;
    while (c + LAM_VEC <= cols) {
        const size_t end = c + 512 < cols ? c + 512 : cols;
        lam_f16v sum = lam_splat(0.0f);
        for (; c + LAM_VEC <= end; c += LAM_VEC)
            sum = lam_add(sum, exp_strip(to ? to + c : NULL, logits + c, top, LAM_VEC));
        total += (double)lam_sum16(sum);
    }
    if (c < cols) {
        float rest[LAM_VEC];
        lam_store(rest, exp_strip(to ? to + c : NULL, logits + c, top, cols - c));
        for (size_t i = 0; i < cols - c; i++)
            total += (double)rest[i];
    }
    return total;
}

/* nll = lse - logit[target]; its gradient is softmax - onehot, made from the exponentials that the
 * sum left in place of the logits. */
static float xent_row(float *logits, size_t cols, size_t target, float grad_scale)
{
    const float wanted = logits[target], top = top_of(logits, cols);
    const double sum = exp_sum(grad_scale != 0.0f ? logits : NULL, logits, top, cols);
    if (grad_scale != 0.0f) {
        const float factor = (float)((double)grad_scale / sum);
#pragma omp simd
        for (size_t c = 0; c < cols; c++)
            logits[c] *= factor;
        logits[target] -= grad_scale;
    }
    return (float)(log(sum) + ((double)top - (double)wanted));
}

void lam_cpu_xent(lam_dev *dev, const lam_xent *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const int32_t *target = a->target, *index = a->index;
    const size_t rows = (size_t)a->rows, cols = (size_t)a->cols;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *cols)) schedule(static)
    for (size_t r = 0; r < rows; r++) {
        assert(target[r] < a->cols);
        float *nll = (float *)a->nll + (index ? (size_t)index[r] : r);
        float *logits = (float *)a->logits + r * a->ld;
        float loss = 0.0f;
        if (target[r] >= 0)
            loss = xent_row(logits, cols, (size_t)target[r], (float)a->grad_scale);
        else if (a->grad_scale != 0.0)
            memset(logits, 0, cols * sizeof *logits);
        *nll = a->add ? *nll + loss : loss;
    }
}

void lam_cpu_gather(lam_dev *dev, const lam_pick *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows, width = (size_t)a->width;
    const int32_t *index = a->index;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *width)) schedule(static)
    for (size_t r = 0; r < rows; r++)
        memcpy((float *)a->out + r * a->ld_out, (const float *)a->in + (size_t)index[r] * a->ld_in,
               width * sizeof(float));
}

/* The indices are distinct, so no two threads meet. */
void lam_cpu_scatter(lam_dev *dev, const lam_pick *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows, width = (size_t)a->width;
    const int32_t *index = a->index;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *width)) schedule(static)
    for (size_t r = 0; r < rows; r++) {
        const float *in = (const float *)a->in + r * a->ld_in;
        float *out = (float *)a->out + (size_t)index[r] * a->ld_out;
#pragma omp simd
        for (size_t c = 0; c < width; c++)
            out[c] += in[c];
    }
}
