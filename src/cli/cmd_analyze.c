/* cmd_analyze.c -- `lamemo analyze`: what the memories of some models do, as a report. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/model_option.h"
#include "cli/print_json.h"
#include "cli/prompt.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/file.h"
#include "core/log.h"
#include "data/json_name.h"
#include "model/configure.h"
#include "model/folder.h"
#include "report/analysis.h"
#include "report/png.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct analyze_options {
    lam_string_list models, names;
    const char *data, *out, *prompt;
    int split, batch, tgt_len, mem_len, interval, layer, passage;
    int64_t segments, tokens, sweep_tokens, seed;
    lam_int_list sweep;
    int sweep_len, story, prompt_tokens, encoding_width;
    double top_p, temp;
    lam_device_options device;
    bool no_sweep, json;
} analyze_options;

static const lam_option options[] = {
    {"model", 'm', "DIR,...", LAM_OPT_STRINGS, offsetof(analyze_options, models),
     .help = "Model or run folders, at most 8; may be repeated."},
    {"name", 0, "TEXT", LAM_OPT_STRINGS, offsetof(analyze_options, names),
     .shown = "the folders' names", .help = "What a model is called; once for each, in order."},
    {"data", 0, "DIR", LAM_OPT_PATH, offsetof(analyze_options, data), .help = "Corpus folder."},
    {"split", 0, "NAME", LAM_OPT_CHOICE, offsetof(analyze_options, split), "test",
     .choices = lam_split_names, .help = "Part of the corpus: train, valid or test."},
    {"out", 'o', "DIR", LAM_OPT_PATH, offsetof(analyze_options, out), "analysis",
     .help = "Folder for report.html and the files of its figures."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(analyze_options, json),
     .help = "Print the main numbers as one JSON object."},
    {.type = LAM_OPT_GROUP, .help = "Probes"},
    {"segments", 'n', "K", LAM_OPT_INT64, offsetof(analyze_options, segments), "100", .min = 1,
     .max = 1e12, .help = "Segments that are looked at, at least, after the memory is full."},
    {"tokens", 0, "K", LAM_OPT_INT64, offsetof(analyze_options, tokens), "15000", .min = 1,
     .max = 1e12, .help = "Tokens whose attention is looked at."},
    {"interval", 0, "K", LAM_OPT_INT, offsetof(analyze_options, interval), "5", .min = 1,
     .max = LAM_MAX_LEN, .help = "Neighbouring distances that make one point."},
    {"layer", 0, "L", LAM_OPT_INT, offsetof(analyze_options, layer), "0", .max = LAM_MAX_LAYERS,
     .shown = "the last", .help = "Layer whose attention is drawn over distance."},
    {"batch-size", 'b', "B", LAM_OPT_INT, offsetof(analyze_options, batch), "8", .min = 1,
     .max = 1 << 20, .aliases = "batch",
     .help = "Columns the text is cut into; segments are taken from all of them (the sweep has its "
             "own)."},
    {"tgt-len", 0, "N", LAM_OPT_INT, offsetof(analyze_options, tgt_len), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's", .help = "Segment length."},
    {"mem-len", 0, "M", LAM_OPT_INT, offsetof(analyze_options, mem_len), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's", .help = "Memory length."},
    {"passage", 0, "K", LAM_OPT_INT, offsetof(analyze_options, passage), "1500", .max = 1 << 20,
     .help = "Tokens of the text that are shown in colours."},
    {.type = LAM_OPT_GROUP, .help = "Extrapolation"},
    {"extrapolate", 0, "M,...", LAM_OPT_INTS, offsetof(analyze_options, sweep),
     "64,128,192,256,320,384,448,512,576,640", .min = 1, .max = LAM_MAX_LEN,
     .help = "Memory lengths of the sweep."},
    {"extrapolate-len", 0, "N", LAM_OPT_INT, offsetof(analyze_options, sweep_len), "64", .min = 1,
     .max = LAM_MAX_LEN, .help = "Segment length of the sweep."},
    {"extrapolate-tokens", 0, "K", LAM_OPT_INT64, offsetof(analyze_options, sweep_tokens), "-1",
     .min = -1, .max = 1e15, .shown = "2,048 to 65,536, by the models' size",
     .help = "Tokens that each length predicts, the same for all; 0 reads the whole split. By "
             "default as many as all models read in about two minutes on two CPU cores."},
    {"no-extrapolate", 0, NULL, LAM_OPT_FLAG, offsetof(analyze_options, no_sweep),
     .help = "Leave the sweep out."},
    {.type = LAM_OPT_GROUP, .help = "Case study"},
    {"story", 0, "K", LAM_OPT_INT, offsetof(analyze_options, story), "256", .max = 1 << 20,
     .help = "Tokens by which each model continues the prompt; 0 leaves it out."},
    {"prompt", 'p', "TEXT", LAM_OPT_STRING, offsetof(analyze_options, prompt),
     .shown = "from the text", .help = "Prompt; @FILE reads a file, - standard input."},
    {"prompt-tokens", 0, "K", LAM_OPT_INT, offsetof(analyze_options, prompt_tokens), "256",
     .min = 1, .max = 1 << 20, .help = "Length of a prompt taken from the text."},
    {"temp", 0, "T", LAM_OPT_DOUBLE, offsetof(analyze_options, temp), "1", .max = 100,
     .aliases = "temperature", .help = "Temperature; 0 always takes the most likely token."},
    {"top-p", 0, "P", LAM_OPT_DOUBLE, offsetof(analyze_options, top_p), "0.95", .max = 1,
     .help = "Draw from the fewest tokens that together have this probability."},
    {"seed", 's', "S", LAM_OPT_INT64, offsetof(analyze_options, seed), "42",
     .help = "Seed of the draws."},
    {.type = LAM_OPT_GROUP, .help = "Appendix B"},
    {"encoding-width", 0, "D", LAM_OPT_INT, offsetof(analyze_options, encoding_width), "64",
     .min = 2, .max = LAM_MAX_WIDTH, .help = "Width d of g(x); even."},
    {.type = LAM_OPT_GROUP, .help = "Machine"},
    LAM_DEVICE_OPTIONS(analyze_options, device, "auto"),
    {0},
};

/* The models of one call: folders cut at commas, and their names. */
typedef struct targets {
    int n;
    char *dir[LAM_ANALYSED]; /* owned */
    char name[LAM_ANALYSED][64];
} targets;

static void close_targets(targets *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->dir[i]);
}

static lam_status add_target(targets *t, const char *dir, size_t size)
{
    if (size == 0)
        return lam_fail(LAM_ERR_ARG, "--model: a name is empty");
    if (t->n == LAM_ANALYSED)
        return lam_fail(LAM_ERR_ARG, "--model: more than %d models", LAM_ANALYSED);
    if (!(t->dir[t->n] = strndup(dir, size)))
        return lam_fail(LAM_ERR_MEMORY, "no memory for a path");
    t->n++;
    return LAM_OK;
}

/* A folder whose name has a comma is one folder. */
static lam_status split_targets(targets *t, const lam_string_list *list)
{
    for (int i = 0; i < list->n; i++) {
        const char *at = list->v[i];
        const bool whole = lam_path_exists(at);
        for (;;) {
            const size_t size = whole ? strlen(at) : strcspn(at, ",");
            LAM_TRY(add_target(t, at, size));
            if (at[size] == '\0')
                break;
            at += size + 1;
        }
    }
    return LAM_OK;
}

/* The last part of the path; models that share one are numbered. */
static void name_target(targets *t, int i, const lam_string_list *given)
{
    char path[64];
    size_t end = strlen(t->dir[i]), from;
    while (end > 1 && t->dir[i][end - 1] == '/')
        end--;
    for (from = end; from > 0 && t->dir[i][from - 1] != '/';)
        from--;
    snprintf(path, sizeof path, "%.*s", (int)(end - from > 55 ? 55 : end - from), t->dir[i] + from);
    lam_text_plain(t->name[i], sizeof *t->name, i < given->n ? given->v[i] : path);
    for (int k = 0; k < i; k++)
        if (strcmp(t->name[k], t->name[i]) == 0)
            snprintf(t->name[i], sizeof *t->name, "%.48s (%d)", path, i + 1);
}

/* Multiply-accumulates of a sweep whose length nobody has set: two minutes. */
static double work_of(const lam_dev *dev)
{
    return 120.0 * dev->macs_per_s;
}

static lam_analysis_options request(const analyze_options *o, const lam_dev *dev,
                                    const char *prompt, size_t size)
{
    lam_analysis_options w = {.probe = {.batch = o->batch,
                                        .tgt_len = o->tgt_len,
                                        .mem_len = o->mem_len,
                                        .segments = o->segments,
                                        .tokens = o->tokens,
                                        .interval = o->interval,
                                        .passage = o->passage},
                              .sweep = {.tgt_len = o->sweep_len,
                                        .n = o->no_sweep ? 0 : o->sweep.n,
                                        .tokens = o->sweep_tokens,
                                        .work = work_of(dev)},
                              .layer = o->layer,
                              .prompt = prompt,
                              .prompt_size = size,
                              .prompt_tokens = o->prompt_tokens,
                              .story_tokens = o->story,
                              .sampler = lam_sampler_defaults(),
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

/* All configurations first: a wrong folder is found before any work is done. */
static lam_status plan(lam_analysis *a, const targets *t, const lam_args *args)
{
    bool remembers = false;
    for (int i = 0; i < t->n; i++) {
        lam_config cfg;
        LAM_TRY(lam_folder_config(&cfg, t->dir[i]));
        LAM_TRY(lam_config_finish(&cfg));
        LAM_TRY(lam_analysis_plan(a, &cfg));
        remembers |= cfg.mem_len > 0;
    }
    if (!remembers && lam_option_given(args, "mem-len"))
        return lam_fail(LAM_ERR_ARG, "--mem-len is of no use with any of the models");
    return LAM_OK;
}

static lam_status measure(lam_analysis *a, const targets *t, const lam_args *args, lam_dev *dev)
{
    lam_status status = plan(a, t, args);
    lam_progress line;
    lam_progress_open(&line, args->quiet);
    for (int i = 0; i < t->n && status == LAM_OK; i++) {
        lam_engine *engine = NULL;
        status = lam_engine_open(&engine, t->dir[i], dev, NULL);
        if (status == LAM_OK)
            status = lam_engine_blame(engine,
                                      lam_analysis_add(a, engine, t->name[i], on_progress, &line));
        lam_engine_close(engine);
    }
    lam_progress_close(&line);
    return status;
}

static lam_status tell(const lam_analysis *a, const lam_args *args)
{
    const analyze_options *o = args->options;
    char path[4096];
    LAM_TRY(lam_path_join(path, sizeof path, o->out, "report.html"));
    if (!o->json) {
        if (!args->quiet)
            lam_print("%s\n", path);
        return LAM_OK;
    }
    json_t *root = lam_analysis_json(a);
    json_object_set_new(root, "report", lam_json_name(path));
    return lam_print_json(root, JSON_INDENT(2));
}

/* Before anything is measured: can the prompt be read? */
static lam_status check_prompt(const lam_corpus *corpus, const analyze_options *o,
                               const char *prompt, size_t size)
{
    int32_t *ids = NULL;
    size_t n;
    if (!prompt)
        return LAM_OK;
    const lam_status status = lam_vocab_encode(corpus->vocab, &ids, &n, prompt, size);
    free(ids);
    return lam_prompt_blame(status, o->prompt);
}

static lam_status analyze(const lam_args *args, const targets *t, const char *prompt, size_t size)
{
    const analyze_options *o = args->options;
    lam_corpus *corpus = NULL;
    lam_analysis *a = NULL;
    lam_dev *dev = NULL;
    lam_status status = lam_corpus_open(&corpus, o->data, LAM_CORPUS_VERIFY);
    if (status == LAM_OK)
        status = check_prompt(corpus, o, prompt, size);
    if (status == LAM_OK)
        status = lam_device_open(&dev, &o->device);
    if (status == LAM_OK) {
        const lam_analysis_options wanted = request(o, dev, prompt, size);
        status = lam_analysis_create(&a, corpus, (lam_split)o->split, &wanted);
    }
    if (status == LAM_OK)
        status = measure(a, t, args, dev);
    if (status == LAM_OK)
        status = lam_analysis_write(a, o->out);
    if (status == LAM_OK)
        status = tell(a, args);
    if (status == LAM_OK && lam_png_missing())
        lam_log(LAM_LOG_INFO, "no PNG files: %s", lam_png_missing());
    if (dev)
        dev->ops->close(dev);
    lam_analysis_free(a);
    lam_corpus_close(corpus);
    return status;
}

static lam_status run(const lam_args *args)
{
    const analyze_options *o = args->options;
    targets t = {0};
    char *prompt = NULL;
    size_t size = 0;
    LAM_TRY(lam_model_required(o->models.n > 0 ? o->models.v[0] : NULL));
    if (!o->data)
        return lam_fail(LAM_ERR_ARG, "--data is missing");
    if (o->no_sweep && lam_option_given(args, "extrapolate"))
        return lam_fail(LAM_ERR_ARG, "--extrapolate and --no-extrapolate contradict each other");
    if (o->story == 0 && o->prompt)
        return lam_fail(LAM_ERR_ARG, "--prompt and --story 0 contradict each other");
    LAM_TRY(lam_analysis_may_write(o->out));
    lam_status status = split_targets(&t, &o->models);
    if (status == LAM_OK && o->names.n > t.n)
        status = lam_fail(LAM_ERR_ARG, "--name: %d names for %d models", o->names.n, t.n);
    for (int i = 0; i < t.n && status == LAM_OK; i++)
        name_target(&t, i, &o->names);
    if (status == LAM_OK && o->prompt)
        status = lam_prompt_read(&prompt, &size, o->prompt);
    if (status == LAM_OK)
        status = analyze(args, &t, prompt, size);
    free(prompt);
    close_targets(&t);
    return status;
}

const lam_command lam_command_analyze = {
    .name = "analyze",
    .summary = "draw what the memories of models do",
    .description = "Reads a corpus with one or several models and writes report.html, one file "
                   "that needs nothing else, with the "
                   "paper's figures for them: attention over distance, memory interpolation by "
                   "layer and slot, longer memories "
                   "than trained with, loss by position, entropy, memory use, the text coloured by "
                   "loss, continuations of a "
                   "prompt. Every figure and table is also written as SVG, PNG, CSV and JSON.",
    .options = options,
    .options_size = sizeof(analyze_options),
    .examples = "lamemo analyze --model runs/lamemo,runs/xl --data data/bible --out analysis\n"
                "# quickly, without the sweep over memory lengths\n"
                "lamemo analyze -m runs/lamemo --data data/bible --no-extrapolate --segments 20",
    .run = run,
};
