/* run_eval.c -- see run_int.h: what a run evaluates, and what follows from it.
 *
 * A validation decides about best/ and, under dev_perf, about the learning rate; the test at the end about
 * nothing. */
#include "train/run_int.h"

#include "model/configure.h"
#include "model/folder.h"
#include "train/average.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int watch_evaluation(void *user, const lam_eval_result *so_far, int64_t total)
{
    lam_running *r = user;
    lam_run_show(r, (double)so_far->tokens / (double)total);
    return lam_run_stopping(r);
}

/* Of a run with leaves the columns are divided like them, as far as that goes: the loss, too, has the same bits
 * whoever computes it. */
static int parts_of(const lam_settings *s)
{
    int parts = 1;
    while (2 * parts <= s->leaves && s->eval_batch_size % (2 * parts) == 0)
        parts *= 2;
    return parts;
}

/* As published: the attention span stays what it is in training.  Where there is no memory to make up for
 * shorter segments, ext_len does. */
static lam_status evaluation_of(lam_eval_options *out, const lam_trainer *t)
{
    const lam_config *cfg = &t->model->cfg;
    const lam_settings *s = &t->state.settings;
    const int N = s->eval_tgt_len > 0 ? s->eval_tgt_len : cfg->tgt_len;
    const int longer = cfg->tgt_len - N;
    *out = (lam_eval_options){0};
    const int M = cfg->mem_len > 0 ? cfg->mem_len + longer : 0;
    const int E =
        cfg->ext_len + (cfg->mem_len > 0 || lam_config_extends(cfg, longer) != LAM_OK ? 0 : longer);
    if (M < 0)
        return lam_fail(LAM_ERR_ARG, "eval_tgt_len %d is above tgt_len + mem_len = %d", N,
                        cfg->tgt_len + cfg->mem_len);
    *out = (lam_eval_options){.batch = s->eval_batch_size,
                              .parts = parts_of(s),
                              .comm = t->exchange.share.comm,
                              .tgt_len = N,
                              .mem_len = M,
                              .ext_len = E > 0 && !s->mem_reset.document ? E : 0,
                              .reset.document = s->mem_reset.document,
                              .max_steps = s->max_eval_steps};
    return LAM_OK;
}

/* The same for the texts there are, the longer of which says what will be read. */
static lam_status fitted_evaluation(lam_eval_options *out, const lam_trainer *t,
                                    const lam_run_options *run)
{
    const lam_tokens *longer = run->valid;
    if (!longer || (run->test && run->test->count > longer->count))
        longer = run->test;
    LAM_TRY(evaluation_of(out, t));
    if (longer)
        lam_eval_fit(out, longer);
    return LAM_OK;
}

static lam_status create_evaluator(lam_running *r)
{
    lam_eval_options options;
    LAM_TRY(fitted_evaluation(&options, r->t, r->opt));
    return lam_evaluator_create(&r->evaluator, r->t->model, &options);
}

/* Is there memory for an evaluation beside the training, when that has its whole memory? */
static lam_status ask(const lam_trainer *t, const lam_eval_options *e)
{
    char what[160];
    size_t bytes, growth;
    LAM_TRY(lam_evaluator_measure(&bytes, t->model, e));
    LAM_TRY(lam_trainer_growth(&growth, t));
    snprintf(what, sizeof what,
             "evaluation beside the training, with eval_batch_size %d, tgt_len %d and mem_len %d",
             e->batch, e->tgt_len, e->mem_len);
    return lam_dev_ask(t->model->dev, what, bytes + growth);
}

lam_status lam_run_check(const lam_trainer *t, const lam_run_options *options)
{
    const lam_tokens *const texts[] = {options->valid, options->test};
    lam_eval_options e;
    for (int i = 0; i < 2; i++)
        if (texts[i]) {
            LAM_TRY(evaluation_of(&e, t));
            if (!e.reset.document && lam_batcher_check(texts[i], e.batch) != LAM_OK)
                return lam_fail(LAM_ERR_ARG,
                                "%s: a smaller eval_batch_size or a longer text is needed",
                                lam_error());
        }
    if (!texts[0] && !texts[1])
        return LAM_OK;
    LAM_TRY(fitted_evaluation(&e, t, options));
    return ask(t, &e);
}

/* One record and one line; `split` is "valid" or "test", `step` that of the weights. */
static lam_status log_evaluation(lam_running *r, const char *split, int64_t step,
                                 const lam_eval_result *e, const char *remark)
{
    const lam_train_state *s = &r->t->state;
    const int64_t averaged = s->averaged - (s->step - step); /* in the mean at that step */
    const lam_metric metric = r->opt->metric;
    const char *const name = lam_metric_name(metric);
    const double loss = lam_eval_mean(e), value = lam_metric_of(metric, loss);
    char key[6][32], tag[3][32], bits[48] = "", mean[64] = "";
    snprintf(key[0], sizeof key[0], "%s_loss", split);
    snprintf(key[1], sizeof key[1], "%s_%s", split, name);
    snprintf(key[2], sizeof key[2], "%s_stderr", split);
    snprintf(key[3], sizeof key[3], "%s_tokens", split);
    snprintf(key[4], sizeof key[4], "%s_bits_per_byte", split);
    snprintf(key[5], sizeof key[5], "%s_bytes", split);
    snprintf(tag[0], sizeof tag[0], "%s/loss", split);
    snprintf(tag[1], sizeof tag[1], "%s/%s", split, name);
    snprintf(tag[2], sizeof tag[2], "%s/bits_per_byte", split);
    if (e->bytes > 0 && e->bytes != (double)e->tokens) /* otherwise it is bpc */
        snprintf(bits, sizeof bits, "  %.4f bits per byte", lam_eval_bits_per_byte(e));
    if (averaged > 0)
        snprintf(mean, sizeof mean, "  mean weights of %lld steps", (long long)averaged);
    const lam_scalar row[] = {{key[0], loss, tag[0]},
                              {key[1], value, tag[1]},
                              {key[2], lam_eval_error(e), NULL},
                              {key[3], (double)e->tokens, NULL},
                              {key[4], lam_eval_bits_per_byte(e), tag[2]},
                              {key[5], e->bytes > 0 ? e->bytes : NAN, NULL},
                              {"elapsed", lam_run_elapsed(r), NULL},
                              {"averaged", (double)averaged, NULL}};
    LAM_TRY(
        lam_runlog_record(r->log, step, row, (int)(sizeof row / sizeof *row) - (averaged <= 0)));
    return lam_runlog_line(r->log, "step %7lld  %s %s %.4f +- %.4f%s%s%s", (long long)step, split,
                           name, value, lam_metric_error(metric, e), bits, mean, remark);
}

static lam_status save_best(lam_running *r)
{
    lam_status status = LAM_OK;
    if (lam_comm_rank(r->comm) == 0)
        status = lam_folder_save(r->best, r->t->model, r->opt->vocab);
    return lam_comm_agree(r->comm, status);
}

/* The loss of the validation text, and what follows from it. */
static lam_status validate(lam_running *r)
{
    lam_train_state *s = &r->t->state;
    lam_eval_result e;
    LAM_TRY(lam_evaluator_run(r->evaluator, &e, r->opt->valid, watch_evaluation, r));
    r->density = e.bytes > 0 ? (double)e.tokens / e.bytes : NAN;
    const double loss = lam_eval_mean(&e);
    const int better = loss < s->best_loss;
    const double even = log((double)r->t->model->cfg.n_token);
    char remark[96] = "";
    if (better && lam_loss_untrained(loss, even))
        snprintf(remark, sizeof remark, "  (best, but a uniform guess has %.4f)",
                 lam_metric_of(r->opt->metric, even));
    else if (better)
        strcpy(remark, "  (best)");
    LAM_TRY(lam_comm_agree(r->comm, log_evaluation(r, "valid", s->step, &e, remark)));
    s->evals_since_best = better ? 0 : s->evals_since_best + 1;
    if (better) {
        LAM_TRY(save_best(r));
        s->best_loss = loss;
        s->best_step = s->step;
    }
    if (s->settings.scheduler == LAM_SCHEDULE_DEV_PERF &&
        lam_plateau_note(&s->plateau, &r->t->schedule, s->settings.decay_rate, s->settings.patience,
                         loss))
        LAM_TRY(lam_runlog_line(r->log, "step %7lld  lr %.3e from now on", (long long)s->step,
                                lam_trainer_lr(r->t)));
    s->eval_step = s->step;
    r->dirty = 1;
    return LAM_OK;
}

lam_status lam_run_evaluate(lam_running *r)
{
    const int64_t averaged = r->t->state.averaged;
    if (!r->evaluator)
        LAM_TRY(lam_comm_agree(r->comm, create_evaluator(r)));
    lam_average_show(r->t->optimizer, averaged);
    const lam_status status = validate(r);
    lam_average_hide(r->t->optimizer, averaged);
    return status;
}

lam_status lam_run_test(lam_running *r, lam_eval_result *out)
{
    const lam_train_state *s = &r->t->state;
    const int best = isfinite(s->best_loss);
    if (best)
        LAM_TRY(lam_comm_agree(r->comm, lam_folder_restore(r->t->model, r->best)));
    else
        lam_average_show(r->t->optimizer, s->averaged);
    if (!r->evaluator)
        LAM_TRY(lam_comm_agree(r->comm, create_evaluator(r)));
    LAM_TRY(lam_evaluator_run(r->evaluator, out, r->opt->test, watch_evaluation, r));
    return log_evaluation(r, "test", best ? s->best_step : s->step, out, "");
}
