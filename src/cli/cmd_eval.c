/* cmd_eval.c -- `lamemo eval`: bits per character or perplexity of a model on a text. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/model_option.h"
#include "cli/print_json.h"
#include "cli/prompt.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/file.h"
#include "data/batcher.h"
#include "data/corpus.h"
#include "data/json_name.h"
#include "data/text_look.h"
#include "infer/engine.h"
#include "io/json.h"
#include "model/folder.h"
#include "train/evaluate.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct eval_options {
    const char *model, *data;
    int split, batch, tgt_len, ext_len, clamp_len;
    lam_int_list mem_len;
    int64_t max_steps;
    lam_device_options device;
    lam_storage_options storage;
    bool same_length, json;
} eval_options;

static const lam_option options[] = {
    LAM_MODEL_OPTION(eval_options, model),
    {"data", 0, "PATH", LAM_OPT_PATH, offsetof(eval_options, data),
     .help = "Corpus folder, or a text, packed or not (- for standard input)."},
    {"split", 0, "NAME", LAM_OPT_CHOICE, offsetof(eval_options, split), "test",
     .choices = lam_split_names, .help = "Part of the corpus: train, valid or test."},
    {"batch-size", 'b', "B", LAM_OPT_INT, offsetof(eval_options, batch), "16", .min = 1,
     .max = 1 << 20, .aliases = "batch", .shown = "16; fewer where a text file is short",
     .help = "Columns the text is cut into; the published results have 16."},
    {"tgt-len", 0, "N", LAM_OPT_INT, offsetof(eval_options, tgt_len), .min = 1, .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Segment length."},
    {"mem-len", 0, "M,...", LAM_OPT_INTS, offsetof(eval_options, mem_len), .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Memory length; several make a table."},
    {"ext-len", 0, "E", LAM_OPT_INT, offsetof(eval_options, ext_len), "0", .max = LAM_MAX_LEN,
     .shown = "the model's",
     .help = "Tokens of the previous segment that are computed again, as context (memories none "
             "and xl)."},
    {"clamp-len", 0, "N", LAM_OPT_INT, offsetof(eval_options, clamp_len), "0", .min = -1,
     .max = LAM_MAX_LEN, .shown = "the model's",
     .help = "Largest distance that is told apart; -1 is off."},
    {"same-length", 0, NULL, LAM_OPT_FLAG, offsetof(eval_options, same_length),
     .help = "Every token sees exactly M others."},
    {"max-steps", 0, "K", LAM_OPT_INT64, offsetof(eval_options, max_steps), "0", .max = 1e15,
     .aliases = "max-size", .shown = "all", .help = "Stop after K segments."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(eval_options, json),
     .help = "Print one JSON object per memory length."},
    LAM_STORAGE_OPTIONS(eval_options, storage, "the folder's"),
    LAM_DEVICE_OPTIONS(eval_options, device, "auto"),
    {0},
};

/* What is measured: a split of a corpus, or a text of ours. */
typedef struct text {
    lam_corpus *corpus;
    const lam_tokens *tokens;
    lam_tokens own; /* over `ids` */
    int32_t *ids;
    lam_metric metric;
    char name[256];
} text;

static void close_text(text *t)
{
    lam_corpus_close(t->corpus);
    free(t->ids);
}

static lam_status open_corpus(text *t, const lam_engine *e, const eval_options *o)
{
    LAM_TRY(lam_corpus_open(&t->corpus, o->data, LAM_CORPUS_VERIFY));
    LAM_TRY(lam_vocab_same(e->vocab, t->corpus->vocab, o->data));
    t->tokens = &t->corpus->split[o->split];
    t->metric = t->corpus->info.metric;
    snprintf(t->name, sizeof t->name, "%s %s", t->corpus->info.name,
             lam_split_name((lam_split)o->split));
    return LAM_OK;
}

static lam_status open_file(text *t, const lam_engine *e, const eval_options *o)
{
    char argument[PATH_MAX + 2], *bytes = NULL;
    size_t size = 0, n = 0;
    const bool standard = strcmp(o->data, "-") == 0;
    snprintf(argument, sizeof argument, "%s%s", standard ? "" : "@", o->data);
    LAM_TRY(lam_prompt_read(&bytes, &size, argument));
    const char *name = standard ? "standard input" : o->data;
    lam_status status = lam_text_look(name, lam_vocab_kind(e->vocab), bytes, size);
    if (status == LAM_OK)
        status = lam_prompt_blame(lam_vocab_encode(e->vocab, &t->ids, &n, bytes, size), argument);
    free(bytes);
    LAM_TRY(status);
    if (n == 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: the text is empty", name);
    if (n == 1)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: the text is one token, nothing follows to be predicted", name);
    t->own = (lam_tokens){.ids = (const unsigned char *)t->ids,
                          .width = sizeof *t->ids,
                          .vocab_size = lam_vocab_size(e->vocab),
                          .count = (int64_t)n};
    t->tokens = &t->own;
    t->metric = lam_metric_for(lam_vocab_kind(e->vocab));
    snprintf(t->name, sizeof t->name, "%s", name);
    return LAM_OK;
}

static lam_status open_text(text *t, const lam_engine *e, const lam_args *args)
{
    const eval_options *o = args->options;
    if (lam_path_is_folder(o->data))
        return open_corpus(t, e, o);
    if (lam_option_given(args, "split"))
        return lam_fail(LAM_ERR_ARG, "--split %s: %s is a text, not a corpus folder with splits",
                        lam_split_name((lam_split)o->split), o->data);
    return open_file(t, e, o);
}

typedef struct watch {
    lam_progress line;
    lam_metric metric;
} watch;

static int on_segment(void *user, const lam_eval_result *r, int64_t total)
{
    watch *w = user;
    if (lam_progress_due(&w->line) && r->tokens > 0) {
        char left[32];
        const double rate = (double)r->tokens / r->seconds;
        lam_progress_show(
            &w->line, "%3.0f %%  %s %.4f  %.0f tokens/s  %s left",
            100.0 * (double)r->tokens / (double)total, lam_metric_name(w->metric),
            lam_metric_of(w->metric, lam_eval_mean(r)), rate,
            lam_format_time(left, sizeof left, (double)(total - r->tokens) / fmax(rate, 1e-9)));
    }
    return lam_stop_signal() != 0;
}

static lam_status print_json(const text *t, const lam_config *cfg, const lam_eval_options *e,
                             const lam_eval_result *r)
{
    const double value = lam_metric_of(t->metric, lam_eval_mean(r));
    const double spread = lam_metric_error(t->metric, r);
    json_t *root = json_pack(
        "{s:o, s:s, s:s, s:f, s:o, s:f, s:I, s:i, s:i, s:i, s:i, s:i, s:b, s:f, s:f}", "text",
        lam_json_name(t->name), "memory", cfg->memory, "metric", lam_metric_name(t->metric),
        "value", value, "error", lam_json_number(spread), "nats", lam_eval_mean(r), "tokens",
        (json_int_t)r->tokens, "batch", e->batch, "tgt_len", e->tgt_len, "mem_len", e->mem_len,
        "ext_len", e->ext_len, "clamp_len", cfg->clamp_len, "same_length", cfg->same_length,
        "seconds", r->seconds, "tokens_per_second", (double)r->tokens / fmax(r->seconds, 1e-9));
    return lam_print_json(root, JSON_COMPACT);
}

static void print_row(const text *t, const lam_eval_options *e, const lam_eval_result *r,
                      bool first)
{
    const double value = lam_metric_of(t->metric, lam_eval_mean(r));
    const double spread = lam_metric_error(t->metric, r);
    char tokens[32], rate[32], error[32] = "-"; /* one segment has no error */
    if (isfinite(spread))
        snprintf(error, sizeof error, "%.4f", spread);
    if (first)
        lam_print("%-24s %6s %7s %7s %10s %9s %14s %11s\n", "text", "batch", "tgt_len", "mem_len",
                  lam_metric_name(t->metric), "+-", "tokens", "tokens/s");
    lam_print(
        "%-24s %6d %7d %7d %10.4f %9s %14s %11s\n", t->name, e->batch, e->tgt_len, e->mem_len,
        value, error, lam_format_count(tokens, sizeof tokens, r->tokens),
        lam_format_count(rate, sizeof rate, llround((double)r->tokens / fmax(r->seconds, 1e-9))));
    fflush(stdout);
}

/* Every column begins with an empty memory.  A corpus is cut as published; a text file only so far that each
 * column has 16 segments, or a short one would be measured by its beginnings. */
static int columns(const text *t, const lam_args *args, int tgt_len)
{
    const eval_options *o = args->options;
    const int64_t fit = t->tokens->count / (16 * (int64_t)tgt_len);
    if (t->corpus || lam_option_given(args, "batch-size") || fit >= o->batch)
        return o->batch;
    return fit > 1 ? (int)fit : 1;
}

static lam_status measure(const lam_engine *engine, const text *t, const lam_args *args,
                          int mem_len, bool first)
{
    const eval_options *o = args->options;
    lam_model *model = engine->model;
    const int tgt_len = o->tgt_len > 0 ? o->tgt_len : model->cfg.tgt_len;
    const lam_eval_options e = {.batch = columns(t, args, tgt_len),
                                .tgt_len = tgt_len,
                                .mem_len = mem_len,
                                .ext_len = lam_option_given(args, "ext-len") ? o->ext_len
                                                                             : model->cfg.ext_len,
                                .max_steps = o->max_steps};
    lam_evaluator *evaluator = NULL;
    lam_eval_result result = {0};
    watch w = {.metric = t->metric};
    LAM_TRY(lam_model_remembers(model, mem_len));
    LAM_TRY(lam_batcher_check(t->tokens, e.batch)); /* before memory is taken for so many */
    lam_eval_options fit = e;
    lam_eval_fit(&fit, t->tokens);
    LAM_TRY(lam_evaluator_create(&evaluator, model, &fit));
    lam_progress_open(&w.line, args->quiet);
    const lam_status status = lam_evaluator_run(evaluator, &result, t->tokens, on_segment, &w);
    lam_progress_close(&w.line);
    lam_evaluator_free(evaluator);
    LAM_TRY(status);
    if (!isfinite(
            lam_metric_of(t->metric, lam_eval_mean(&result)))) /* finite nats; exp of them is not */
        return lam_fail(LAM_ERR_NUMERIC, "%s of %g nats is not finite", lam_metric_name(t->metric),
                        lam_eval_mean(&result));
    if (o->json)
        return print_json(t, &model->cfg, &e, &result);
    print_row(t, &e, &result, first);
    return LAM_OK;
}

static lam_status measure_all(const lam_engine *engine, const lam_args *args)
{
    const eval_options *o = args->options;
    lam_config *cfg = &engine->model->cfg;
    text t = {0};
    if (lam_option_given(args, "clamp-len"))
        cfg->clamp_len = o->clamp_len;
    if (o->same_length)
        cfg->same_length = 1;
    lam_status status = open_text(&t, engine, args);
    if (status == LAM_OK && o->mem_len.n == 0)
        status = measure(engine, &t, args, cfg->mem_len, true);
    for (int i = 0; i < o->mem_len.n && status == LAM_OK; i++)
        status = measure(engine, &t, args, o->mem_len.v[i], i == 0);
    close_text(&t);
    return status;
}

static lam_status run(const lam_args *args)
{
    const eval_options *o = args->options;
    const lam_storage storage = lam_storage_of(&o->storage);
    lam_dev *dev = NULL;
    lam_engine *engine = NULL;
    LAM_TRY(lam_model_required(o->model));
    if (!o->data)
        return lam_fail(LAM_ERR_ARG, "--data is missing");
    LAM_TRY(lam_device_open(&dev, &o->device));
    lam_status status = lam_engine_open(&engine, o->model, dev, &storage);
    if (status == LAM_OK)
        status = lam_engine_blame(engine, measure_all(engine, args));
    lam_engine_close(engine);
    dev->ops->close(dev);
    return status;
}

const lam_command lam_command_eval = {
    .name = "eval",
    .summary = "measure a model's bits per character or perplexity",
    .description =
        "Reads a split of a corpus, or any text, once with empty memory at the start and prints "
        "bits "
        "per character (perplexity for words) with its standard error, taken over segments. The "
        "text "
        "is cut into --batch-size columns, as the published results are. Several memory lengths "
        "make the extrapolation table of the paper.",
    .options = options,
    .options_size = sizeof(eval_options),
    .examples = "lamemo eval --model runs/tiny --data data/bible --split test\n"
                "# how far does the memory reach?\n"
                "lamemo eval -m runs/tiny --data data/bible --tgt-len 64 --mem-len 64,128,256,512",
    .run = run,
    .reads = true,
};
