/* cmd_analyze.c -- `lamemo analyze`: what the memories of some models do, as a report. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/input.h"
#include "cli/model_list.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/file.h"
#include "core/log.h"
#include "data/json_name.h"
#include "draw/text.h"
#include "model/configure.h"
#include "model/folder.h"
#include "report/analysis_page.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct analyze_options {
    lam_string_list models, names;
    const char *data, *out, *prompt, *text;
    int split, batch, tgt_len, mem_len, interval, layer, passage;
    int64_t segments, tokens, sweep_tokens, seed;
    lam_int_list sweep;
    int sweep_len, story, prompt_tokens, encoding_width;
    double top_p, temp;
    lam_device_options device;
    bool no_sweep, paper, json;
} analyze_options;

static const lam_option options[] = {
    {"model", 'm', "DIR,...", LAM_OPT_STRINGS, offsetof(analyze_options, models),
     .help = "Model or run folders, at most 8; may be repeated."},
    {"name", 0, "TEXT", LAM_OPT_STRINGS, offsetof(analyze_options, names),
     .shown = "the folders' names",
     .help = "Name of a model in tables and figures; one for each model, in order."},
    {"data", 0, "PATH", LAM_OPT_PATH, offsetof(analyze_options, data),
     .help = "Corpus folder, or a text file, compressed or not (- for standard input)."},
    {"split", 0, "NAME", LAM_OPT_CHOICE, offsetof(analyze_options, split), "test",
     .choices = lam_split_names, .help = "Split of the corpus: train, valid or test."},
    {"out", 'o', "DIR", LAM_OPT_PATH, offsetof(analyze_options, out), "analysis",
     .help = "Folder for report.html and the files of its figures."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(analyze_options, json),
     .help = "Print the main numbers as one JSON object."},
    {.type = LAM_OPT_GROUP, .help = "Probes"},
    {"segments", 0, "K", LAM_OPT_INT64, offsetof(analyze_options, segments), "100", .min = 1,
     .former = 'n', .max = 1e12, .help = "Measure at least K segments after the memory is full."},
    {"tokens", 0, "K", LAM_OPT_INT64, offsetof(analyze_options, tokens), "15000", .min = 1,
     .max = 1e12, .help = "Number of tokens whose attention is measured."},
    {"interval", 0, "K", LAM_OPT_INT, offsetof(analyze_options, interval), "5", .min = 1,
     .max = LAM_MAX_LEN,
     .help = "Number of neighbouring distances that make one point of a curve."},
    {"layer", 0, "L", LAM_OPT_INT, offsetof(analyze_options, layer), "0", .max = LAM_MAX_LAYERS,
     .shown = "the last", .help = "Layer whose attention is drawn over distance."},
    {"batch-size", 'b', "B", LAM_OPT_INT, offsetof(analyze_options, batch), "8", .min = 1,
     .max = 1 << 20, .aliases = "batch", .shown = "8; fewer where the text is short",
     .help = "Number of streams that the text is cut into; segments are taken from all of them. "
             "Extrapolation chooses its own."},
    {"tgt-len", 0, "N", LAM_OPT_INT, offsetof(analyze_options, tgt_len), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's", .help = "Segment length, in tokens."},
    {"mem-len", 0, "M", LAM_OPT_INT, offsetof(analyze_options, mem_len), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's", .help = "Memory length, in tokens."},
    {"passage", 0, "K", LAM_OPT_INT, offsetof(analyze_options, passage), "1500", .max = 1 << 20,
     .help = "Length of the passage that is shown in colours, in tokens; 0 leaves it out."},
    {"text", 0, "TEXT", LAM_OPT_STRING, offsetof(analyze_options, text), .shown = "from the data",
     .help = "Show this text of your own in colours; @FILE reads a file, - standard input."},
    {.type = LAM_OPT_GROUP, .help = "Extrapolation"},
    {"extrapolate", 0, "M,...", LAM_OPT_INTS, offsetof(analyze_options, sweep), .min = 1,
     .max = LAM_MAX_LEN,
     .shown = "ten lengths, up to 5 times the longest memory a model was trained with",
     .help = "Memory lengths to measure, in tokens."},
    {"extrapolate-len", 0, "N", LAM_OPT_INT, offsetof(analyze_options, sweep_len), .min = 1,
     .max = LAM_MAX_LEN, .shown = "64, or the models' where that is shorter",
     .help = "Segment length of these measurements, in tokens."},
    {"extrapolate-tokens", 0, "K", LAM_OPT_INT64, offsetof(analyze_options, sweep_tokens), "-1",
     .min = -1, .max = 1e15, .shown = "2,048 to 65,536, by the models' size",
     .help =
         "Number of tokens to predict at each memory length, the same ones at all; 0 reads the "
         "whole split. By default all models together take about two minutes on two CPU cores."},
    {"no-extrapolate", 0, NULL, LAM_OPT_FLAG, offsetof(analyze_options, no_sweep),
     .help = "Do not measure other memory lengths."},
    {.type = LAM_OPT_GROUP, .help = "Case study"},
    {"story", 0, "K", LAM_OPT_INT, offsetof(analyze_options, story), "256", .max = 1 << 20,
     .help =
         "Number of tokens by which each model continues the prompt; 0 leaves the case study out."},
    {"prompt", 'p', "TEXT", LAM_OPT_STRING, offsetof(analyze_options, prompt),
     .shown = "from the text", .help = "Text to continue; @FILE reads a file, - standard input."},
    {"prompt-tokens", 0, "K", LAM_OPT_INT, offsetof(analyze_options, prompt_tokens), "256",
     .min = 1, .max = 1 << 20,
     .help = "Length of a prompt that is taken from the text, in tokens."},
    {"temp", 0, "T", LAM_OPT_DOUBLE, offsetof(analyze_options, temp), "1", .max = 100,
     .aliases = "temperature",
     .help = "Sampling temperature; 0 always takes the most likely token."},
    {"top-p", 0, "P", LAM_OPT_DOUBLE, offsetof(analyze_options, top_p), "0.95", .max = 1,
     .help = "Draw from the fewest tokens that together have this probability."},
    {"seed", 's', "S", LAM_OPT_INT64, offsetof(analyze_options, seed), "42",
     .help = "Seed of the draws."},
    {.type = LAM_OPT_GROUP, .help = "The paper's own numbers"},
    {"paper", 0, NULL, LAM_OPT_FLAG, offsetof(analyze_options, paper),
     .help = "Also show Table 1 (parameters and cost at the paper's size) and Appendix B (the "
             "encoding g), which do not depend on your models."},
    {"encoding-width", 0, "D", LAM_OPT_INT, offsetof(analyze_options, encoding_width), "64",
     .min = 2, .max = LAM_MAX_WIDTH,
     .help = "Width d of g(x) in Appendix B, an even number; implies --paper."},
    {.type = LAM_OPT_GROUP, .help = "Machine"},
    LAM_DEVICE_OPTIONS(analyze_options, device, "auto"),
    {0},
};

/* Multiply-accumulates of a sweep whose length nobody has set: two minutes. */
static double work_of(const lam_dev *dev)
{
    return 120.0 * dev->macs_per_s;
}

/* A text of the user's: the prompt, or what is shown in colours. */
typedef struct own_text {
    char *bytes; /* owned; NULL: none */
    size_t size;
} own_text;

static lam_analysis_options request(const lam_args *args, const lam_dev *dev,
                                    const own_text *prompt, const own_text *text)
{
    const analyze_options *o = args->options;
    lam_analysis_options w = {.probe = {.batch = o->batch,
                                        .tgt_len = o->tgt_len,
                                        .mem_len = o->mem_len,
                                        .segments = o->segments,
                                        .tokens = o->tokens,
                                        .interval = o->interval},
                              .fewer_streams = !lam_option_given(args, "batch-size"),
                              .passage = o->passage,
                              .text = text->bytes,
                              .text_size = text->size,
                              .sweep_follows = !o->no_sweep,
                              .sweep = {.tgt_len = o->no_sweep ? 1 : o->sweep_len,
                                        .n = o->no_sweep ? 0 : o->sweep.n,
                                        .tokens = o->sweep_tokens,
                                        .work = work_of(dev)},
                              .layer = o->layer,
                              .prompt = prompt->bytes,
                              .prompt_size = prompt->size,
                              .prompt_tokens = o->prompt_tokens,
                              .story_tokens = o->story,
                              .sampler = lam_sampler_defaults(),
                              .paper = o->paper || lam_option_given(args, "encoding-width"),
                              .encoding_width = o->encoding_width};
    for (int i = 0; i < w.sweep.n; i++)
        w.sweep.lengths[i] = o->sweep.v[i];
    w.sampler.temperature = o->temp;
    w.sampler.top_p = o->top_p;
    w.sampler.seed = (uint64_t)o->seed;
    return w;
}

static int on_progress(void *user, const lam_analysis_progress *p)
{
    lam_progress *line = user;
    if (lam_progress_due(line)) {
        char left[32];
        lam_format_time(left, sizeof left, lam_progress_seconds(line) * (1.0 / p->all - 1.0));
        lam_progress_show(line, "%s  %3.0f %%, all %2.0f %%, %s left", p->what, 100.0 * p->share,
                          100.0 * p->all, left);
    }
    return lam_stop_signal() != 0;
}

/* A message about one of the models says which, unless it does already. */
static lam_status blame(const lam_model_list *t, int i, lam_status status)
{
    if (status == LAM_OK || status == LAM_ERR_INTERRUPTED || strstr(lam_error(), t->dir[i]))
        return status;
    return lam_fail(status, "model %s: %s", t->dir[i], lam_error());
}

/* Everything about a model that can be checked without loading it. */
static lam_status check_model(lam_config *cfg, const char *dir, const lam_analysis *a,
                              const char *data, lam_dev *dev)
{
    char folder[4096], path[4200];
    lam_vocab *vocab = NULL;
    LAM_TRY(lam_folder_find(folder, sizeof folder, dir));
    LAM_TRY(lam_folder_config(cfg, folder));
    LAM_TRY(lam_config_finish(cfg));
    LAM_TRY(lam_folder_check(folder, cfg, dev));
    LAM_TRY(lam_folder_vocab(path, sizeof path, folder));
    LAM_TRY(lam_vocab_load(&vocab, path));
    lam_status status = lam_vocab_fits(vocab, path, cfg->n_token);
    if (status == LAM_OK)
        status = lam_vocab_same(vocab, a->corpus->vocab, data);
    lam_vocab_free(vocab);
    return status;
}

/* All models first: one that does not fit is found before any work is done. */
static lam_status plan(lam_analysis *a, const lam_model_list *t, const lam_args *args, lam_dev *dev)
{
    const analyze_options *o = args->options;
    bool remembers = false;
    for (int i = 0; i < t->n; i++) {
        lam_config cfg;
        LAM_TRY(blame(t, i, check_model(&cfg, t->dir[i], a, o->data, dev)));
        LAM_TRY(lam_analysis_plan(a, &cfg, t->name[i]));
        remembers |= cfg.mem_len > 0;
    }
    if (!remembers && lam_option_given(args, "mem-len"))
        return lam_fail(LAM_ERR_ARG, "--mem-len is of no use with any of the models");
    return lam_analysis_ready(a);
}

static lam_status measure(lam_analysis *a, const lam_model_list *t, const lam_args *args,
                          lam_dev *dev)
{
    lam_status status = plan(a, t, args, dev);
    lam_progress line;
    lam_progress_open(&line, args->quiet);
    lam_stop_within(LAM_STOP_PATIENCE); /* nothing is written yet */
    for (int i = 0; i < t->n && status == LAM_OK; i++) {
        lam_engine *engine = NULL;
        status = lam_engine_open(&engine, t->dir[i], dev, NULL);
        if (status == LAM_OK)
            status = lam_analysis_add(a, engine, on_progress, &line);
        status = blame(t, i, status);
        lam_engine_close(engine);
    }
    lam_stop_within(0);
    lam_progress_close(&line);
    return status;
}

static lam_status tell(const lam_analysis *a, const lam_args *args)
{
    const analyze_options *o = args->options;
    char path[4096];
    LAM_TRY(lam_path_join(path, sizeof path, o->out, "report.html"));
    if (o->json) {
        json_t *root = lam_analysis_json(a);
        json_object_set_new(root, "report", lam_json_name(path));
        return lam_print_json(root, JSON_INDENT(2));
    }
    lam_text table = {0};
    const lam_status status = lam_analysis_table(&table, a, lam_table_for_stdout);
    if (status == LAM_OK && !args->quiet)
        lam_term_write(stdout, table.data, table.size);
    lam_text_free(&table);
    lam_log(LAM_LOG_INFO, "page: %s", path);
    return status;
}

/* ---- what is read ---- */

/* *vocab, of the model, is the caller's: the corpus keeps it. */
static lam_status open_file(lam_corpus **corpus, lam_vocab **vocab, const char *data,
                            const char *model)
{
    char argument[PATH_MAX + 2], path[4200], *bytes = NULL;
    size_t size = 0;
    const bool standard = strcmp(data, "-") == 0;
    const char *const name = standard ? "standard input" : data;
    snprintf(argument, sizeof argument, "%s%s", standard ? "" : "@", data);
    LAM_TRY(lam_folder_vocab(path, sizeof path, model));
    LAM_TRY(lam_prompt_read(&bytes, &size, argument));
    lam_status status = lam_vocab_load(vocab, path);
    if (status == LAM_OK)
        status = lam_prompt_blame(lam_corpus_of_text(corpus, name, *vocab, bytes, size), argument);
    free(bytes);
    return status;
}

/* A corpus folder, or a text that is read as the first model reads it. */
static lam_status open_data(lam_corpus **corpus, lam_vocab **vocab, const lam_args *args,
                            const lam_model_list *t)
{
    const analyze_options *o = args->options;
    if (lam_path_is_folder(o->data))
        return lam_corpus_open(corpus, o->data, LAM_CORPUS_VERIFY);
    if (lam_option_given(args, "split"))
        return lam_fail(LAM_ERR_ARG, "--split %s: %s is a text, not a corpus folder with splits",
                        lam_split_name((lam_split)o->split), o->data);
    return open_file(corpus, vocab, o->data, t->dir[0]);
}

/* Before anything is measured: can it be read? */
static lam_status check_text(const lam_corpus *corpus, const own_text *text, const char *argument)
{
    return text->bytes
               ? lam_prompt_blame(lam_vocab_check(corpus->vocab, text->bytes, text->size), argument)
               : LAM_OK;
}

static lam_status analyze(const lam_args *args, const lam_model_list *t, const own_text *prompt,
                          const own_text *text)
{
    const analyze_options *o = args->options;
    lam_corpus *corpus = NULL;
    lam_vocab *vocab = NULL;
    lam_analysis *a = NULL;
    lam_dev *dev = NULL;
    lam_status status = open_data(&corpus, &vocab, args, t);
    if (status == LAM_OK)
        status = check_text(corpus, prompt, o->prompt);
    if (status == LAM_OK)
        status = check_text(corpus, text, o->text);
    if (status == LAM_OK)
        status = lam_device_open(&dev, &o->device);
    if (status == LAM_OK) {
        const lam_analysis_options wanted = request(args, dev, prompt, text);
        status = lam_analysis_create(&a, corpus, (lam_split)o->split, &wanted);
    }
    if (status == LAM_OK)
        status = measure(a, t, args, dev);
    if (status == LAM_OK)
        status = lam_analysis_write(a, o->out, args->line);
    if (status == LAM_OK)
        status = tell(a, args);
    if (dev)
        dev->ops->close(dev);
    lam_analysis_free(a);
    lam_corpus_close(corpus);
    lam_vocab_free(vocab);
    return status;
}

static bool is_stdin(const char *argument)
{
    return argument && strcmp(argument, "-") == 0;
}

static lam_status check_options(const lam_args *args)
{
    const analyze_options *o = args->options;
    LAM_TRY(lam_model_required(args, o->models.n > 0 ? o->models.v[0] : NULL));
    if (!o->data)
        return lam_fail(LAM_ERR_ARG, "--data is missing: a corpus folder or a text file");
    if (o->no_sweep && lam_option_given(args, "extrapolate"))
        return lam_fail(LAM_ERR_ARG, "--extrapolate and --no-extrapolate contradict each other");
    if (o->story == 0 && o->prompt)
        return lam_fail(LAM_ERR_ARG, "--prompt and --story 0 contradict each other");
    if (o->passage == 0 && o->text)
        return lam_fail(LAM_ERR_ARG, "--text and --passage 0 contradict each other");
    if (is_stdin(o->data) + is_stdin(o->prompt) + is_stdin(o->text) > 1)
        return lam_fail(LAM_ERR_ARG,
                        "only one of --data, --prompt and --text can be -, standard input");
    if (o->text && o->text[0] == '\0')
        return lam_fail(LAM_ERR_ARG, "--text: the text is empty");
    return lam_analysis_may_write(o->out);
}

static lam_status run(const lam_args *args)
{
    const analyze_options *o = args->options;
    lam_model_list t;
    own_text prompt = {0}, text = {0};
    LAM_TRY(check_options(args));
    lam_status status = lam_model_list_read(&t, &o->models, &o->names);
    if (status == LAM_OK && o->prompt)
        status = lam_prompt_read(&prompt.bytes, &prompt.size, o->prompt);
    if (status == LAM_OK && o->text)
        status = lam_prompt_read(&text.bytes, &text.size, o->text);
    if (status == LAM_OK)
        status = analyze(args, &t, &prompt, &text);
    free(prompt.bytes);
    free(text.bytes);
    lam_model_list_free(&t);
    return status;
}

const lam_command lam_command_analyze = {
    .name = "analyze",
    .summary = "measure and plot what the memories of models do",
    .description =
        "Reads a corpus or a text file with one or several models, prints a table of their losses "
        "and writes report.html, one self-contained file, with the paper's figures for these "
        "models: attention over distance, memory interpolation by layer and slot, longer memories "
        "than trained with, loss by position, entropy, memory use, the text coloured by loss with "
        "the attention of each token, continuations of a prompt. Every figure is also written as "
        "SVG, CSV and JSON, every table as CSV and JSON. All models are checked before the first "
        "is measured.",
    .options = options,
    .options_size = sizeof(analyze_options),
    .examples = "lamemo analyze --model runs/lamemo,runs/xl --data data/bible --out analysis\n"
                "# any text, and a paragraph of your own in colours\n"
                "lamemo analyze -m runs/lamemo --data book.txt --text @paragraph.txt\n"
                "# quickly, without the sweep over memory lengths\n"
                "lamemo analyze -m runs/lamemo --data data/bible --no-extrapolate --segments 20",
    .run = run,
};
