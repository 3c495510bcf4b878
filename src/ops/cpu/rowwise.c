/* cpu/rowwise.c -- dropout, copies and column sums; LayerNorm is in rowwise_norm.c.
 *
 * ref/rowwise.c says what is computed.  Rows are dealt to threads, and sums over rows are taken, as
 * chunks.h says, so that no bit depends on the number of threads. */
#include "ops/cpu/chunks.h"
#include "ops/cpu/philox.h"

size_t lam_cpu_rowwise_scratch(const lam_work *largest)
{
    const size_t one = LAM_MAX_SUMS * lam_line_of((size_t)largest->width);
    const size_t cap = one > LAM_MAX_PARTIAL ? one : LAM_MAX_PARTIAL;
    return (one * LAM_MAX_CHUNKS < cap ? one * LAM_MAX_CHUNKS : cap) * sizeof(float);
}

static void drop_row(float *out, const float *in, const lam_mask *mask, size_t row, size_t width)
{
    const uint64_t block = lam_mask_block(row, width);
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + LAM_VEC <= width; i += LAM_VEC) {
        bits = lam_mask_next(mask, bits, block, i);
        lam_store(out + i, lam_keep16(lam_mul(lam_load(in + i), lam_splat(mask->scale)), bits));
    }
    if (i < width) {
        bits = lam_mask_next(mask, bits, block, i);
        const lam_f16v x = lam_load_n(in + i, width - i);
        lam_store_n(out + i, lam_keep16(lam_mul(x, lam_splat(mask->scale)), bits), width - i);
    }
}

void lam_cpu_dropout(lam_dev *dev, const lam_dropout *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t width = (size_t)a->width, ld = (size_t)a->ld;
    const size_t rows = (size_t)a->rows, all = rows * (size_t)a->blocks;
    const lam_mask mask = lam_mask_make(&a->drop);

#pragma omp parallel for num_threads(lam_cpu_team(cpu, all *ld)) schedule(static)
    for (size_t row = 0; row < all; row++) {
        float *out = lam_cpu_row(a->out, ld, row / rows, row % rows);
        drop_row(out, lam_cpu_row(a->in, ld, row / rows, row % rows), &mask, row, width);
        lam_clear_padding(out, width, ld);
    }
}

/* What is copied has four bytes an element here.  Blocks are cut into pieces, because there may be only one. */
void lam_cpu_copy(lam_dev *dev, const lam_copy *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t piece = 32768, pieces = (a->count + piece - 1) / piece;
    const size_t all = pieces * (size_t)a->blocks;
    assert(a->type != LAM_HALF && a->type != LAM_BYTE);

#pragma omp parallel for num_threads(lam_cpu_team(cpu, a->count *(size_t)a->blocks))               \
    schedule(static)
    for (size_t i = 0; i < all; i++) {
        const size_t b = i / pieces, at = i % pieces * piece;
        const size_t n = a->count - at < piece ? a->count - at : piece;
        float *out = lam_cpu_row(a->out, 1, b, at);
        const float *in = lam_cpu_row(a->in, 1, b, at);
        if (!in)
            memset(out, 0, n * sizeof *out);
        else if (in != out)
            memcpy(out, in, n * sizeof *out);
    }
}

/* One row is added as it is, without scratch: it may be a table of positions (nn/positions.c), far wider than
 * the rows that reserve() was told of. */
static void add_row(const lam_cpu_dev *cpu, float *out, const float *in, size_t width)
{
#pragma omp parallel for simd num_threads(lam_cpu_team(cpu, width)) schedule(static)
    for (size_t j = 0; j < width; j++)
        out[j] += in[j];
}

void lam_cpu_colsum(lam_dev *dev, const lam_colsum *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t width = (size_t)a->width, ld = (size_t)a->ld, rows = (size_t)a->rows;
    if (rows == 1) {
        add_row(cpu, a->out, a->in, width);
        return;
    }
    const lam_chunks c = lam_chunks_of(rows, 1, width);
    float *partial = lam_partial_sums(cpu, c, 1, width);

#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *width)) schedule(static)
    for (size_t i = 0; i < c.n; i++) {
        float *sum = partial + i * lam_line_of(width);
        memset(sum, 0, lam_line_of(width) * sizeof *sum);
        for (size_t row = i * c.size; row < lam_chunk_end(c, i); row++) {
            const float *in = (const float *)a->in + row * ld;
#pragma omp simd
            for (size_t j = 0; j < width; j++)
                sum[j] += in[j];
        }
    }
    lam_fold(a->out, partial, c, 0, 1, width);
}
