/* cmd_info.c -- `lamemo info`: what a model is and what it will take, before anything is allocated. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/info_model.h"
#include "cli/info_tables.h"
#include "cli/scaling.h"
#include "cli/shape_options.h"
#include "core/file.h"
#include "core/log.h"
#include "data/corpus.h"
#include "model/boxed.h"
#include "model/configure.h"
#include "model/folder.h"
#include "train/state.h"

#include <limits.h>
#include <string.h>

typedef struct info_options {
    lam_shape_options shape; /* first */
    const char *model, *data;
    int batch, optim;
    lam_scaling scaling;
    lam_device_options device;
    bool table, presets, json;
} info_options;

static const lam_option options[] = {
    {"model", 'm', "DIR", LAM_OPT_PATH, offsetof(info_options, model),
     .help = "Model or run folder, or " LAM_BOXED ", the bundled model; instead of a preset."},
    LAM_PRESET_OPTION,
    LAM_MEMORY_OPTION(0),
    LAM_N_TOKEN_OPTION,
    {"data", 0, "DIR", LAM_OPT_PATH, offsetof(info_options, data),
     .help = "Corpus folder to train on, for the size of its vocabulary."},
    {"batch-size", 'b', "B", LAM_OPT_INT, offsetof(info_options, batch), .min = 1, .max = 1 << 20,
     .aliases = "batch", .shown = "the run's or the preset's, else 8",
     .help = "Number of streams in a batch, to compute the memory needed."},
    {"optim", 0, "NAME", LAM_OPT_CHOICE, offsetof(info_options, optim), "muon",
     .choices = lam_optim_names, .shown = "the run's, else muon, that of the default recipe",
     .help = "Optimiser, to compute the memory needed."},
    LAM_DEVICE_OPTIONS(info_options, device, "cpu"),
    {"ranks", 0, "R", LAM_OPT_INT, offsetof(info_options, scaling.ranks), .max = 1 << 20,
     .help = "Project the time of a training step on 1, 2, 4, ..., R processes (mpirun), by a "
             "model of latency and bandwidth."},
    {"step-ms", 0, "X", LAM_OPT_DOUBLE, offsetof(info_options, scaling.step_ms), "0", .max = 1e9,
     .shown = "an estimate", .help = "Measured time of a step of one process, for --ranks."},
    {"link-gbs", 0, "X", LAM_OPT_DOUBLE, offsetof(info_options, scaling.link_gbs), "25",
     .min = 1e-6, .max = 1e6, .help = "Bandwidth between two processes in GB/s, for --ranks."},
    {"link-us", 0, "X", LAM_OPT_DOUBLE, offsetof(info_options, scaling.link_us), "10", .max = 1e9,
     .help = "Latency of a message in microseconds, for --ranks."},
    {"no-overlap", 0, NULL, LAM_OPT_FLAG, offsetof(info_options, scaling.apart),
     .help = "For --ranks: exchange after the backward pass, not during it."},
    {"zero", 0, "N", LAM_OPT_INT, offsetof(info_options, scaling.zero), "0", .max = 1,
     .help = "For --ranks: 1 divides the optimiser's state between the processes, as lamemo train "
             "--zero 1 does."},
    {"presets", 0, NULL, LAM_OPT_FLAG, offsetof(info_options, presets),
     .help = "List the presets: sizes, batch, steps, parameters, memory to train, time of a "
             "training step on this machine."},
    {"table", 0, NULL, LAM_OPT_FLAG, offsetof(info_options, table),
     .help = "Print the multiply-accumulates of all memories, for wt103-base beside the paper's "
             "Table 1."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(info_options, json), .help = "Print as JSON."},
    {.type = LAM_OPT_REST, .help = "see lamemo train"},
#include "cli/shape_rows.inc"
    {0},
};

enum { BARE_BATCH = 8 }; /* where nothing says how a model is trained */

/* How the run in a folder (or the checkpoint it is) was trained; else as the preset is, and step -1. */
static void find_training(lam_info_model *s, const lam_args *args)
{
    const info_options *o = args->options;
    static const char *const places[] = {"last/training_state.json", "training_state.json"};
    char path[PATH_MAX];
    lam_train_state state;
    lam_settings_defaults(&s->trained);
    s->trained.batch_size = BARE_BATCH;
    if (!o->model)
        lam_settings_preset(&s->trained, o->shape.preset);
    s->step = -1;
    for (int i = 0; o->model && s->step < 0 && i < 2; i++) {
        if (lam_path_join(path, sizeof path, o->model, places[i]) != LAM_OK ||
            !lam_path_exists(path))
            continue;
        if (lam_train_state_load(&state, NULL, path) == LAM_OK) {
            s->trained = state.settings;
            s->step = state.step;
            lam_train_state_free(&state);
        } else
            lam_log(LAM_LOG_WARN, "%s", lam_error());
    }
    if (s->step < 0 || lam_option_given(args, "optim"))
        s->trained.optim = o->optim;
    if (lam_option_given(args, "batch-size"))
        s->trained.batch_size = o->batch;
}

static lam_status project(lam_info_model *s, const info_options *o)
{
    lam_scaling scaling = o->scaling;
    if (o->data) {
        lam_corpus *corpus = NULL;
        LAM_TRY(lam_corpus_open(&corpus, o->data, LAM_CORPUS_TRUST));
        scaling.tokens = corpus->info.tokens[LAM_TRAIN];
        lam_corpus_close(corpus);
    }
    return lam_scaling_print(&scaling, &s->model, &s->trained, o->json);
}

static lam_status show(const lam_config *cfg, const lam_args *args)
{
    const info_options *o = args->options;
    lam_info_model s = {.device = o->device.device};
    lam_dev *dev = NULL;
    find_training(&s, args);
    LAM_TRY(lam_device_open(&dev, &o->device));
    lam_status status = lam_model_declare(&s.model, cfg, dev);
    if (status == LAM_OK)
        status = o->scaling.ranks > 0 ? project(&s, o) : lam_info_print(&s, o->json);
    lam_model_undeclare(&s.model);
    dev->ops->close(dev);
    return status;
}

static lam_status fresh_for(lam_config *cfg, const lam_args *args, const char *data)
{
    lam_corpus *corpus = NULL;
    LAM_TRY(lam_corpus_open(&corpus, data, LAM_CORPUS_TRUST));
    const lam_status status = lam_shape_fresh(cfg, args, corpus->info.vocab_size);
    lam_corpus_close(corpus);
    return status;
}

/* The folder's configuration, or the preset's, with what the user wrote. */
static lam_status resolve(lam_config *cfg, const lam_args *args)
{
    const info_options *o = args->options;
    if (o->data && (o->model || lam_option_given(args, "n-token")))
        return lam_fail(LAM_ERR_ARG, "--data cannot be combined with --model or --n-token: each of "
                                     "them sets the vocabulary");
    if (o->data)
        return fresh_for(cfg, args, o->data);
    if (!o->model)
        return lam_shape_fresh(cfg, args, 0);
    if (lam_option_given(args, "preset") || lam_option_given(args, "memory"))
        return lam_fail(LAM_ERR_ARG,
                        "--model has its own shape and memory: without --preset and --memory");
    LAM_TRY(lam_folder_config(cfg, o->model));
    return lam_shape_change(cfg, args);
}

/* The presets are what they are: only the device and the form count. */
static lam_status list_presets(const lam_args *args)
{
    static const char *const fit[] = {"presets", "device", "threads", "precision", "json"};
    const info_options *o = args->options;
    const lam_option *table = args->table.rows;
    lam_dev *dev = NULL;
    for (int i = 0; table[i].help; i++) {
        bool fits = !args->given[i];
        for (size_t k = 0; k < sizeof fit / sizeof *fit && !fits; k++)
            fits = strcmp(table[i].name, fit[k]) == 0;
        if (!fits)
            return lam_fail(LAM_ERR_ARG, "--presets lists the presets as they are: without --%s",
                            table[i].name);
    }
    LAM_TRY(lam_device_open(&dev, &o->device));
    const lam_status status = lam_info_presets(dev, o->json);
    dev->ops->close(dev);
    return status;
}

static lam_status run(const lam_args *args)
{
    const info_options *o = args->options;
    lam_config cfg;
    static const char *const of_ranks[] = {"step-ms", "link-gbs", "link-us", "no-overlap", "zero"};
    if (o->presets)
        return list_presets(args);
    if (o->table && o->scaling.ranks > 0)
        return lam_fail(LAM_ERR_ARG, "--table and --ranks are two tables: pass one of them");
    for (size_t i = 0; i < sizeof of_ranks / sizeof *of_ranks && o->scaling.ranks == 0; i++)
        if (lam_option_given(args, of_ranks[i]))
            return lam_fail(LAM_ERR_ARG, "--%s is for --ranks only, the number of processes",
                            of_ranks[i]);
    LAM_TRY(resolve(&cfg, args));
    if (o->table)
        return lam_info_table(&cfg, o->model ? "" : o->shape.preset, o->json);
    return show(&cfg, args);
}

const lam_command lam_command_info = {
    .name = "info",
    .summary = "show a model's parameters, cost and memory needs",
    .description =
        "Prints the configuration of a model or preset, its parameters by group, the "
        "multiply-accumulates of one predicted token by part, and the memory that training and "
        "evaluation will need, without allocating it. The options of lamemo train that define a "
        "model (--n-layer, --d-model, --tgt-len, --mem-len, --cutoffs, ...) are accepted.",
    .options = options,
    .options_size = sizeof(info_options),
    .examples = "lamemo info --presets\n"
                "lamemo info --preset small --memory lamemo\n"
                "# a model that does not exist yet\n"
                "lamemo info --preset small --n-layer 8 --d-model 320 --n-head 5 --mem-len 512 "
                "--n-token 10000\n"
                "# the cost column of the paper's Table 1\n"
                "lamemo info --preset wt103-base --table\n"
                "# a step on up to 64 GPUs, given that of one\n"
                "lamemo info --preset enwik8-base --ranks 64 --step-ms 50",
    .run = run,
    .killable = true,
};
