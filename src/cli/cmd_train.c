/* cmd_train.c -- `lamemo train`: lets a run run, and says how it goes and how it went. */
#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/info_tables.h"
#include "cli/output.h"
#include "cli/recipes.h"
#include "cli/ranks.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "cli/train_config.h"
#include "cli/train_session.h"
#include "core/budget.h"
#include "core/log.h"
#include "data/detok.h"
#include "data/json_name.h"
#include "draw/text.h"
#include "infer/generate.h"
#include "io/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The settings with which the run goes on otherwise than it was begun. */
static lam_status note_changes(const lam_train_session *s)
{
    json_t *before = lam_settings_print(&s->then.settings);
    json_t *after = lam_settings_print(&s->settings);
    lam_status status =
        before && after &&
                json_object_set_new(before, "device", json_string(s->then.device)) == 0 &&
                json_object_set_new(after, "device", json_string(s->dev->ops->name)) == 0
            ? lam_runlog_changes(s->log, s->trainer->state.step, before, after)
            : lam_fail(LAM_ERR_MEMORY, "no memory for settings");
    json_decref(before);
    json_decref(after);
    return status;
}

static lam_status introduce(const lam_train_session *s)
{
    char count[32], tokens[32], memory[LAM_DESCRIPTION_MAX], length[LAM_DESCRIPTION_MAX];
    const lam_config *cfg = &s->cfg;
    lam_format_count(count, sizeof count, (int64_t)lam_model_count(s->model));
    lam_format_count(tokens, sizeof tokens, s->corpus->info.tokens[LAM_TRAIN]);
    LAM_TRY(lam_runlog_line(s->log,
                            LAM_RUNLOG_FIRST "%s, %d layers, d_model %d, %d heads of %d, d_inner "
                                             "%d, segments of %d, memory of %d: %s parameters",
                            lam_describe_memory(memory, cfg), cfg->n_layer, cfg->d_model,
                            cfg->n_head, cfg->d_head, cfg->d_inner, cfg->tgt_len, cfg->mem_len,
                            count));
    if (*s->from)
        LAM_TRY(lam_runlog_line(s->log, "weights: those of %s", s->o->init_from));
    LAM_TRY(tell_softmax(s));
    LAM_TRY(lam_runlog_line(s->log, "corpus: %s, %s training tokens, vocabulary of %d",
                            s->corpus->info.name, tokens, s->corpus->info.vocab_size));
    if (s->settings.leaves > 0)
        LAM_TRY(lam_runlog_line(s->log, "leaves: %d of %d streams, on %d process%s by %s",
                                s->settings.leaves, s->settings.batch_size / s->settings.leaves,
                                lam_comm_size(s->comm), lam_comm_size(s->comm) == 1 ? "" : "es",
                                lam_comm_name(s->comm)));
    if (s->o->zero && lam_comm_size(s->comm) > 1)
        LAM_TRY(lam_runlog_line(s->log, "optimiser: its state is divided between %d processes",
                                lam_comm_size(s->comm)));
    else if (s->o->zero)
        lam_log(LAM_LOG_WARN,
                "--zero 1: there is one process, which keeps all of the optimiser's state");
    LAM_TRY(lam_runlog_line(s->log, "run: %s%s of %d x %d tokens on %s (%s), seed %lld",
                            lam_describe_length(length, &s->settings),
                            lam_settings_timed(&s->settings) ? " in steps" : "",
                            s->settings.batch_size, cfg->tgt_len, s->dev->ops->name,
                            s->dev->ops->summary, (long long)s->settings.seed));
    LAM_TRY(tell_recipe(s));
    if (s->settings.warmup_step > s->settings.max_step)
        lam_log(LAM_LOG_WARN,
                "the warm-up takes %lld steps of a run of %s: the learning rate stays below %g",
                (long long)s->settings.warmup_step, length, s->settings.lr);
    if (lam_option_given(s->args, "short-mem") && s->settings.short_mem >= cfg->mem_len)
        lam_log(LAM_LOG_WARN, "--short-mem %d has no effect: the memory length is %d",
                s->settings.short_mem, cfg->mem_len);
    if (s->settings.early_stop > 0 && s->corpus->split[LAM_VALID].count == 0)
        lam_log(LAM_LOG_WARN, "--early-stop has no effect: the valid split of %s is empty",
                s->corpus->info.name);
    lam_train_warn(s->args, cfg, &s->settings);
    if (!s->resumed && s->o->resume) /* a first job of several, or a name mistyped */
        lam_log(LAM_LOG_WARN, "%s holds no checkpoint: starting a new run", s->o->out);
    if (!s->resumed)
        return LAM_OK;
    if (strcmp(s->then.device, s->dev->ops->name) != 0)
        lam_log(LAM_LOG_WARN, "the run was begun on device %s: it is resumed, but not bit for bit",
                s->then.device);
    const lam_train_state *then = &s->trainer->state;
    const int complete = lam_settings_complete(&s->settings, then->step, then->elapsed);
    LAM_TRY(lam_runlog_line(s->log, "resumed at step %lld%s%s", (long long)then->step,
                            complete ? ": nothing is left of " : "", complete ? length : ""));
    return complete ? LAM_OK : note_changes(s);
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

/* ---- samples ---- */

enum { SAMPLE_PROMPT = 64, SAMPLE_TOKENS = 200 };

static int add_sample(void *user, const lam_generated *g)
{
    lam_text_bytes(user, g->text, g->size);
    return 0;
}

/* The tokens that a sample continues, and their text: the user's, or how the validation (or training) text begins. */
static lam_status sample_prompt(const lam_train_session *s, int32_t **ids, size_t *n, char **text,
                                size_t *size)
{
    const lam_tokens *split = s->corpus->split;
    const lam_tokens *from = &split[split[LAM_VALID].count > 0 ? LAM_VALID : LAM_TRAIN];
    const char *const given = s->o->sample_prompt;
    if (given)
        LAM_TRY(lam_vocab_encode(s->corpus->vocab, ids, n, given, strlen(given)));
    else {
        *n = from->count < SAMPLE_PROMPT ? (size_t)from->count : SAMPLE_PROMPT;
        *ids = malloc(SAMPLE_PROMPT * sizeof **ids);
        if (!*ids)
            return lam_fail(LAM_ERR_MEMORY, "no memory for a prompt");
        lam_tokens_copy(from, *ids, 0, *n);
    }
    return lam_detok_all(s->corpus->vocab, text, size, *ids, *n);
}

static lam_status sample(const lam_train_session *s, int64_t step)
{
    const lam_engine engine = {.dev = s->dev, .model = s->model, .vocab = s->corpus->vocab};
    lam_text written = {0};
    const lam_generate_options wanted = {.samples = 1,
                                         .tokens = SAMPLE_TOKENS,
                                         .sampler = lam_sampler_defaults(),
                                         .sink = add_sample,
                                         .user = &written};
    int32_t *ids = NULL;
    size_t n = 0, size = 0;
    char *text = NULL;
    lam_status status = sample_prompt(s, &ids, &n, &text, &size);
    if (status == LAM_OK)
        status = lam_generate(&engine, ids, n, &wanted);
    if (status == LAM_OK)
        status = lam_text_status(&written, "a sample");
    if (status == LAM_OK)
        status = lam_runlog_sample(s->log, step, (lam_log_text){text, size},
                                   (lam_log_text){written.data ? written.data : "", written.size});
    free(ids);
    free(text);
    lam_text_free(&written);
    return status;
}

/* A run does not end because of a sample. */
static void on_sample(void *user, int64_t step)
{
    const watcher *w = user;
    if (sample(w->session, step) != LAM_OK)
        lam_log(LAM_LOG_WARN, "no sample at step %lld: %s", (long long)step, lam_error());
}

/* ---- the result ---- */

/* What print_text() says; what was not measured is null. */
static lam_status print_json(const lam_train_session *s, const lam_run_result *r)
{
    const lam_metric metric = s->corpus->info.metric;
    const bool tested = r->test.tokens > 0;
    const double test = tested ? lam_eval_mean(&r->test) : NAN;
    json_t *root = json_pack(
        "{s:o, s:I, s:b, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:o, s:o}", "folder",
        lam_json_name(s->o->out), "step", (json_int_t)r->step, "timed_out", r->timed_out, "metric",
        lam_metric_name(metric), "valid_loss", lam_json_number(r->best_loss), "valid",
        lam_json_number(lam_metric_of(metric, r->best_loss)), "best_step", (json_int_t)r->best_step,
        "test_loss", lam_json_number(test), "test", lam_json_number(lam_metric_of(metric, test)),
        "test_error", lam_json_number(tested ? lam_metric_error(metric, &r->test) : NAN),
        "test_tokens", (json_int_t)r->test.tokens, "valid_bits_per_byte",
        lam_json_number(r->best_bits), "test_bits_per_byte",
        lam_json_number(tested ? lam_eval_bits_per_byte(&r->test) : NAN));
    return lam_print_json(root, JSON_COMPACT);
}

/* Of bytes, bits per character say it already. */
static const char *show_bits(char out[48], const lam_train_session *s, double bits)
{
    out[0] = '\0';
    if (s->corpus->info.kind != LAM_BYTES && isfinite(bits))
        snprintf(out, 48, ", %.4f bits per byte", bits);
    return out;
}

static void print_text(const lam_train_session *s, const lam_run_result *r)
{
    const lam_metric metric = s->corpus->info.metric;
    char tokens[32], bits[2][48];
    if (isfinite(r->best_loss))
        lam_print("best valid %s %.4f%s at step %lld: %s/best\n", lam_metric_name(metric),
                  lam_metric_of(metric, r->best_loss), show_bits(bits[0], s, r->best_bits),
                  (long long)r->best_step, s->o->out);
    /* On a terminal the line above is the log's last one, which says the same. */
    const bool shown = lam_term_is_tty(stdout) && lam_term_is_tty(stderr);
    if (r->test.tokens > 0 && !shown)
        lam_print("test %s %.4f +- %.4f%s, %s tokens\n", lam_metric_name(metric),
                  lam_metric_of(metric, lam_eval_mean(&r->test)),
                  lam_metric_error(metric, &r->test),
                  show_bits(bits[1], s, lam_eval_bits_per_byte(&r->test)),
                  lam_format_count(tokens, sizeof tokens, r->test.tokens));
    if (!isfinite(r->best_loss))
        lam_print("%lld steps: %s/last\n", (long long)r->step, s->o->out);
}

static lam_status report(const lam_train_session *s, const lam_run_result *r)
{
    char length[LAM_DESCRIPTION_MAX];
    if (lam_comm_rank(s->comm) > 0)
        return LAM_OK;
    if (r->timed_out)
        LAM_TRY(lam_runlog_line(s->log,
                                "time is up at step %lld of a run of %s; --resume continues",
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
    const bool first = lam_comm_rank(s->comm) == 0;
    const lam_run_watch watch = {&w, on_stop, on_progress, first ? on_sample : NULL};
    LAM_TRY(introduce(s));
    const bool quiet = s->args->quiet || !first;
    lam_progress_open(&w.line, quiet || !lam_term_is_tty(stderr));
    lam_stop_answer(quiet ? NULL : answer_to_stop());
    const lam_status status = lam_run(&result, s->trainer, s->log, &options, &watch);
    lam_stop_answer(NULL);
    lam_progress_close(&w.line);
    if (status == LAM_ERR_INTERRUPTED)
        (void)lam_runlog_line(s->log, "%s%s", lam_error(),
                              s->args->inner ? "" : "; --resume continues");
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

/* Of several processes one does. */
static lam_status print_config(const lam_train_config *c, const lam_train_session *s)
{
    return lam_comm_rank(s->comm) > 0 ? LAM_OK
                                      : lam_train_config_print(&c->args, &s->cfg, &s->settings);
}

static lam_status train_or_print(const void *config, lam_comm *comm)
{
    const lam_train_config *c = config;
    lam_train_session s;
    const bool print = c->options.print_config;
    lam_status status = print ? lam_train_plan(&s, c, comm) : lam_train_open(&s, c, comm);
    if (status == LAM_OK)
        status = print ? print_config(c, &s) : train(&s);
    lam_train_close(&s);
    tell_memory();
    return status;
}

static lam_status run(const lam_args *args)
{
    lam_train_config c;
    lam_status status = lam_train_config_read(&c, args);
    if (status == LAM_OK)
        status = lam_ranks_run(args->command, c.options.timeout, train_or_print, &c);
    lam_train_config_free(&c);
    return status;
}

const lam_command lam_command_train = {
    .name = "train",
    .summary = "train a model on a corpus",
    .description =
        "Trains a model on a corpus folder and keeps the run in another folder: last, a checkpoint "
        "from which --resume continues bit for bit; best, the model with the lowest validation "
        "loss; metrics.jsonl, train.log and events for TensorBoard. A preset sets sizes, batch and "
        "steps; options change single values. The option names of the Transformer-XL and LaMemo "
        "scripts (--n_layer, --mem_len, --attn_type, ...) are accepted. Ctrl-C or SIGTERM finishes "
        "the step, saves a checkpoint and exits; a second Ctrl-C exits at once, without saving.",
    .shared = true,
    .options = lam_train_table,
    .options_size = sizeof(lam_train_options),
    .examples = "lamemo train --data corpus --preset tiny --memory lamemo --out run\n"
                "# resume after an interruption\n"
                "lamemo train --out run --resume\n"
                "# fine-tune the bundled model on a text of your own\n"
                "lamemo train --data corpus --init-from wiki11m --tgt-len 128 --mem-len 128 "
                "--recipe fast --max-step 300 --out tuned\n"
                "# keep the options of a training in a file, and change one of them\n"
                "lamemo train --data corpus --preset small --print-config > small.json\n"
                "lamemo train --config small.json --data corpus --lr 0.002 --out small\n"
                "# Transformer-XL with other lengths, for ten minutes\n"
                "lamemo train --data corpus --memory xl --tgt_len 128 --mem_len 256 --max-time 600 "
                "--out xl",
    .complete = lam_recipe_explain,
    .appendix_title = "Presets",
    .appendix = lam_info_presets_help,
    .run = run,
};
