/* cmd_train.c -- `lamemo train`: opens what a run needs, lets it run, says how it went. */
#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/print_json.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "cli/train_options.h"
#include "core/file.h"
#include "core/log.h"
#include "data/json_name.h"
#include "data/utf8.h"
#include "io/json.h"
#include "model/folder.h"
#include "train/run.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct session {
    const lam_train_options *o;
    const lam_args *args;
    char last[PATH_MAX];
    int resumed;
    lam_train_state then; /* of the checkpoint, when resumed */
    char from[PATH_MAX];  /* the model that a new run begins with, if any */
    char data[PATH_MAX];
    lam_config cfg;
    lam_settings settings;
    lam_corpus *corpus;
    char *vocab;
    lam_dev *dev;
    lam_model *model;
    lam_trainer *trainer;
    lam_runlog *log;
    lam_progress line;
} session;

/* ---- opening ---- */

static int has(const char *dir, const char *name)
{
    char path[PATH_MAX];
    return lam_path_join(path, sizeof path, dir, name) == LAM_OK && lam_path_exists(path);
}

/* Adds to what is wrong with the checkpoint what is left of the run. */
static lam_status cannot_go_on(const session *s, lam_status status)
{
    if (status != LAM_ERR_FORMAT && status != LAM_ERR_IO)
        return status;
    const char *const so = status == LAM_ERR_IO ? "without it the run" : "the run";
    if (!has(s->o->out, "best"))
        return lam_fail(status, "%s; %s cannot go on: --overwrite begins anew", lam_error(), so);
    return lam_fail(status,
                    "%s; %s cannot go on, but another one can begin with its best model: "
                    "--init-from %s/best",
                    lam_error(), so, s->o->out);
}

/* Is there a run to go on with, and may we? */
static lam_status look_at_folder(session *s)
{
    const lam_train_options *o = s->o;
    if (!o->out)
        return lam_fail(LAM_ERR_ARG, "--out is missing: where is the run to be kept?");
    if (o->resume && o->overwrite)
        return lam_fail(LAM_ERR_ARG, "--resume and --overwrite contradict each other");
    LAM_TRY(lam_path_join(s->last, sizeof s->last, o->out, "last"));
    const int checkpoint = has(o->out, "last") || has(o->out, "last.old");
    const int run = checkpoint || has(o->out, "best") || has(o->out, "metrics.jsonl");
    if (run && !o->resume && !o->overwrite)
        return lam_fail(LAM_ERR_ARG,
                        "%s: there is a run already; --resume goes on with it, "
                        "--overwrite throws it away",
                        o->out);
    if (o->resume && !checkpoint && has(o->out, "best"))
        return lam_fail(LAM_ERR_ARG,
                        "%s: there is best, but no last to go on from; another run can begin with "
                        "it: --init-from %s/best",
                        o->out, o->out);
    if (!o->resume || !checkpoint)
        return LAM_OK;
    LAM_TRY(lam_runlog_open(&s->log, o->out)); /* whoever trains here may be exchanging names */
    LAM_TRY(cannot_go_on(s, lam_checkpoint_peek(s->last, &s->then)));
    s->resumed = 1;
    return LAM_OK;
}

static lam_status open_corpus(session *s)
{
    char path[PATH_MAX];
    size_t size;
    const char *dir = s->o->data ? s->o->data : s->resumed ? s->then.corpus.path : "";
    if (*dir == '\0')
        return lam_fail(LAM_ERR_ARG, "--data is missing: which corpus? (lamemo prepare makes one)");
    const lam_status status = lam_corpus_open(&s->corpus, dir, LAM_CORPUS_VERIFY);
    if (status != LAM_OK && !s->o->data)
        return lam_fail(status, "%s; if the run's corpus is elsewhere now, --data says where",
                        lam_error());
    LAM_TRY(status);
    if (!realpath(dir, s->data)) /* a resumed run may stand in another folder */
        snprintf(s->data, sizeof s->data, "%s", dir);
    LAM_TRY(lam_path_join(path, sizeof path, dir, "vocab.json"));
    return lam_file_load(&s->vocab, &size, path, 1 << 30);
}

/* The configuration of a model that is to learn from the corpus. */
static lam_status config_of(session *s, const char *dir)
{
    const int n_token = s->corpus->info.vocab_size;
    LAM_TRY(lam_folder_config(&s->cfg, dir));
    if (s->cfg.n_token != n_token)
        return lam_fail(LAM_ERR_ARG, "%s: a vocabulary of %d, the model in %s has one of %d",
                        s->data, n_token, dir, s->cfg.n_token);
    return LAM_OK;
}

/* A model goes on with the symbols it knows; counts may be those of another text. */
static lam_status same_vocabulary(const session *s)
{
    char path[PATH_MAX];
    lam_vocab *vocab;
    LAM_TRY(lam_folder_vocab(path, sizeof path, s->from));
    if (!lam_path_exists(path)) {
        lam_log(LAM_LOG_WARN, "%s: no vocab.json; its types are taken to be those of %s", s->from,
                s->data);
        return LAM_OK;
    }
    LAM_TRY(lam_vocab_load(&vocab, path));
    const int same = lam_vocab_same(vocab, s->corpus->vocab, s->data) == LAM_OK &&
                     lam_vocab_alike(vocab, s->corpus->vocab);
    lam_vocab_free(vocab);
    return same ? LAM_OK
                : lam_fail(LAM_ERR_ARG,
                           "%s: another vocabulary than that of the model in %s: "
                           "lamemo prepare --vocab-from %s takes the model's",
                           s->data, s->from, s->o->init_from);
}

static lam_status settle_options(session *s)
{
    if (!s->resumed && !s->o->init_from)
        return lam_train_fresh(&s->cfg, &s->settings, s->args, s->corpus->info.vocab_size);
    if (s->resumed) {
        s->settings = s->then.settings;
        LAM_TRY(config_of(s, s->last));
        return lam_train_resumed(&s->cfg, &s->settings, s->args);
    }
    LAM_TRY(lam_folder_find(s->from, sizeof s->from, s->o->init_from));
    LAM_TRY(same_vocabulary(s));
    LAM_TRY(config_of(s, s->from));
    return lam_train_from(&s->cfg, &s->settings, s->args);
}

static lam_status remove_run(const char *dir)
{
    static const char *const parts[] = {"last", "last.new", "last.old",
                                        "best", "best.new", "best.old"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        LAM_TRY(lam_path_join(path, sizeof path, dir, parts[i]));
        LAM_TRY(lam_dir_remove(path));
    }
    return LAM_OK;
}

/* The corpus's path goes into the state, so that --resume needs no --data.  The state is JSON. */
static lam_status note_corpus(session *s)
{
    lam_corpus_mark *mark = &s->trainer->state.corpus;
    if (!lam_utf8_valid(s->data, strlen(s->data))) {
        lam_log(LAM_LOG_WARN, "%s: not UTF-8, so --resume will ask for --data again", s->data);
        return LAM_OK;
    }
    if ((size_t)snprintf(mark->path, sizeof mark->path, "%s", s->data) >= sizeof mark->path)
        return lam_fail(LAM_ERR_ARG, "%s: path longer than %zu bytes", s->data, sizeof mark->path);
    return LAM_OK;
}

static lam_run_options run_options(const session *s)
{
    const lam_tokens *split = s->corpus->split;
    return (lam_run_options){.dir = s->o->out,
                             .metric = s->corpus->info.metric,
                             .vocab = s->vocab,
                             .valid = split[LAM_VALID].count > 0 ? &split[LAM_VALID] : NULL,
                             .test = split[LAM_TEST].count > 0 && !s->o->no_test ? &split[LAM_TEST]
                                                                                 : NULL};
}

static lam_status open_run(session *s)
{
    LAM_TRY(lam_device_open(&s->dev, &s->o->device));
    LAM_TRY(lam_model_create(&s->model, &s->cfg, s->dev));
    LAM_TRY(lam_trainer_create(&s->trainer, s->model, &s->corpus->split[LAM_TRAIN], &s->settings));
    LAM_TRY(note_corpus(s));
    if (s->resumed)
        LAM_TRY(cannot_go_on(s, lam_trainer_resume(s->trainer, s->last)));
    else if (*s->from)
        LAM_TRY(lam_folder_adopt(s->model, s->from));
    else
        LAM_TRY(lam_model_init(s->model, (uint64_t)s->settings.seed));
    const lam_run_options options = run_options(s);
    LAM_TRY(lam_run_check(s->trainer, &options));
    /* From here on the folder changes. */
    LAM_TRY(lam_dir_make(s->o->out));
    if (!s->log)
        LAM_TRY(lam_runlog_open(&s->log, s->o->out));
    LAM_TRY(lam_runlog_begin(s->log, s->resumed ? &s->then.marks : NULL));
    return s->o->overwrite ? remove_run(s->o->out) : LAM_OK;
}

static void close_session(session *s)
{
    lam_runlog_close(s->log);
    lam_trainer_free(s->trainer);
    lam_model_free(s->model);
    if (s->dev)
        s->dev->ops->close(s->dev);
    free(s->vocab);
    lam_corpus_close(s->corpus);
    lam_train_state_free(&s->then);
}

/* ---- speaking ---- */

/* The clusters of an adaptive softmax, and that they are not those of the preset. */
static lam_status tell_softmax(session *s)
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

static lam_status introduce(session *s)
{
    char count[32], tokens[32], memory[LAM_DESCRIPTION_MAX], length[LAM_DESCRIPTION_MAX];
    const lam_config *cfg = &s->cfg;
    lam_format_count(count, sizeof count, (int64_t)lam_model_count(s->model));
    lam_format_count(tokens, sizeof tokens, s->corpus->info.tokens[LAM_TRAIN]);
    LAM_TRY(lam_runlog_line(s->log,
                            "model: memory %s, %d layers, d_model %d, %d heads of %d, d_inner %d, "
                            "segments of %d, memory of %d: %s parameters",
                            lam_describe_memory(memory, cfg), cfg->n_layer, cfg->d_model,
                            cfg->n_head, cfg->d_head, cfg->d_inner, cfg->tgt_len, cfg->mem_len,
                            count));
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
    LAM_TRY(lam_runlog_line(
        s->log, "recipe %s: %s, lr %g, %s, warm-up of %lld, decay %g, clip %g",
        lam_recipe_names[s->settings.recipe], lam_optim_names[s->settings.optim], s->settings.lr,
        lam_schedule_names[s->settings.scheduler], (long long)s->settings.warmup_step,
        s->settings.weight_decay, s->settings.clip));
    if (!s->resumed)
        return s->o->resume ? lam_runlog_line(s->log, "nothing to resume: a new run") : LAM_OK;
    if (strcmp(s->then.device, s->dev->ops->name) != 0)
        lam_log(LAM_LOG_WARN, "the run was on device %s: the numbers go on, but not bit for bit",
                s->then.device);
    const lam_train_state *then = &s->trainer->state;
    const bool complete =
        then->step >= s->settings.max_step ||
        (s->settings.scheduler_time > 0.0 && then->elapsed >= s->settings.scheduler_time);
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

static void on_progress(void *user, const lam_run_progress *p)
{
    session *s = user;
    char left[32], all[32] = "";
    if (!lam_progress_due(&s->line))
        return;
    if (!lam_settings_timed(&s->settings))
        snprintf(all, sizeof all, "/%lld", (long long)p->max_step);
    const lam_metric metric = s->corpus->info.metric;
    lam_format_time(left, sizeof left, p->seconds_left);
    if (p->evaluated >= 0.0)
        lam_progress_show(&s->line, "step %lld%s  evaluating: %.0f %%  %s left", (long long)p->step,
                          all, 100.0 * p->evaluated, left);
    else
        lam_progress_show(&s->line, "step %lld%s  %s %.4f  %.0f tokens/s  %.1f GFLOP/s  %s left",
                          (long long)p->step, all, lam_metric_name(metric),
                          lam_metric_of(metric, p->loss), p->tokens_per_second, p->flops * 1e-9,
                          left);
}

/* What print_text() says; what was not measured is null. */
static lam_status print_json(const session *s, const lam_run_result *r)
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

static void print_text(const session *s, const lam_run_result *r)
{
    const lam_metric metric = s->corpus->info.metric;
    char tokens[32];
    if (isfinite(r->best_loss))
        printf("best valid %s %.4f at step %lld: %s/best\n", lam_metric_name(metric),
               lam_metric_of(metric, r->best_loss), (long long)r->best_step, s->o->out);
    if (r->test.tokens > 0)
        printf("test %s %.4f +- %.4f, %s tokens\n", lam_metric_name(metric),
               lam_metric_of(metric, lam_eval_mean(&r->test)), lam_metric_error(metric, &r->test),
               lam_format_count(tokens, sizeof tokens, r->test.tokens));
    if (!isfinite(r->best_loss))
        printf("%lld steps: %s/last\n", (long long)r->step, s->o->out);
}

static lam_status report(session *s, const lam_run_result *r)
{
    char length[LAM_DESCRIPTION_MAX];
    if (r->timed_out)
        LAM_TRY(lam_runlog_line(s->log, "time is up at step %lld of a run of %s; --resume goes on",
                                (long long)r->step, lam_describe_length(length, &s->settings)));
    if (s->o->json)
        return print_json(s, r);
    print_text(s, r);
    return LAM_OK;
}

static lam_status train(session *s)
{
    lam_run_result result = {0};
    const lam_run_options options = run_options(s);
    const lam_run_watch watch = {s, on_stop, on_progress};
    LAM_TRY(introduce(s));
    lam_progress_open(&s->line, s->args->quiet || !lam_term_is_tty(stderr));
    lam_stop_answer(s->args->quiet ? NULL : answer_to_stop());
    const lam_status status = lam_run(&result, s->trainer, s->log, &options, &watch);
    lam_stop_answer(NULL);
    lam_progress_close(&s->line);
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
    session s = {.o = args->options, .args = args};
    lam_status status = look_at_folder(&s);
    if (status == LAM_OK)
        status = open_corpus(&s);
    if (status == LAM_OK)
        status = settle_options(&s);
    if (status == LAM_OK)
        status = open_run(&s);
    if (status == LAM_OK)
        status = train(&s);
    close_session(&s);
    tell_memory();
    return status;
}

const lam_command lam_command_train = {
    .name = "train",
    .summary = "train a model on a corpus",
    .description =
        "Trains a model on a corpus folder and keeps the run in another folder: last, a checkpoint "
        "that --resume goes on from bit for bit; best, the model with the lowest validation loss; "
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
        "--lr 0.001 --max-step 300 --out tuned\n"
        "# Transformer-XL with other lengths, for ten minutes\n"
        "lamemo train --data corpus --memory xl --tgt_len 128 --mem_len 256 --max-time 600 "
        "--out xl",
    .run = run,
};
