/* batcher.c -- see batcher.h.  The whole state is a position and one shift per column, so going on
 * from a checkpoint repeats the very same batches. */
#include "data/batcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { VARLEN_STD = 5, VARLEN_MIN = 5, VARLEN_OVER = 15, ROLL_STREAM = 0x726f6c6c };

struct lam_batcher {
    const lam_tokens *tokens;
    lam_batcher_options options;
    int64_t n_step;
    lam_batcher_position position;
    int extra;        /* of the last batch */
    int64_t shifts[]; /* [B] */
};

/* Turns every column on; the first epoch is turned too. */
static void begin_epoch(lam_batcher *b)
{
    b->position.row = 0;
    if (!b->options.roll)
        return;
    for (int c = 0; c < b->options.streams; c++) {
        const int64_t by = (int64_t)lam_rng_below(&b->position.rng, (uint64_t)b->n_step);
        b->shifts[c] = (b->shifts[c] + by) % b->n_step;
    }
}

lam_status lam_batcher_check(const lam_tokens *tokens, int streams)
{
    if (tokens->count / streams >= 2)
        return LAM_OK;
    const char *const split = tokens->split, *const of = *split ? " of the " : "";
    return lam_fail(LAM_ERR_ARG, "%lld tokens%s%s%s are too few for %d streams (batch size)",
                    (long long)tokens->count, of, split, *split ? " split" : "", streams);
}

lam_status lam_batcher_create(lam_batcher **out, const lam_tokens *tokens,
                              const lam_batcher_options *options)
{
    *out = NULL;
    assert(options->streams > 0 && options->length > 0);
    LAM_TRY(lam_batcher_check(tokens, options->streams));
    lam_batcher *b = calloc(1, sizeof *b + (size_t)options->streams * sizeof *b->shifts);
    if (b == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d streams", options->streams);
    b->tokens = tokens;
    b->options = *options;
    b->n_step = tokens->count / options->streams;
    b->position.rng = (lam_rng){.key = options->seed, .stream = ROLL_STREAM};
    begin_epoch(b);
    *out = b;
    return LAM_OK;
}

void lam_batcher_free(lam_batcher *b)
{
    free(b);
}

int lam_batcher_max_length(const lam_batcher *b)
{
    return b->options.length + (b->options.varlen ? VARLEN_OVER : 0);
}

int64_t lam_batcher_rows(const lam_batcher *b)
{
    return b->n_step;
}

/* Rows [row, row + n) of column c, which was turned by its shift. */
static void read_column(const lam_batcher *b, int32_t *out, int c, int64_t row, int n)
{
    const int64_t base = c * b->n_step;
    int64_t at = (row + b->shifts[c]) % b->n_step;
    for (int64_t left = n; left > 0;) {
        const int64_t some = left < b->n_step - at ? left : b->n_step - at;
        lam_tokens_copy(b->tokens, out, base + at, (size_t)some);
        out += some;
        left -= some;
        at = 0;
    }
}

static void read_batch(const lam_batcher *b, int32_t *inputs, int32_t *targets, int64_t row, int n,
                       int extra)
{
    assert(row >= extra && n > 0 && row + n < b->n_step);
    for (int c = 0; c < b->options.streams; c++) {
        read_column(b, inputs + (size_t)c * (size_t)(extra + n), c, row - extra, extra + n);
        read_column(b, targets + (size_t)c * (size_t)n, c, row + 1, n);
    }
}

static int draw_length(lam_batcher *b)
{
    const int N = b->options.length, most = N + VARLEN_OVER;
    const double base = lam_rng_uniform(&b->position.rng) < 0.95 ? N : N / 2.0;
    const int n = (int)(base + VARLEN_STD * lam_rng_normal(&b->position.rng));
    return n < VARLEN_MIN ? VARLEN_MIN : n > most ? most : n;
}

int lam_batcher_next(lam_batcher *b, int32_t *inputs, int32_t *targets)
{
    lam_batcher_position *p = &b->position;
    /* varlen stops one row earlier than the fixed length, as published. */
    const bool first = p->row == 0;
    if (p->row >= b->n_step - (b->options.varlen && !first ? 2 : 1)) {
        p->epoch++;
        begin_epoch(b);
        return 0;
    }
    int n = b->options.varlen ? draw_length(b) : b->options.length;
    const int64_t left = b->n_step - 1 - p->row;
    n = n < left ? n : (int)left;
    b->extra = p->row < b->options.extra ? (int)p->row : b->options.extra;
    read_batch(b, inputs, targets, p->row, n, b->extra);
    p->row += n;
    return n;
}

int lam_batcher_extra(const lam_batcher *b)
{
    return b->extra;
}

const lam_batcher_position *lam_batcher_where(const lam_batcher *b)
{
    return &b->position;
}

const int64_t *lam_batcher_shifts(const lam_batcher *b)
{
    return b->shifts;
}

lam_status lam_batcher_restore(lam_batcher *b, const lam_batcher_position *position,
                               const int64_t *shifts, int n_shifts)
{
    if (n_shifts != b->options.streams)
        return lam_fail(LAM_ERR_FORMAT, "the saved position has %d streams, not %d", n_shifts,
                        b->options.streams);
    if (position->epoch < 0 || position->row < 0 || position->row >= b->n_step)
        return lam_fail(LAM_ERR_FORMAT, "the saved row %lld is not in a column of %lld tokens",
                        (long long)position->row, (long long)b->n_step);
    for (int c = 0; c < n_shifts; c++)
        if (shifts[c] < 0 || shifts[c] >= b->n_step)
            return lam_fail(LAM_ERR_FORMAT,
                            "the saved shift %lld is not in a column of %lld tokens",
                            (long long)shifts[c], (long long)b->n_step);
    b->position = *position;
    memcpy(b->shifts, shifts, (size_t)n_shifts * sizeof *shifts);
    return LAM_OK;
}
