/* chunks.h -- cutting rows so that sums over them do not depend on the number of threads.
 *
 * Rows are dealt to threads in chunks whose number and borders follow from the number of rows.  A sum
 * over rows is taken chunk by chunk into scratch, then the chunks are added in order. */
#ifndef LAM_OPS_CPU_CHUNKS_H
#define LAM_OPS_CPU_CHUNKS_H

#include "core/arena.h"
#include "ops/cpu/cpu.h"

#include <string.h>

enum {
    LAM_MIN_CHUNK = 32,        /* rows: fewer would make the partial sums dearer than the work */
    LAM_MAX_CHUNKS = 64,       /* more threads than this stay idle in column sums */
    LAM_MAX_SUMS = 3,          /* dgain, dshift, dbias */
    LAM_MAX_PARTIAL = 1 << 20, /* floats of scratch, where one chunk does not need more */
};

typedef struct lam_chunks {
    size_t rows, size, n;
} lam_chunks;

/* Partial sums: one line of floats per chunk and sum, each on cache lines of its own; never 0. */
static inline size_t lam_line_of(size_t width)
{
    const size_t per = LAM_ALIGN / sizeof(float);
    return (width / per + 1) * per;
}

/* For `sums` sums of `width` columns each; very wide ones, the bias of a large vocabulary say, get
 * fewer chunks. */
static inline lam_chunks lam_chunks_of(size_t rows, size_t sums, size_t width)
{
    const size_t room = LAM_MAX_PARTIAL / (sums * lam_line_of(width));
    const size_t most = room < 1 ? 1 : room < LAM_MAX_CHUNKS ? room : LAM_MAX_CHUNKS;
    const size_t even = (rows + most - 1) / most;
    const size_t size = even > LAM_MIN_CHUNK ? even : LAM_MIN_CHUNK;
    return (lam_chunks){rows, size, (rows + size - 1) / size};
}

static inline size_t lam_chunk_end(lam_chunks c, size_t i)
{
    return (i + 1) * c.size < c.rows ? (i + 1) * c.size : c.rows;
}

static inline float *lam_partial_sums(const lam_cpu_dev *dev, lam_chunks c, size_t sums,
                                      size_t width)
{
    return lam_cpu_scratch(dev, c.n * sums * lam_line_of(width) * sizeof(float));
}

/* out += the partial sums, chunk after chunk; line `which` of `sums` in each. */
static inline void lam_fold(float *out, const float *partial, lam_chunks c, size_t which,
                            size_t sums, size_t width)
{
    for (size_t i = 0; i < c.n; i++) {
        const float *line = partial + (i * sums + which) * lam_line_of(width);
        for (size_t j = 0; j < width; j++)
            out[j] += line[j];
    }
}

static inline void lam_clear_padding(float *row, size_t width, size_t ld)
{
    if (row && ld > width)
        memset(row + width, 0, (ld - width) * sizeof *row);
}

#endif
