/* evaluate.c -- see evaluate.h. */
#include "train/evaluate.h"

#include "core/clock.h"
#include "data/batcher.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct lam_evaluator {
    lam_model *model;
    lam_eval_options opt;
    lam_stack *stack;
    int32_t *inputs, *targets; /* [batch][ext_len + tgt_len] */
    int *rows;                 /* [batch]: those without padding, where there are documents */
    double *nll;
    const lam_tokens *text; /* that is being read */
};

double lam_eval_mean(const lam_eval_result *r)
{
    return r->nll / (double)r->tokens;
}

double lam_eval_error(const lam_eval_result *r)
{
    const double mean = lam_eval_mean(r), G = (double)r->blocks;
    /* sum over blocks of (S - mean n)^2, times G / (G - 1), over the square of all tokens */
    const double sum = r->nll_nll - 2.0 * mean * r->nll_n + mean * mean * r->n_n;
    return r->blocks < 2 ? NAN : sqrt(fmax(sum, 0.0) * G / (G - 1.0)) / (double)r->tokens;
}

int lam_loss_untrained(double loss, double even)
{
    return loss > 1.05 * even;
}

double lam_metric_of(lam_metric metric, double loss)
{
    return metric == LAM_BPC ? loss / log(2.0) : exp(loss);
}

/* bpc is the loss in other units; ppl = exp(loss) has its own slope. */
double lam_metric_error(lam_metric metric, const lam_eval_result *r)
{
    const double slope = metric == LAM_BPC ? 1.0 / log(2.0) : exp(lam_eval_mean(r));
    return slope * lam_eval_error(r);
}

double lam_eval_bits_per_byte(const lam_eval_result *r)
{
    return r->bytes > 0 ? r->nll / log(2.0) / r->bytes : NAN;
}

double lam_eval_bits_error(const lam_eval_result *r)
{
    return r->bytes > 0 ? lam_eval_error(r) * (double)r->tokens / log(2.0) / r->bytes : NAN;
}

/* What is kept of each row beside the stack: two tokens and a loss. */
enum { ROW_BYTES = 2 * sizeof(int32_t) + sizeof(double) };

static int parts_of(const lam_eval_options *options)
{
    return options->parts > 0 ? options->parts : 1;
}

/* Columns of one part. */
static int columns_of(const lam_eval_options *options)
{
    return options->batch / parts_of(options);
}

static size_t rows_of(const lam_eval_options *options)
{
    return (size_t)columns_of(options) * ((size_t)options->tgt_len + (size_t)options->ext_len);
}

static lam_stack_options stack_of(const lam_eval_options *options)
{
    return (lam_stack_options){.B = columns_of(options),
                               .N = options->tgt_len + options->ext_len,
                               .M = options->mem_len,
                               .most = options->most,
                               .E = options->ext_len,
                               .full = options->full};
}

void lam_eval_fit(lam_eval_options *options, const lam_tokens *text)
{
    const int64_t N = options->tgt_len, limit = options->max_steps + options->skip;
    /* Tokens of a column that are read; one stream may have all documents. */
    int64_t most = options->reset.document ? text->count : text->count / options->batch - 1;
    if (options->max_steps > 0 && limit < most / N)
        most = limit * N;
    options->tgt_len = lam_length_fit(options->tgt_len, most);
    options->mem_len = lam_length_fit(options->mem_len, most);
    options->ext_len = lam_length_fit(options->ext_len, most);
    options->most = most;
}

lam_status lam_evaluator_measure(size_t *bytes, lam_model *model, const lam_eval_options *options)
{
    const lam_stack_options stack = stack_of(options);
    lam_stack_sizes sizes;
    *bytes = 0;
    if (options->batch < 1 || options->tgt_len < 1)
        return lam_fail(LAM_ERR_ARG, "evaluation: batch %d, length %d: must be at least 1",
                        options->batch, options->tgt_len);
    if (options->batch % parts_of(options) != 0)
        return lam_fail(LAM_ERR_ARG, "evaluation: batch %d cannot be divided into %d parts",
                        options->batch, options->parts);
    if (options->reset.document)
        LAM_TRY(lam_mem_takes_documents(model->mem, &model->cfg));
    LAM_TRY(lam_stack_measure(&sizes, model, &stack));
    *bytes = sizes.activations + sizes.state + rows_of(options) * ROW_BYTES;
    return LAM_OK;
}

lam_status lam_evaluator_create(lam_evaluator **out, lam_model *model,
                                const lam_eval_options *options)
{
    const lam_stack_options stack = stack_of(options);
    *out = NULL;
    size_t bytes;
    LAM_TRY(lam_evaluator_measure(&bytes, model, options));
    lam_evaluator *e = calloc(1, sizeof *e);
    if (!e)
        return lam_fail(LAM_ERR_MEMORY, "evaluation: no memory");
    const size_t rows = rows_of(options);
    *e = (lam_evaluator){.model = model,
                         .opt = *options,
                         .inputs = calloc(rows, sizeof *e->inputs),
                         .targets = calloc(rows, sizeof *e->targets),
                         .rows = calloc((size_t)options->batch, sizeof *e->rows),
                         .nll = calloc(rows, sizeof *e->nll)};
    lam_status status = e->inputs && e->targets && e->rows && e->nll
                            ? LAM_OK
                            : lam_fail(LAM_ERR_MEMORY, "evaluation: no memory for %zu rows", rows);
    if (status == LAM_OK)
        status = lam_stack_create(&e->stack, model, &stack);
    if (status != LAM_OK) {
        lam_evaluator_free(e);
        return status;
    }
    *out = e;
    return LAM_OK;
}

void lam_evaluator_free(lam_evaluator *e)
{
    if (!e)
        return;
    lam_stack_free(e->stack);
    free(e->inputs);
    free(e->targets);
    free(e->rows);
    free(e->nll);
    free(e);
}

/* Of n rows of each stream; `rows` NULL: all of them count. */
static void add_blocks(lam_eval_result *r, const double *nll, int B, int n, const int *rows)
{
    for (int b = 0; b < B; b++) {
        const int count = rows ? rows[b] : n;
        double sum = 0.0;
        for (int i = 0; i < count; i++)
            sum += nll[(size_t)b * (size_t)n + (size_t)i];
        r->nll += sum;
        r->nll_nll += sum * sum;
        r->nll_n += sum * count;
        r->n_n += (double)count * count;
        r->blocks += count > 0;
        r->tokens += count;
    }
}

static void add_bytes(lam_eval_result *r, const lam_tokens *text, const int32_t *targets, size_t n)
{
    double sum = 0;
    for (size_t i = 0; text->sizes && i < n; i++)
        sum += targets[i] == LAM_NO_TARGET ? 0 : text->sizes[targets[i]];
    r->bytes += sum * text->scale;
}

/* Computes one segment of n tokens after `extra` known ones; e->nll has its losses.  Without commit, so that
 * it can be looked at. */
static lam_status segment(lam_evaluator *e, int n, int extra, const int *rows)
{
    lam_stack_pass(e->stack, &(lam_pass){.inputs = e->inputs,
                                         .targets = e->targets,
                                         .n = extra + n,
                                         .scored = n,
                                         .rows = rows,
                                         .open = 1});
    return lam_stack_nll(e->stack, e->nll);
}

static lam_status visit(const lam_evaluator *e, int64_t row, int n)
{
    const lam_eval_segment seen = {.stack = e->stack,
                                   .row = row,
                                   .n = n,
                                   .inputs = e->inputs,
                                   .targets = e->targets,
                                   .nll = e->nll};
    return e->opt.visit ? e->opt.visit(e->opt.visitor, &seen) : LAM_OK;
}

/* Tokens of a column that count. */
static int64_t counted_rows(const lam_evaluator *e, const lam_batcher *batcher)
{
    const int64_t N = e->opt.tgt_len, limit = e->opt.max_steps;
    assert(!e->opt.reset.document || (e->opt.skip == 0 && !e->opt.visit));
    const int64_t left = lam_batcher_rows(batcher) - 1 - e->opt.skip * N;
    return limit > 0 && limit < left / N ? limit * N : left;
}

/* Streams forget where a document begins now.  Returns how many rows each has; NULL: all have all. */
static const int *begin_documents(lam_evaluator *e, const lam_stream_rows *streams)
{
    for (int b = 0; streams && b < columns_of(&e->opt); b++) {
        e->rows[b] = streams[b].rows;
        if (streams[b].fresh)
            lam_stack_forget(e->stack, b);
    }
    return streams ? e->rows : NULL;
}

static lam_status pass(lam_evaluator *e, lam_eval_result *out, lam_batcher *batcher,
                       lam_eval_watch *watch, void *user)
{
    const int B = columns_of(&e->opt);
    const int64_t rows = counted_rows(e, batcher), from = e->opt.skip * e->opt.tgt_len;
    const int64_t total =
        e->opt.reset.document && e->text->count < B * rows ? e->text->count : B * rows;
    const double started = lam_clock();
    if (rows < 1)
        return lam_fail(LAM_ERR_ARG,
                        "evaluation: %lld tokens in a column, the first %lld of them "
                        "fill the memory",
                        (long long)lam_batcher_rows(batcher), (long long)from);
    lam_stack_reset(e->stack);
    for (int64_t row = 0, steps = 0; row < from + rows; steps++) {
        const int n = lam_batcher_next(batcher, e->inputs, e->targets);
        if (n == 0) /* of documents n_step only says how long they are at most */
            break;
        if (e->opt.reset.every > 0 && steps % e->opt.reset.every == 0)
            lam_stack_reset(e->stack);
        const int *const own = begin_documents(e, lam_batcher_streams(batcher));
        LAM_TRY(segment(e, n, lam_batcher_extra(batcher), own));
        if (row >= from) {
            add_blocks(out, e->nll, B, n, own);
            add_bytes(out, e->text, e->targets, (size_t)B * (size_t)n);
            LAM_TRY(visit(e, row, n));
        }
        lam_stack_commit(e->stack);
        row += n;
        out->seconds = lam_clock() - started;
        if (!isfinite(out->nll))
            return lam_fail(LAM_ERR_NUMERIC, "the loss is not finite after %lld tokens",
                            (long long)out->tokens);
        if (watch && watch(user, out, total))
            return lam_fail(LAM_ERR_INTERRUPTED, "evaluation stopped after %lld of %lld tokens",
                            (long long)out->tokens, (long long)total);
    }
    return LAM_OK;
}

static lam_status run_part(lam_evaluator *e, lam_eval_result *out, const lam_tokens *text, int part,
                           lam_eval_watch *watch, void *user)
{
    lam_batcher *batcher;
    const int columns = columns_of(&e->opt);
    LAM_TRY(lam_batcher_create(&batcher, text,
                               &(lam_batcher_options){.streams = e->opt.batch,
                                                      .length = e->opt.tgt_len,
                                                      .extra = e->opt.ext_len,
                                                      .first = part * columns,
                                                      .only = columns,
                                                      .documents = e->opt.reset.document}));
    e->text = text;
    const lam_status status = pass(e, out, batcher, watch, user);
    lam_batcher_free(batcher);
    return status;
}

static void add_result(lam_eval_result *to, const lam_eval_result *r)
{
    to->nll += r->nll;
    to->tokens += r->tokens;
    to->blocks += r->blocks;
    to->bytes += r->bytes;
    to->nll_nll += r->nll_nll;
    to->nll_n += r->nll_n;
    to->n_n += r->n_n;
    to->seconds += r->seconds;
}

/* What a watcher sees of several parts. */
typedef struct parts_watch {
    lam_eval_watch *watch;
    void *user;
    lam_eval_result before; /* of the parts that are done */
    int n;                  /* parts in all */
} parts_watch;

static int watch_part(void *user, const lam_eval_result *so_far, int64_t total)
{
    const parts_watch *w = user;
    lam_eval_result seen = w->before;
    add_result(&seen, so_far);
    return w->watch && w->watch(w->user, &seen, w->n * total);
}

/* The parts of this rank. */
static lam_status run_own(lam_evaluator *e, lam_eval_result *results, const lam_tokens *text,
                          lam_eval_watch *watch, void *user)
{
    const int parts = parts_of(&e->opt), ranks = lam_comm_size(e->opt.comm),
              rank = lam_comm_rank(e->opt.comm);
    const int from = rank * parts / ranks, to = (rank + 1) * parts / ranks;
    parts_watch w = {.watch = watch, .user = user, .n = to - from};
    for (int i = from; i < to; i++) {
        LAM_TRY(run_part(e, &results[i], text, i, watch_part, &w));
        add_result(&w.before, &results[i]);
    }
    return LAM_OK;
}

lam_status lam_evaluator_run(lam_evaluator *e, lam_eval_result *out, const lam_tokens *text,
                             lam_eval_watch *watch, void *user)
{
    const int parts = parts_of(&e->opt);
    const double started = lam_clock();
    *out = (lam_eval_result){0};
    if (text->vocab_size > e->model->cfg.n_token)
        return lam_fail(LAM_ERR_ARG, "the text has a vocabulary of %d, the model one of %d",
                        text->vocab_size, e->model->cfg.n_token);
    lam_eval_result *const results = calloc((size_t)parts, sizeof *results);
    lam_status status = results ? run_own(e, results, text, watch, user)
                                : lam_fail(LAM_ERR_MEMORY, "evaluation: no memory");
    if (lam_comm_size(e->opt.comm) > 1) {
        status = lam_comm_agree(e->opt.comm, status);
        if (status == LAM_OK) /* a part is zero on all ranks but one */
            status = lam_comm_any(e->opt.comm, (unsigned char *)results,
                                  (size_t)parts * sizeof *results);
    }
    for (int i = 0; i < parts && results; i++)
        add_result(out, &results[i]);
    if (parts > 1)
        out->seconds = lam_clock() - started;
    free(results);
    return status;
}
