/* batcher.c -- see batcher.h.  The whole state is a position and one shift per column, so going on
 * from a checkpoint repeats the very same batches. */
#include "data/batcher.h"

#include "data/shelves.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    VARLEN_STD = 5,
    VARLEN_MIN = 5,
    VARLEN_OVER = 15,
    ROLL_STREAM = 0x726f6c6c,
    DEAL_STREAM = 0x6465616c
};

struct lam_batcher {
    const lam_tokens *tokens;
    lam_batcher_options options;
    int64_t n_step;
    lam_batcher_position position;
    int extra, n; /* of the last batch */
    /* With documents: */
    lam_shelves shelves;
    lam_stream_rows *streams; /* [B], owned; NULL without */
    int64_t *reading;         /* [B], owned: the document of each stream, */
    int64_t *done;            /* [B], owned: and its tokens that were read */

    int64_t shifts[]; /* [B] */
};

/* ---- documents ---- */

/* The order of an epoch is a function of its number: nothing but positions must be kept. */
static void deal(lam_batcher *b)
{
    lam_rng rng = {.key = b->options.seed,
                   .stream = DEAL_STREAM | (uint64_t)b->position.epoch << 32};
    lam_shelves_deal(&b->shelves, b->options.length, b->options.roll ? &rng : NULL);
    for (int c = 0; c < b->options.streams; c++) {
        b->reading[c] = b->shelves.first[c];
        b->done[c] = b->shifts[c] = 0;
    }
    b->n_step = b->shelves.rows + 1;
}

static lam_status open_documents(lam_batcher *b)
{
    const size_t B = (size_t)b->options.streams;
    if (b->options.extra > 0)
        return lam_fail(LAM_ERR_ARG, "ext_len %d: with documents it must be 0", b->options.extra);
    LAM_TRY(lam_shelves_create(&b->shelves, b->tokens, b->options.streams));
    b->streams = calloc(B, sizeof *b->streams);
    b->reading = calloc(B, sizeof *b->reading);
    b->done = calloc(B, sizeof *b->done);
    return b->streams != NULL && b->reading != NULL && b->done != NULL
               ? LAM_OK
               : lam_fail(LAM_ERR_MEMORY, "no memory for %zu streams", B);
}

/* Tokens of the stream's document that were not read; 0: it has none. */
static int64_t left_of(const lam_batcher *b, int c)
{
    const int64_t at = b->reading[c];
    return at < b->shelves.first[c + 1] ? b->shelves.list[at].count - b->done[c] : 0;
}

static int64_t longest_left(const lam_batcher *b)
{
    int64_t most = 0;
    for (int c = 0; c < b->options.streams; c++)
        most = left_of(b, c) > most ? left_of(b, c) : most;
    return most;
}

static void move_on(lam_batcher *b, int c, int64_t by)
{
    b->done[c] += by;
    b->shifts[c] += by;
    if (by > 0 && left_of(b, c) == 0) {
        b->reading[c]++;
        b->done[c] = 0;
    }
}

/* The inputs are one token behind the targets; before the first one of the text there is a separator, too. */
static void read_document(const lam_batcher *b, int32_t *inputs, int32_t *targets, int c, int n)
{
    const int rows = b->streams[c].rows;
    for (int i = rows; i < n; i++)
        targets[i] = LAM_NO_TARGET;
    for (int i = 0; i < n; i++)
        inputs[i] = b->tokens->separator;
    if (rows == 0)
        return;
    const int64_t at = b->shelves.list[b->reading[c]].start + b->done[c];
    const int before = at == 0;
    lam_tokens_copy(b->tokens, inputs + before, at - 1 + before, (size_t)(rows - before));
    lam_tokens_copy(b->tokens, targets, at, (size_t)rows);
}

static int read_documents(lam_batcher *b, int32_t *inputs, int32_t *targets, int n)
{
    const int first = b->options.first;
    for (int c = 0; c < b->options.streams; c++) {
        const int64_t left = left_of(b, c);
        b->streams[c] =
            (lam_stream_rows){.fresh = b->done[c] == 0, .rows = (int)(left < n ? left : n)};
        const size_t row = (size_t)(c - first) * (size_t)n;
        if (c >= first && c < first + b->options.only)
            read_document(b, inputs + row, targets + row, c, n);
        move_on(b, c, b->streams[c].rows);
    }
    b->position.row += n;
    b->n = n;
    return n;
}

/* ---- epochs ---- */

/* Turns every column on; the first epoch is turned too. */
static void begin_epoch(lam_batcher *b)
{
    b->position.row = 0;
    if (b->options.documents)
        deal(b);
    if (!b->options.roll || b->options.documents)
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
    if (tokens->count == 0 && *split)
        return lam_fail(LAM_ERR_ARG, "the %s split is empty", split);
    return lam_fail(LAM_ERR_ARG, "%lld tokens%s%s%s are too few for %d streams (batch size)",
                    (long long)tokens->count, of, split, *split ? " split" : "", streams);
}

lam_status lam_batcher_create(lam_batcher **out, const lam_tokens *tokens,
                              const lam_batcher_options *options)
{
    *out = NULL;
    assert(options->streams > 0 && options->length > 0);
    assert(options->first >= 0 && options->first + options->only <= options->streams);
    if (!options->documents)
        LAM_TRY(lam_batcher_check(tokens, options->streams));
    lam_batcher *b = calloc(1, sizeof *b + (size_t)options->streams * sizeof *b->shifts);
    if (b == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d streams", options->streams);
    b->tokens = tokens;
    b->options = *options;
    if (options->only == 0)
        b->options.only = options->streams;
    b->n_step = tokens->count / options->streams;
    b->position.rng = (lam_rng){.key = options->seed, .stream = ROLL_STREAM};
    const lam_status status = options->documents ? open_documents(b) : LAM_OK;
    if (status != LAM_OK) {
        lam_batcher_free(b);
        return status;
    }
    begin_epoch(b);
    *out = b;
    return LAM_OK;
}

void lam_batcher_free(lam_batcher *b)
{
    if (b == NULL)
        return;
    lam_shelves_free(&b->shelves);
    free(b->streams);
    free(b->reading);
    free(b->done);
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
    for (int i = 0; i < b->options.only; i++) {
        const int c = b->options.first + i;
        read_column(b, inputs + (size_t)i * (size_t)(extra + n), c, row - extra, extra + n);
        read_column(b, targets + (size_t)i * (size_t)n, c, row + 1, n);
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
    const int64_t longest = b->options.documents ? longest_left(b) : 0;
    if (b->options.documents ? longest == 0
                             : p->row >= b->n_step - (b->options.varlen && !first ? 2 : 1)) {
        p->epoch++;
        begin_epoch(b);
        return 0;
    }
    int n = b->options.varlen ? draw_length(b) : b->options.length;
    const int64_t left = b->options.documents ? longest : b->n_step - 1 - p->row;
    n = n < left ? n : (int)left;
    if (b->options.documents)
        return read_documents(b, inputs, targets, n);
    b->extra = p->row < b->options.extra ? (int)p->row : b->options.extra;
    read_batch(b, inputs, targets, p->row, n, b->extra);
    p->row += n;
    b->n = n;
    return n;
}

const lam_stream_rows *lam_batcher_streams(const lam_batcher *b)
{
    return b->streams != NULL ? b->streams + b->options.first : NULL;
}

int64_t lam_batcher_targets(const lam_batcher *b, int skip)
{
    int64_t count = 0;
    for (int c = 0; c < b->options.streams; c++) {
        const int rows = b->streams != NULL ? b->streams[c].rows : b->n;
        count += rows > skip ? rows - skip : 0;
    }
    return count;
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

/* Every stream goes to where it was. */
static lam_status find_places(lam_batcher *b, const int64_t *shifts)
{
    for (int c = 0; c < b->options.streams; c++) {
        int64_t to = shifts[c];
        while (to > 0 && left_of(b, c) > 0) {
            const int64_t left = left_of(b, c), some = to < left ? to : left;
            move_on(b, c, some);
            to -= some;
        }
        if (to != 0)
            return lam_fail(LAM_ERR_FORMAT, "the saved place %lld is not in stream %d",
                            (long long)shifts[c], c);
    }
    return LAM_OK;
}

lam_status lam_batcher_restore(lam_batcher *b, const lam_batcher_position *position,
                               const int64_t *shifts, int n_shifts)
{
    if (n_shifts != b->options.streams)
        return lam_fail(LAM_ERR_FORMAT, "the saved position has %d streams, not %d", n_shifts,
                        b->options.streams);
    if (b->options.documents && position->epoch >= 0 && position->row >= 0) {
        b->position = *position;
        deal(b);
        return find_places(b, shifts);
    }
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
