/* evaluate.c -- see evaluate.h. */
#include "train/evaluate.h"

#include "core/clock.h"
#include "data/batcher.h"

#include <math.h>
#include <stdlib.h>

struct lam_evaluator {
    lam_model *model;
    lam_eval_options opt;
    lam_stack *stack;
    int32_t *inputs, *targets; /* [batch][ext_len + tgt_len] */
    double *nll;
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

/* What is kept of each row beside the stack: two tokens and a loss. */
enum { ROW_BYTES = 2 * sizeof(int32_t) + sizeof(double) };

static size_t rows_of(const lam_eval_options *options)
{
    return (size_t)options->batch * ((size_t)options->tgt_len + (size_t)options->ext_len);
}

static lam_stack_options stack_of(const lam_eval_options *options)
{
    return (lam_stack_options){.B = options->batch,
                               .N = options->tgt_len + options->ext_len,
                               .M = options->mem_len,
                               .most = options->most,
                               .E = options->ext_len,
                               .full = options->full};
}

void lam_eval_fit(lam_eval_options *options, const lam_tokens *text)
{
    const int64_t N = options->tgt_len, limit = options->max_steps + options->skip;
    int64_t most = text->count / options->batch - 1; /* tokens of a column that are read */
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
                         .nll = calloc(rows, sizeof *e->nll)};
    lam_status status = e->inputs && e->targets && e->nll
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
    free(e->nll);
    free(e);
}

static void add_blocks(lam_eval_result *r, const double *nll, int B, int n)
{
    for (int b = 0; b < B; b++) {
        double sum = 0.0;
        for (int i = 0; i < n; i++)
            sum += nll[(size_t)b * (size_t)n + (size_t)i];
        r->nll += sum;
        r->nll_nll += sum * sum;
        r->nll_n += sum * n;
        r->n_n += (double)n * n;
    }
    r->blocks += B;
    r->tokens += (int64_t)B * n;
}

/* Computes one segment of n tokens after `extra` known ones; e->nll has its losses.  Without commit, so that
 * it can be looked at. */
static lam_status segment(lam_evaluator *e, int n, int extra)
{
    lam_stack_pass(
        e->stack,
        &(lam_pass){
            .inputs = e->inputs, .targets = e->targets, .n = extra + n, .scored = n, .open = 1});
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
    const int64_t left = lam_batcher_rows(batcher) - 1 - e->opt.skip * N;
    return limit > 0 && limit < left / N ? limit * N : left;
}

static lam_status pass(lam_evaluator *e, lam_eval_result *out, lam_batcher *batcher,
                       lam_eval_watch *watch, void *user)
{
    const int B = e->opt.batch;
    const int64_t rows = counted_rows(e, batcher), from = e->opt.skip * e->opt.tgt_len;
    const double started = lam_clock();
    if (rows < 1)
        return lam_fail(LAM_ERR_ARG,
                        "evaluation: %lld tokens in a column, the first %lld of them "
                        "fill the memory",
                        (long long)lam_batcher_rows(batcher), (long long)from);
    lam_stack_reset(e->stack);
    for (int64_t row = 0; row < from + rows;) {
        const int n = lam_batcher_next(batcher, e->inputs, e->targets);
        LAM_TRY(segment(e, n, lam_batcher_extra(batcher)));
        if (row >= from) {
            add_blocks(out, e->nll, B, n);
            LAM_TRY(visit(e, row, n));
        }
        lam_stack_commit(e->stack);
        row += n;
        out->seconds = lam_clock() - started;
        if (!isfinite(out->nll))
            return lam_fail(LAM_ERR_NUMERIC, "the loss is not finite after %lld tokens",
                            (long long)out->tokens);
        if (watch && watch(user, out, B * rows))
            return lam_fail(LAM_ERR_INTERRUPTED, "evaluation stopped after %lld of %lld tokens",
                            (long long)out->tokens, (long long)(B * rows));
    }
    return LAM_OK;
}

lam_status lam_evaluator_run(lam_evaluator *e, lam_eval_result *out, const lam_tokens *text,
                             lam_eval_watch *watch, void *user)
{
    lam_batcher *batcher;
    *out = (lam_eval_result){0};
    if (text->vocab_size > e->model->cfg.n_token)
        return lam_fail(LAM_ERR_ARG, "the text has a vocabulary of %d, the model one of %d",
                        text->vocab_size, e->model->cfg.n_token);
    LAM_TRY(lam_batcher_create(&batcher, text,
                               &(lam_batcher_options){.streams = e->opt.batch,
                                                      .length = e->opt.tgt_len,
                                                      .extra = e->opt.ext_len}));
    const lam_status status = pass(e, out, batcher, watch, user);
    lam_batcher_free(batcher);
    return status;
}
