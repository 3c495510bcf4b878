/* evaluate.c -- see evaluate.h. */
#include "train/evaluate.h"

#include "data/batcher.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

struct lam_evaluator {
    lam_model *model;
    lam_eval_options opt;
    lam_stack *stack;
    int32_t *inputs, *targets; /* [batch][tgt_len] */
    double *nll;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

lam_status lam_evaluator_create(lam_evaluator **out, lam_model *model,
                                const lam_eval_options *options)
{
    *out = NULL;
    if (options->batch < 1 || options->tgt_len < 1)
        return lam_fail(LAM_ERR_ARG, "evaluation: batch %d, length %d: must be at least 1",
                        options->batch, options->tgt_len);
    lam_evaluator *e = calloc(1, sizeof *e);
    if (!e)
        return lam_fail(LAM_ERR_MEMORY, "evaluation: no memory");
    const size_t rows = (size_t)options->batch * (size_t)options->tgt_len;
    *e = (lam_evaluator){.model = model,
                         .opt = *options,
                         .inputs = calloc(rows, sizeof *e->inputs),
                         .targets = calloc(rows, sizeof *e->targets),
                         .nll = calloc(rows, sizeof *e->nll)};
    lam_status status = e->inputs && e->targets && e->nll
                            ? LAM_OK
                            : lam_fail(LAM_ERR_MEMORY, "evaluation: no memory for %zu rows", rows);
    if (status == LAM_OK)
        status = lam_stack_create(&e->stack, model,
                                  &(lam_stack_options){.B = options->batch,
                                                       .N = options->tgt_len,
                                                       .M = options->mem_len});
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

static lam_status pass(lam_evaluator *e, lam_eval_result *out, lam_batcher *batcher,
                       lam_eval_watch *watch, void *user)
{
    const int B = e->opt.batch;
    const int64_t predicted = lam_batcher_rows(batcher) - 1, N = e->opt.tgt_len;
    const int64_t limit = e->opt.max_steps;
    const int64_t rows = limit > 0 && limit < predicted / N ? limit * N : predicted;
    const double started = now();
    lam_stack_reset(e->stack);
    for (int64_t steps = 0; limit == 0 || steps < limit; steps++) {
        const int n = lam_batcher_next(batcher, e->inputs, e->targets);
        if (n == 0)
            break;
        lam_stack_begin(e->stack, n, (lam_noise){0});
        lam_stack_forward(e->stack, e->inputs, n);
        lam_stack_loss(e->stack, e->targets, 0.0);
        lam_stack_commit(e->stack);
        LAM_TRY(lam_stack_nll(e->stack, e->nll));
        add_blocks(out, e->nll, B, n);
        out->seconds = now() - started;
        if (!isfinite(out->nll))
            return lam_fail(LAM_ERR_NUMERIC, "evaluation: the loss is %g after %lld tokens",
                            out->nll, (long long)out->tokens);
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
    LAM_TRY(lam_batcher_create(
        &batcher, text, &(lam_batcher_options){.streams = e->opt.batch, .length = e->opt.tgt_len}));
    const lam_status status = pass(e, out, batcher, watch, user);
    lam_batcher_free(batcher);
    return status;
}
