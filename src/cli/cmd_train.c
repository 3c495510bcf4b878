/* cmd_train.c -- `lamemo train`: lets a run run, and says how it goes and how it went. */
#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/print_json.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "cli/train_session.h"
#include "core/budget.h"
#include "core/log.h"
#include "data/json_name.h"
#include "io/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The clusters of an adaptive softmax, and that they are not those of the preset. */
static lam_status tell_softmax(const lam_train_session *s)
{
    const lam_config *cfg = &s->cfg;
    const char *why = !s->resumed && !*s->from && lam_shape_cut(cfg, s->args)
                          ? " (the preset's cutoffs are for a larger vocabulary)"
                          : "";
    char list[16 * LAM_MAX_CUTOFFS] = "";
    size_t n = 0;
    for (int i = 0; i < cfg->n_cutoffs; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%d", i > 0 ? "/" : "", cfg->cutoffs[i]);
    if (n > 0)
        return lam_runlog_line(s->log, "softmax: adaptive, cutoffs %s%s", list, why);
    return *why ? lam_runlog_line(s->log, "softmax: full%s", why) : LAM_OK;
}

/* The recipe, and the way to the other one where nobody has chosen. */
static lam_status tell_recipe(const lam_train_session *s)
{
    const lam_settings *t = &s->settings;
    const bool open = !s->resumed && !lam_option_given(s->args, "recipe");
    const char *way = !open ? ""
                      : t->recipe == LAM_RECIPE_FAST
                          ? " (the default; --recipe paper: as published)"
                          : " (chosen by --optim)";
    return lam_runlog_line(
        s->log, "recipe %s: %s, lr %.4g, %s, warm-up of %lld, decay %g, clip %g, dropout %g%s",
        lam_recipe_names[t->recipe], lam_optim_names[t->optim], t->lr,
        lam_schedule_names[t->scheduler], (long long)t->warmup_step, t->weight_decay, t->clip,
        s->cfg.dropout, way);
}

static lam_status introduce(const lam_train_session *s)
{
    char count[32], tokens[32], memory[LAM_DESCRIPTION_MAX], length[LAM_DESCRIPTION_MAX];
    const lam_config *cfg = &s->cfg;
    lam_format_count(count, sizeof count, (int64_t)lam_model_count(s->model));
    lam_format_count(tokens, sizeof tokens, s->corpus->info.tokens[LAM_TRAIN]);
    LAM_TRY(
        lam_runlog_line(s->log,
                        LAM_RUNLOG_FIRST "%s, %d layers, d_model %d, %d heads of %d, d_inner %d, "
                                         "segments of %d, memory of %d: %s parameters",
                        lam_describe_memory(memory, cfg), cfg->n_layer, cfg->d_model, cfg->n_head,
                        cfg->d_head, cfg->d_inner, cfg->tgt_len, cfg->mem_len, count));
    if (*s->from)
        LAM_TRY(lam_runlog_line(s->log, "weights: those of %s", s->o->init_from));
    LAM_TRY(tell_softmax(s));
    LAM_TRY(lam_runlog_line(s->log, "corpus: %s, %s training tokens, vocabulary of %d",
                            s->corpus->info.name, tokens, s->corpus->info.vocab_size));
    LAM_TRY(lam_runlog_line(s->log, "run: %s%s of %d x %d tokens on %s (%s), seed %lld",
                            lam_describe_length(length, &s->settings),
                            lam_settings_timed(&s->settings) ? " in steps" : "",
                            s->settings.batch_size, cfg->tgt_len, s->dev->ops->name,
                            s->dev->ops->summary, (long long)s->settings.seed));
    LAM_TRY(tell_recipe(s));
    if (s->settings.warmup_step > s->settings.max_step)
        lam_log(LAM_LOG_WARN, "a warm-up of %lld steps in a run of %s: the rate stays below %g",
                (long long)s->settings.warmup_step, length, s->settings.lr);
    if (lam_option_given(s->args, "short-mem") && s->settings.short_mem >= cfg->mem_len)
        lam_log(LAM_LOG_WARN, "--short-mem %d is no shorter than the memory, %d: it has no effect",
                s->settings.short_mem, cfg->mem_len);
    lam_train_warn(s->args, &s->settings);
    if (!s->resumed)
        return s->o->resume ? lam_runlog_line(s->log, "nothing to resume: a new run") : LAM_OK;
    if (strcmp(s->then.device, s->dev->ops->name) != 0)
        lam_log(LAM_LOG_WARN, "the run was on device %s: the numbers go on, but not bit for bit",
                s->then.device);
    const lam_train_state *then = &s->trainer->state;
    const int complete = lam_settings_complete(&s->settings, then->step, then->elapsed);
    return lam_runlog_line(s->log, "resumed at step %lld%s%s", (long long)then->step,
                           complete ? ": nothing is left of " : "", complete ? length : "");
}

/* On a terminal the live line, with the ^C in it, makes room. */
static const char *answer_to_stop(void)
{
    static const char clear[] = "\r\033[K";
    static const char text[] =
        "\r\033[Kfinishing the step and saving; Ctrl-C again leaves at once, without saving\n";
    return lam_term_is_tty(stderr) ? text : text + sizeof clear - 1;
}

static int on_stop(void *user)
{
    (void)user;
    return lam_stop_signal() != 0;
}

/* The live line and what it is about. */
typedef struct watcher {
    const lam_train_session *session;
    lam_progress line;
} watcher;

static void on_progress(void *user, const lam_run_progress *p)
{
    watcher *w = user;
    const lam_train_session *s = w->session;
    char left[32], all[32] = "";
    if (!lam_progress_due(&w->line))
        return;
    if (!lam_settings_timed(&s->settings))
        snprintf(all, sizeof all, "/%lld", (long long)p->max_step);
    const lam_metric metric = s->corpus->info.metric;
    lam_format_time(left, sizeof left, p->seconds_left);
    if (p->evaluated >= 0.0)
        lam_progress_show(&w->line, "step %lld%s  evaluating: %.0f %%  %s left", (long long)p->step,
                          all, 100.0 * p->evaluated, left);
    else
        lam_progress_show(&w->line, "step %lld%s  %s %.4f  %.0f tokens/s  %.1f GFLOP/s  %s left",
                          (long long)p->step, all, lam_metric_name(metric),
                          lam_metric_of(metric, p->loss), p->tokens_per_second, p->flops * 1e-9,
                          left);
}

/* What print_text() says; what was not measured is null. */
static lam_status print_json(const lam_train_session *s, const lam_run_result *r)
{
    const lam_metric metric = s->corpus->info.metric;
    const bool tested = r->test.tokens > 0;
    const double test = tested ? lam_eval_mean(&r->test) : NAN;
    json_t *root = json_pack(
        "{s:o, s:I, s:b, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:I}", "folder",
        lam_json_name(s->o->out), "step", (json_int_t)r->step, "timed_out", r->timed_out, "metric",
        lam_metric_name(metric), "valid_loss", lam_json_number(r->best_loss), "valid",
        lam_json_number(lam_metric_of(metric, r->best_loss)), "best_step", (json_int_t)r->best_step,
        "test_loss", lam_json_number(test), "test", lam_json_number(lam_metric_of(metric, test)),
        "test_error", lam_json_number(tested ? lam_metric_error(metric, &r->test) : NAN),
        "test_tokens", (json_int_t)r->test.tokens);
    return lam_print_json(root, JSON_COMPACT);
}

static void print_text(const lam_train_session *s, const lam_run_result *r)
{
    const lam_metric metric = s->corpus->info.metric;
    char tokens[32];
    if (isfinite(r->best_loss))
        lam_print("best valid %s %.4f at step %lld: %s/best\n", lam_metric_name(metric),
                  lam_metric_of(metric, r->best_loss), (long long)r->best_step, s->o->out);
    if (r->test.tokens > 0)
        lam_print("test %s %.4f +- %.4f, %s tokens\n", lam_metric_name(metric),
                  lam_metric_of(metric, lam_eval_mean(&r->test)),
                  lam_metric_error(metric, &r->test),
                  lam_format_count(tokens, sizeof tokens, r->test.tokens));
    if (!isfinite(r->best_loss))
        lam_print("%lld steps: %s/last\n", (long long)r->step, s->o->out);
}

static lam_status report(const lam_train_session *s, const lam_run_result *r)
{
    char length[LAM_DESCRIPTION_MAX];
    if (r->timed_out)
        LAM_TRY(lam_runlog_line(s->log, "time is up at step %lld of a run of %s; --resume goes on",
                                (long long)r->step, lam_describe_length(length, &s->settings)));
    if (s->o->json)
        return print_json(s, r);
    if (!s->args->quiet)
        print_text(s, r);
    return LAM_OK;
}

static lam_status train(const lam_train_session *s)
{
    lam_run_result result = {0};
    watcher w = {.session = s};
    const lam_run_options options = lam_train_run_options(s);
    const lam_run_watch watch = {&w, on_stop, on_progress};
    LAM_TRY(introduce(s));
    lam_progress_open(&w.line, s->args->quiet || !lam_term_is_tty(stderr));
    lam_stop_answer(s->args->quiet ? NULL : answer_to_stop());
    const lam_status status = lam_run(&result, s->trainer, s->log, &options, &watch);
    lam_stop_answer(NULL);
    lam_progress_close(&w.line);
    if (status == LAM_ERR_INTERRUPTED)
        (void)lam_runlog_line(s->log, "%s; --resume goes on", lam_error());
    LAM_TRY(status);
    return report(s, &result);
}

static void tell_memory(void)
{
    struct rusage used;
    char text[32];
    if (getrusage(RUSAGE_SELF, &used) == 0)
        lam_log(LAM_LOG_DEBUG, "memory: %s at most",
                lam_format_size(text, sizeof text, 1024.0 * (double)used.ru_maxrss));
}

static lam_status run(const lam_args *args)
{
    lam_train_session s;
    lam_status status = lam_train_open(&s, args);
    if (status == LAM_OK)
        status = train(&s);
    lam_train_close(&s);
    tell_memory();
    return status;
}

const lam_command lam_command_train = {
    .name = "train",
    .summary = "train a model on a corpus",
    .description =
        "Trains a model on a corpus folder and keeps the run in another folder: last, a checkpoint "
        "from which --resume continues bit for bit; best, the model with the lowest validation "
        "loss; "
        "metrics.jsonl, train.log and events for TensorBoard. A preset gives sizes and batches; "
        "options change single values, and most runs need none beyond the first two groups. The "
        "option names of the Transformer-XL and LaMemo scripts (--n_layer, --mem_len, --attn_type, "
        "...) are accepted. Ctrl-C or SIGTERM finishes the step, saves and leaves; Ctrl-C again "
        "leaves at once, without saving.",
    .options = lam_train_table,
    .options_size = sizeof(lam_train_options),
    .examples =
        "lamemo train --data corpus --preset tiny --memory lamemo --out run\n"
        "# go on after an interruption\n"
        "lamemo train --out run --resume\n"
        "# teach the model in the box a text of your own\n"
        "lamemo train --data corpus --init-from wiki11m --tgt-len 128 --mem-len 128 --recipe fast "
        "--max-step 300 --out tuned\n"
        "# Transformer-XL with other lengths, for ten minutes\n"
        "lamemo train --data corpus --memory xl --tgt_len 128 --mem_len 256 --max-time 600 "
        "--out xl",
    .run = run,
};
