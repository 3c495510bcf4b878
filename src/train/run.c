/* run.c -- see run.h.
 *
 * The loop asks "is something due at this step?" before it steps, never after: a run that was stopped
 * between a step and its evaluation makes up for it when it is resumed, as if nothing had
 * happened. */
#include "train/run.h"

#include "core/file.h"
#include "model/folder.h"
#include "model/macs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const double LN2 = 0.69314718055994530942;

typedef struct run {
    lam_trainer *t;
    lam_runlog *log;
    const lam_run_options *opt;
    const lam_run_watch *watch;
    lam_evaluator *evaluator;
    char last[PATH_MAX], best[PATH_MAX];
    int on_host;        /* reading a number back costs nothing */
    int64_t saved;      /* step of last/; -1: there is none */
    int dirty;          /* last/ is not what is here */
    int checked;        /* the last step was seen to be finite */
    double began;       /* clock when this call began */
    double before;      /* seconds of earlier calls */
    double step_tokens; /* of a whole step */
    double spent;       /* seconds in steps since the last logged one */
    int64_t tokens;     /* and tokens */
    double step_time;   /* seconds per step, smoothed */
    double norm, lr;    /* of the last step read back */
    int64_t skipped;    /* steps since the last logged one whose gradient was not finite */
} run;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double lam_metric_of(lam_metric metric, double loss)
{
    return metric == LAM_BPC ? loss / LN2 : exp(loss);
}

/* bpc is the loss in other units; ppl = exp(loss) has its own slope. */
double lam_metric_error(lam_metric metric, const lam_eval_result *r)
{
    const double slope = metric == LAM_BPC ? 1.0 / LN2 : exp(lam_eval_mean(r));
    return slope * lam_eval_error(r);
}

static const lam_settings *settings(const run *r)
{
    return &r->t->state.settings;
}

/* Of a whole step, when the memory is full. */
static double step_flops(const run *r)
{
    lam_config cfg = r->t->model->cfg;
    cfg.mem_len = lam_trainer_mem_len(r->t);
    return 2.0 * lam_macs_step(&cfg, settings(r)->batch_size);
}

static int stopping(const run *r)
{
    return r->watch && r->watch->stop && r->watch->stop(r->watch->user);
}

/* Seconds until a limit on this call, or the end of a schedule that follows the clock. */
static double time_left(const run *r)
{
    const lam_settings *s = settings(r);
    const double here = now() - r->began;
    const double call = s->max_time > 0.0 ? s->max_time - here : INFINITY;
    const double all = s->scheduler_time > 0.0 ? s->scheduler_time - r->before - here : INFINITY;
    return fmin(call, all);
}

static int out_of_time(const run *r)
{
    return time_left(r) <= 0.0;
}

static int is_multiple(int64_t step, int64_t of)
{
    return of > 0 && step > 0 && step % of == 0;
}

/* ---- saving ---- */

static lam_status save_last(run *r)
{
    lam_train_state *s = &r->t->state;
    if (!r->dirty)
        return LAM_OK;
    s->elapsed = r->before + now() - r->began;
    LAM_TRY(lam_runlog_sync(r->log, &s->marks));
    LAM_TRY(lam_trainer_save(r->t, r->last, r->opt->vocab));
    r->saved = s->step;
    r->dirty = 0;
    return LAM_OK;
}

/* Adds to an error where the run can go on from. */
static lam_status explain(const run *r, lam_status status)
{
    if (r->saved < 0)
        return lam_fail(status, "%s; there is no checkpoint yet", lam_error());
    return lam_fail(status, "%s; the last good checkpoint is %s, step %lld", lam_error(), r->last,
                    (long long)r->saved);
}

/* For whoever reads the records: nothing follows because a number was not finite. */
static void note_divergence(run *r)
{
    const lam_scalar row[] = {{"diverged", 1.0, NULL},
                              {"elapsed", r->before + now() - r->began, NULL}};
    char text[1024];
    snprintf(text, sizeof text, "%s", lam_error());
    if (lam_runlog_record(r->log, r->t->state.step, row, sizeof row / sizeof *row) != LAM_OK)
        (void)lam_fail(LAM_ERR_NUMERIC, "%s", text); /* this is what went wrong first */
}

/* ---- evaluation ---- */

static void show(const run *r, double evaluated)
{
    if (!r->watch || !r->watch->progress)
        return;
    const lam_train_state *s = &r->t->state;
    const double steps = r->step_time * (double)(settings(r)->max_step - s->step);
    const double left = fmin(steps, time_left(r));
    r->watch->progress(
        r->watch->user,
        &(lam_run_progress){.step = s->step,
                            .max_step = settings(r)->max_step,
                            .loss = s->log_tokens > 0 ? s->log_nll / (double)s->log_tokens : NAN,
                            .tokens_per_second =
                                r->step_time > 0.0 ? r->step_tokens / r->step_time : 0.0,
                            .flops = r->step_time > 0.0 ? step_flops(r) / r->step_time : 0.0,
                            .seconds_left = left,
                            .evaluated = evaluated});
}

static int watch_evaluation(void *user, const lam_eval_result *so_far, int64_t total)
{
    run *r = user;
    show(r, (double)so_far->tokens / (double)total);
    return stopping(r);
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
                              .tgt_len = N,
                              .mem_len = M,
                              .ext_len = E > 0 ? E : 0,
                              .max_steps = s->max_eval_steps};
    return LAM_OK;
}

static lam_status create_evaluator(run *r)
{
    lam_eval_options options;
    LAM_TRY(evaluation_of(&options, r->t));
    return lam_evaluator_create(&r->evaluator, r->t->model, &options);
}

lam_status lam_run_check(const lam_trainer *t, const lam_run_options *options)
{
    const lam_tokens *const texts[] = {options->valid, options->test};
    lam_eval_options e;
    for (int i = 0; i < 2; i++)
        if (texts[i]) {
            LAM_TRY(evaluation_of(&e, t));
            LAM_TRY(lam_batcher_check(texts[i], e.batch));
        }
    return LAM_OK;
}

/* One record and one line; `split` is "valid" or "test". */
static lam_status log_evaluation(run *r, const char *split, int64_t step, const lam_eval_result *e,
                                 const char *remark)
{
    const lam_metric metric = r->opt->metric;
    const char *const name = lam_metric_name(metric);
    const double loss = lam_eval_mean(e), value = lam_metric_of(metric, loss);
    char key[4][32], tag[2][32];
    snprintf(key[0], sizeof key[0], "%s_loss", split);
    snprintf(key[1], sizeof key[1], "%s_%s", split, name);
    snprintf(key[2], sizeof key[2], "%s_stderr", split);
    snprintf(key[3], sizeof key[3], "%s_tokens", split);
    snprintf(tag[0], sizeof tag[0], "%s/loss", split);
    snprintf(tag[1], sizeof tag[1], "%s/%s", split, name);
    const lam_scalar row[] = {{key[0], loss, tag[0]},
                              {key[1], value, tag[1]},
                              {key[2], lam_eval_error(e), NULL},
                              {key[3], (double)e->tokens, NULL},
                              {"elapsed", r->before + now() - r->began, NULL}};
    LAM_TRY(lam_runlog_record(r->log, step, row, sizeof row / sizeof *row));
    return lam_runlog_line(r->log, "step %7lld  %s %s %.4f +- %.4f%s", (long long)step, split, name,
                           value, lam_metric_error(metric, e), remark);
}

static lam_status evaluate(run *r)
{
    lam_train_state *s = &r->t->state;
    lam_eval_result e;
    if (!r->evaluator)
        LAM_TRY(create_evaluator(r));
    LAM_TRY(lam_evaluator_run(r->evaluator, &e, r->opt->valid, watch_evaluation, r));
    const double loss = lam_eval_mean(&e);
    const int better = loss < s->best_loss;
    LAM_TRY(log_evaluation(r, "valid", s->step, &e, better ? "  (best)" : ""));
    if (better) {
        LAM_TRY(lam_folder_save(r->best, r->t->model, r->opt->vocab));
        s->best_loss = loss;
        s->best_step = s->step;
    }
    if (settings(r)->scheduler == LAM_SCHEDULE_DEV_PERF &&
        lam_plateau_note(&s->plateau, &r->t->schedule, settings(r)->decay_rate,
                         settings(r)->patience, loss))
        LAM_TRY(lam_runlog_line(r->log, "step %7lld  lr %.3e from now on", (long long)s->step,
                                lam_trainer_lr(r->t)));
    s->eval_step = s->step;
    r->dirty = 1;
    return LAM_OK;
}

/* ---- steps ---- */

static int finished(const run *r)
{
    return r->t->state.step >= settings(r)->max_step || out_of_time(r);
}

static int evaluation_due(const run *r, int end)
{
    const lam_train_state *s = &r->t->state;
    return r->opt->valid && s->step > 0 && s->eval_step != s->step &&
           (is_multiple(s->step, settings(r)->eval_interval) || end);
}

static int saving_due(const run *r, int end)
{
    const int64_t step = r->t->state.step;
    return end || is_multiple(step, settings(r)->save_interval) ||
           is_multiple(step, settings(r)->eval_interval);
}

/* Must the numbers of step `step` be seen?  Where that makes the device wait, only when they are
 * logged, or when what follows is saved. */
static int must_read(const run *r, int64_t step)
{
    return r->on_host || is_multiple(step, settings(r)->log_interval) ||
           is_multiple(step, settings(r)->save_interval) ||
           is_multiple(step, settings(r)->eval_interval) || step >= settings(r)->max_step ||
           stopping(r) || out_of_time(r);
}

static lam_status log_step(run *r)
{
    lam_train_state *s = &r->t->state;
    const char *const name = lam_metric_name(r->opt->metric);
    const double loss = s->log_nll / (double)s->log_tokens;
    const double value = lam_metric_of(r->opt->metric, loss);
    const double rate = r->spent > 0.0 ? (double)r->tokens / r->spent : 0.0;
    const double gflops = rate / r->step_tokens * step_flops(r) * 1e-9;
    const long long epoch = (long long)s->position.epoch + 1;
    char tag[32];
    snprintf(tag, sizeof tag, "train/%s", name);
    const lam_scalar row[] = {{"aux_loss", s->log_aux / (double)s->log_tokens, "train/aux_loss"},
                              {"epoch", (double)epoch, NULL},
                              {"loss", loss, "train/loss"},
                              {name, value, tag},
                              {"lr", r->lr, "train/lr"},
                              {"grad_norm", r->norm, "train/grad_norm"},
                              {"tokens_per_second", rate, "speed/tokens_per_second"},
                              {"gflops", gflops, "speed/gflops"},
                              {"elapsed", r->before + now() - r->began, NULL},
                              {"skipped", (double)r->skipped, NULL}};
    const int first = !lam_stack_has_aux(r->t->stack); /* the memory has no loss of its own */
    const int last = (int)(sizeof row / sizeof *row) - (r->skipped == 0);
    LAM_TRY(lam_runlog_record(r->log, s->step, row + first, last - first));
    if (r->skipped > 0)
        LAM_TRY(lam_runlog_line(
            r->log,
            "step %7lld  %lld steps since the last line were skipped: their gradient is not finite",
            (long long)s->step, (long long)r->skipped));
    LAM_TRY(lam_runlog_line(r->log,
                            "step %7lld  epoch %lld  %s %.4f  lr %.3e  norm %.3g  %.0f tokens/s  "
                            "%.1f GFLOP/s",
                            (long long)s->step, epoch, name, value, r->lr, r->norm, rate, gflops));
    s->log_nll = s->log_aux = 0.0;
    s->log_tokens = 0;
    r->spent = 0.0;
    r->tokens = 0;
    r->skipped = 0;
    return LAM_OK;
}

static lam_status step(run *r)
{
    lam_train_state *s = &r->t->state;
    lam_step_report report = {0};
    const int read = must_read(r, s->step + 1);
    const double started = now();
    if (settings(r)->scheduler_time > 0.0)
        r->t->part = (r->before + started - r->began) / settings(r)->scheduler_time;
    LAM_TRY(lam_trainer_step(r->t, read ? &report : NULL));
    const double took = now() - started;
    r->dirty = 1;
    r->checked = read;
    r->spent += took;
    r->step_time = r->step_time > 0.0 ? 0.95 * r->step_time + 0.05 * took : took;
    s->position = *lam_batcher_where(r->t->batcher);
    if (read) {
        s->log_nll += report.nll;
        s->log_aux += report.aux;
        s->log_tokens += report.tokens;
        r->skipped += report.skipped;
        r->norm = report.grad_norm;
        r->lr = report.lr;
    }
    r->tokens += r->t->tokens;
    show(r, -1.0);
    return is_multiple(s->step, settings(r)->log_interval) ? log_step(r) : LAM_OK;
}

/* After a signal: all that is not on disk yet, and the message. */
static lam_status leave(run *r)
{
    LAM_TRY(save_last(r));
    return lam_fail(LAM_ERR_INTERRUPTED, "stopped at step %lld, saved in %s",
                    (long long)r->t->state.step, r->last);
}

/* What is due at this step, in this order: evaluation, best/, last/.  *end: nothing follows. */
static lam_status between_steps(run *r, int *end)
{
    *end = finished(r);
    if (stopping(r) && (r->checked || r->t->state.step == 0))
        return leave(r);
    if (!r->checked) { /* one more step, read back: what is saved must be good */
        *end = 0;
        return LAM_OK;
    }
    if (evaluation_due(r, *end)) {
        const lam_status status = evaluate(r);
        if (status == LAM_ERR_INTERRUPTED)
            return leave(r); /* without the evaluation: resuming begins with it */
        LAM_TRY(status);
    }
    return saving_due(r, *end) ? save_last(r) : LAM_OK;
}

static lam_status loop(run *r)
{
    for (int end = 0;;) {
        LAM_TRY(between_steps(r, &end));
        if (end)
            return LAM_OK;
        LAM_TRY(step(r));
    }
}

/* The trainer's model becomes the best one: nothing is trained after this. */
static lam_status test_best(run *r, lam_eval_result *out)
{
    const lam_train_state *s = &r->t->state;
    const int best = isfinite(s->best_loss);
    if (best)
        LAM_TRY(lam_folder_restore(r->t->model, r->best));
    if (!r->evaluator)
        LAM_TRY(create_evaluator(r));
    LAM_TRY(lam_evaluator_run(r->evaluator, out, r->opt->test, watch_evaluation, r));
    return log_evaluation(r, "test", best ? s->best_step : s->step, out, "");
}

lam_status lam_run(lam_run_result *out, lam_trainer *t, lam_runlog *log,
                   const lam_run_options *options, const lam_run_watch *watch)
{
    lam_train_state *s = &t->state;
    run r = {.t = t,
             .log = log,
             .opt = options,
             .watch = watch,
             .on_host = strcmp(t->model->dev->ops->name, "cuda") != 0,
             .saved = s->step > 0 ? s->step : -1,
             .checked = 1,
             .dirty = s->step == 0,
             .began = now(),
             .before = s->elapsed,
             .step_tokens = (double)s->settings.batch_size * t->model->cfg.tgt_len};
    LAM_TRY(lam_path_join(r.last, sizeof r.last, options->dir, "last"));
    LAM_TRY(lam_path_join(r.best, sizeof r.best, options->dir, "best"));
    lam_eval_result test = {0};
    lam_status status = loop(&r);
    if (status == LAM_OK && options->test) {
        status = test_best(&r, &test);
        if (status == LAM_ERR_INTERRUPTED)
            status = leave(&r); /* last/ is there; resuming begins with the test */
    }
    if (status == LAM_ERR_NUMERIC)
        note_divergence(&r);
    if (status != LAM_OK && status != LAM_ERR_INTERRUPTED)
        status = explain(&r, status);
    lam_evaluator_free(r.evaluator);
    *out = (lam_run_result){.step = s->step,
                            .timed_out = s->step < s->settings.max_step,
                            .best_loss = s->best_loss,
                            .best_step = s->best_step,
                            .test = test};
    return status;
}
