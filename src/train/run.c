/* run.c -- see run.h.
 *
 * The loop asks "is something due at this step?" before it steps, never after: a run that was stopped
 * between a step and its evaluation makes up for it when it is resumed, as if nothing had
 * happened. */
#include "train/run_int.h"

#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"
#include "model/macs.h"
#include "train/average.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double lam_run_elapsed(const lam_running *r)
{
    return r->before + lam_clock() - r->began;
}

static const lam_settings *settings(const lam_running *r)
{
    return &r->t->state.settings;
}

/* Of a whole step, when the memory is full. */
static double step_flops(const lam_running *r)
{
    lam_config cfg = r->t->model->cfg;
    cfg.mem_len = lam_trainer_mem_len(r->t);
    return 2.0 * lam_macs_step(&cfg, settings(r)->batch_size);
}

int lam_run_stopping(const lam_running *r)
{
    return r->watch && r->watch->stop && r->watch->stop(r->watch->user);
}

/* What decides when to stop is the same on every rank: it is looked at together, before and after every step. */
static lam_status look(lam_running *r)
{
    unsigned char stop = lam_run_stopping(r) != 0;
    r->now = lam_clock() - r->began;
    LAM_TRY(lam_comm_any(r->comm, &stop, 1));
    LAM_TRY(lam_comm_broadcast(r->comm, &r->now, sizeof r->now, 0));
    r->stop |= stop;
    return LAM_OK;
}

/* Seconds until the limit on this call, or the end of a schedule that follows the clock, `here` seconds after its
 * beginning. */
static double time_left(const lam_running *r, double here)
{
    const double call = settings(r)->max_time, schedule = settings(r)->scheduler_time;
    return fmin(call > 0.0 ? call - here : INFINITY,
                schedule > 0.0 ? schedule - (r->before + here) : INFINITY);
}

static int out_of_time(const lam_running *r)
{
    return time_left(r, r->now) <= 0.0;
}

/* Have as many evaluations been in vain as may be? */
static int stopped_early(const lam_running *r)
{
    const int most = settings(r)->early_stop;
    return most > 0 && r->t->state.evals_since_best >= most;
}

static int complete(const lam_running *r)
{
    return stopped_early(r) ||
           lam_settings_complete(settings(r), r->t->state.step, r->before + r->now);
}

static int is_multiple(int64_t step, int64_t of)
{
    return of > 0 && step > 0 && step % of == 0;
}

/* ---- reporting ---- */

void lam_run_show(const lam_running *r, double evaluated)
{
    if (!r->watch || !r->watch->progress)
        return;
    const lam_train_state *s = &r->t->state;
    const double steps = r->step_time * (double)(settings(r)->max_step - s->step);
    const double left = fmin(steps, time_left(r, lam_clock() - r->began));
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

/* ---- saving ---- */

static lam_status save_last(lam_running *r)
{
    lam_train_state *s = &r->t->state;
    if (!r->dirty)
        return LAM_OK;
    s->elapsed = lam_run_elapsed(r);
    LAM_TRY(lam_runlog_sync(r->log, &s->marks));
    LAM_TRY(lam_trainer_save(r->t, r->last, r->opt->vocab));
    r->saved = s->step;
    r->dirty = 0;
    return LAM_OK;
}

/* The step of the checkpoint on the disk; -1: none.  Also where the launcher, which ends all ranks when one is gone, has
 * told this one to stop, so that reading would. */
static int64_t step_on_disk(const lam_running *r)
{
    int (*const stop)(void) = lam_read_stop;
    lam_train_state state = {0};
    lam_read_stop = NULL;
    const int64_t step = lam_checkpoint_peek(r->last, &state) == LAM_OK ? state.step : -1;
    lam_read_stop = stop;
    lam_train_state_free(&state);
    return step;
}

/* Adds to an error where the run can go on from.  Rank 0 may have put a checkpoint in its place and ended before this
 * rank heard of it: in a broken group what counts is what is on the disk. */
static lam_status explain(const lam_running *r, lam_status status)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", lam_error());
    const int64_t there = lam_comm_broken(r->comm) ? step_on_disk(r) : -1;
    const int64_t saved = there >= 0 ? there : r->saved;
    if (lam_comm_broken(r->comm) || (status == LAM_ERR_IO && lam_comm_size(r->comm) > 1))
        (void)lam_fail(status, "after step %lld: %s", (long long)r->t->state.step, text);
    if (saved < 0)
        return lam_fail(status, "%s; there is no checkpoint yet", lam_error());
    return lam_fail(status, "%s; the last good checkpoint is %s, step %lld", lam_error(), r->last,
                    (long long)saved);
}

/* For whoever reads the records: nothing follows. */
static lam_status note_end(lam_running *r, const char *how)
{
    const lam_scalar row[] = {{how, 1.0, NULL}, {"elapsed", lam_run_elapsed(r), NULL}};
    return lam_runlog_record(r->log, r->t->state.step, row, sizeof row / sizeof *row);
}

/* A number was not finite. */
static void note_divergence(lam_running *r)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", lam_error());
    if (note_end(r, "diverged") != LAM_OK)
        (void)lam_fail(LAM_ERR_NUMERIC, "%s", text); /* this is what went wrong first */
}

/* ---- steps ---- */

static int finished(const lam_running *r)
{
    return complete(r) || out_of_time(r);
}

static int evaluation_due(const lam_running *r, int end)
{
    const lam_train_state *s = &r->t->state;
    return r->opt->valid && s->step > 0 && s->eval_step != s->step &&
           (is_multiple(s->step, settings(r)->eval_interval) || end);
}

static int saving_due(const lam_running *r, int end)
{
    const int64_t step = r->t->state.step;
    return end || is_multiple(step, settings(r)->save_interval) ||
           is_multiple(step, settings(r)->eval_interval);
}

/* Must the numbers of step `step` be seen?  Where that makes the device wait, only when they are
 * logged, or when what follows is saved. */
static int must_read(const lam_running *r, int64_t step)
{
    return r->on_host || is_multiple(step, settings(r)->log_interval) ||
           is_multiple(step, settings(r)->save_interval) ||
           is_multiple(step, settings(r)->sample_interval) ||
           is_multiple(step, settings(r)->eval_interval) || step >= settings(r)->max_step ||
           r->stop || out_of_time(r);
}

/* The last step too: a short run has something to say. */
static int logging_due(const lam_running *r)
{
    return is_multiple(r->t->state.step, settings(r)->log_interval) || complete(r);
}

static lam_status log_step(lam_running *r)
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
                              {"elapsed", lam_run_elapsed(r), NULL},
                              {"skipped", (double)r->skipped, NULL}};
    const int first = !lam_stack_has_aux(r->t->stack); /* the memory has no loss of its own */
    const int last = (int)(sizeof row / sizeof *row) - (r->skipped == 0);
    LAM_TRY(lam_runlog_record(r->log, s->step, row + first, last - first));
    if (r->skipped > 0)
        LAM_TRY(lam_runlog_line(
            r->log,
            "step %7lld  %lld steps since the last line were skipped: their gradient is not finite",
            (long long)s->step, (long long)r->skipped));
    LAM_TRY(
        lam_runlog_line(r->log,
                        "step %7lld  epoch %2lld  %s %.4f  lr %.3e  norm %-5.3g  %6.0f tokens/s  "
                        "%5.1f GFLOP/s",
                        (long long)s->step, epoch, name, value, r->lr, r->norm, rate, gflops));
    s->log_nll = s->log_aux = 0.0;
    s->log_tokens = 0;
    r->spent = 0.0;
    r->tokens = 0;
    r->skipped = 0;
    return LAM_OK;
}

static void take_sample(const lam_running *r)
{
    const lam_train_state *s = &r->t->state;
    lam_average_show(r->t->optimizer, s->averaged);
    r->watch->sample(r->watch->user, s->step);
    lam_average_hide(r->t->optimizer, s->averaged);
}

static lam_status step(lam_running *r)
{
    lam_train_state *s = &r->t->state;
    lam_step_report report = {0};
    LAM_TRY(look(r));
    const int read = must_read(r, s->step + 1);
    const double started = lam_clock();
    if (settings(r)->scheduler_time > 0.0)
        r->t->progress = (r->before + r->now) / settings(r)->scheduler_time;
    LAM_TRY(lam_trainer_step(r->t, read ? &report : NULL));
    const double took = lam_clock() - started;
    r->dirty = 1;
    r->checked = read;
    r->spent += took;
    r->stepped += took;
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
    lam_run_show(r, -1.0);
    LAM_TRY(look(r));
    if (read && logging_due(r))
        LAM_TRY(lam_comm_agree(r->comm, log_step(r)));
    if (is_multiple(s->step, settings(r)->sample_interval) && r->watch && r->watch->sample)
        take_sample(r);
    return LAM_OK;
}

/* After a signal: all that is not on disk yet, and the message. */
static lam_status leave(lam_running *r)
{
    LAM_TRY(save_last(r));
    return lam_fail(LAM_ERR_INTERRUPTED, "stopped at step %lld, saved in %s",
                    (long long)r->t->state.step, r->last);
}

/* What is due at this step, in this order: evaluation, best/, last/; there is never a best/ without last/.
 * *end: nothing follows. */
static lam_status between_steps(lam_running *r, int *end)
{
    *end = finished(r);
    if (r->stop && (r->checked || r->t->state.step == 0))
        return leave(r);
    if (!r->checked) { /* one more step, read back: what is saved must be good */
        *end = 0;
        return LAM_OK;
    }
    if (evaluation_due(r, *end)) {
        if (r->saved < 0) /* an evaluation takes memory and time: it must not cost all there is */
            LAM_TRY(save_last(r));
        const lam_status status = lam_run_evaluate(r);
        if (status == LAM_ERR_INTERRUPTED)
            return leave(r); /* without the evaluation: resuming begins with it */
        LAM_TRY(status);
        if (!*end && stopped_early(r)) {
            *end = 1;
            LAM_TRY(lam_runlog_line(r->log,
                                    "step %7lld  stopped early: no lower loss in %d evaluations",
                                    (long long)r->t->state.step, settings(r)->early_stop));
        }
    }
    return saving_due(r, *end) ? save_last(r) : LAM_OK;
}

static lam_status loop(lam_running *r)
{
    LAM_TRY(look(r));
    for (int end = 0;;) {
        LAM_TRY(between_steps(r, &end));
        if (end)
            return LAM_OK;
        LAM_TRY(step(r));
    }
}

/* Where the time of each rank went: what it computed, how long it waited for the last one, and what it sent after
 * that; what it sent while it computed is told beside. */
static lam_status tell_times(const lam_running *r)
{
    enum { N = 4 };
    const lam_exchange *x = &r->t->exchange;
    const int ranks = lam_comm_size(r->comm);
    const double mine[N] = {r->stepped - x->waited - x->took, x->waited, x->took,
                            lam_exchange_hidden(x)};
    if (ranks == 1 && !x->nccl)
        return LAM_OK;
    double(*const all)[N] = calloc((size_t)ranks, sizeof *all);
    if (!all)
        return lam_fail(LAM_ERR_MEMORY, "times of %d ranks: no memory", ranks);
    const lam_status status = lam_comm_gather(r->comm, all, mine, sizeof mine);
    for (int i = 0; i < ranks && status == LAM_OK; i++)
        lam_log(LAM_LOG_DEBUG,
                "rank %d on %s: compute %.3f s, wait %.3f s, exchange %.3f s; beside the backward "
                "pass %.3f s",
                i, lam_comm_host(r->comm, i), all[i][0], all[i][1], all[i][2], all[i][3]);
    free(all);
    return status;
}

lam_status lam_run(lam_run_result *out, lam_trainer *t, lam_runlog *log,
                   const lam_run_options *options, const lam_run_watch *watch)
{
    lam_train_state *s = &t->state;
    lam_running r = {.t = t,
                     .log = log,
                     .opt = options,
                     .watch = watch,
                     .comm = t->exchange.share.comm,
                     .on_host = !t->model->dev->own_memory,
                     .saved = s->step > 0 ? s->step : -1,
                     .checked = 1,
                     .density = NAN,
                     .dirty = s->step == 0,
                     .began = lam_clock(),
                     .before = s->elapsed,
                     .step_tokens = (double)s->settings.batch_size * t->model->cfg.tgt_len};
    LAM_TRY(lam_path_join(r.last, sizeof r.last, options->dir, "last"));
    LAM_TRY(lam_path_join(r.best, sizeof r.best, options->dir, "best"));
    if (lam_comm_rank(r.comm) == 0)
        LAM_TRY(lam_dir_recover(r.best)); /* what a crash left of an exchange of names */
    lam_eval_result test = {0};
    lam_status status = loop(&r);
    const int timed_out = !complete(&r);
    if (status == LAM_OK)
        status = tell_times(&r);
    if (status == LAM_OK && options->test) {
        status = lam_run_test(&r, &test);
        if (status == LAM_ERR_INTERRUPTED)
            status = leave(&r); /* last/ is there; resuming begins with the test */
    } else if (status == LAM_OK)
        status = note_end(&r, "ended"); /* a test's record would say so */
    if (status == LAM_ERR_NUMERIC)
        note_divergence(&r);
    if (status != LAM_OK && status != LAM_ERR_INTERRUPTED)
        status = explain(&r, status);
    lam_evaluator_free(r.evaluator);
    *out = (lam_run_result){.step = s->step,
                            .timed_out = timed_out,
                            .best_loss = s->best_loss,
                            .best_bits = s->best_loss / M_LN2 * r.density,
                            .best_step = s->best_step,
                            .test = test};
    return status;
}
