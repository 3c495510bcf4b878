/* cmd_info.c -- `lamemo info`: what a model is and what it will take, before anything is allocated. */
#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/device.h"
#include "cli/footprint.h"
#include "cli/info_tables.h"
#include "cli/output.h"
#include "cli/scaling.h"
#include "cli/shape_options.h"
#include "cli/term.h"
#include "core/budget.h"
#include "core/file.h"
#include "core/log.h"
#include "data/corpus.h"
#include "io/json.h"
#include "model/boxed.h"
#include "model/configure.h"
#include "model/folder.h"
#include "model/macs.h"
#include "model/stack.h"
#include "train/state.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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
     .help =
         "Project the time of a training step on 1, 2, 4, ..., R processes (mpirun), by a model "
         "of latency and bandwidth."},
    {"step-ms", 0, "X", LAM_OPT_DOUBLE, offsetof(info_options, scaling.step_ms), "0", .max = 1e9,
     .shown = "an estimate", .help = "Measured time of a step of one process, for --ranks."},
    {"link-gbs", 0, "X", LAM_OPT_DOUBLE, offsetof(info_options, scaling.link_gbs), "25",
     .min = 1e-6, .max = 1e6, .help = "Bandwidth between two processes in GB/s, for --ranks."},
    {"link-us", 0, "X", LAM_OPT_DOUBLE, offsetof(info_options, scaling.link_us), "10", .max = 1e9,
     .help = "Latency of a message in microseconds, for --ranks."},
    {"no-overlap", 0, NULL, LAM_OPT_FLAG, offsetof(info_options, scaling.apart),
     .help = "For --ranks: exchange after the backward pass, as GPUs do, not beside it."},
    {"zero", 0, "N", LAM_OPT_INT, offsetof(info_options, scaling.zero), "0", .max = 1,
     .help = "For --ranks: 1 divides the optimiser's state between the processes, as lamemo train "
             "--zero 1 does."},
    {"presets", 0, NULL, LAM_OPT_FLAG, offsetof(info_options, presets),
     .help = "List the presets: sizes, batch, steps, parameters, memory to train, time of a "
             "training step "
             "on this machine."},
    {"table", 0, NULL, LAM_OPT_FLAG, offsetof(info_options, table),
     .help = "Print the multiply-accumulates of all memories, for wt103-base beside the paper's "
             "Table 1."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(info_options, json), .help = "Print as JSON."},
    {.type = LAM_OPT_REST, .help = "see lamemo train"},
#include "cli/shape_rows.inc"
    {0},
};

/* Parameters by what they are for. */
typedef struct group {
    const char *name, *prefix, *infix;
    size_t count;
} group;

enum { GROUPS = 6 };

static void count_groups(const lam_model *model, group groups[GROUPS])
{
    const group kinds[GROUPS] = {{"embedding", "word_emb.", "", 0},
                                 {"softmax", "crit.", "", 0},
                                 {"positions", "r_", "", 0},
                                 {"norms", "layers.", "layer_norm", 0},
                                 {"feed-forward", "layers.", "pos_ff", 0},
                                 {"attention", "layers.", "", 0}};
    memcpy(groups, kinds, sizeof kinds);
    for (int i = 0; i < model->params.n; i++) {
        const lam_param *p = &model->params.list[i];
        int g = 0;
        while (g < GROUPS - 1 && (strncmp(p->name, groups[g].prefix, strlen(groups[g].prefix)) ||
                                  !strstr(p->name, groups[g].infix)))
            g++;
        groups[g].count += lam_param_count(p);
    }
}

/* What is looked at. */
typedef struct subject {
    const info_options *o;
    lam_model model;      /* declared, without memory */
    lam_settings trained; /* how, where the folder says so: */
    int64_t step;         /* else -1 */
} subject;

enum { BARE_BATCH = 8 }; /* where nothing says how a model is trained */

static void print_config(const lam_config *cfg)
{
    char memory[LAM_DESCRIPTION_MAX];
    printf("memory %s, %d layers, d_model %d, %d heads of %d, d_inner %d\n",
           lam_describe_memory(memory, cfg), cfg->n_layer, cfg->d_model, cfg->n_head, cfg->d_head,
           cfg->d_inner);
    printf("vocabulary %d", cfg->n_token);
    if (cfg->d_embed != cfg->d_model)
        printf(", d_embed %d", cfg->d_embed);
    for (int i = 0; i < cfg->n_cutoffs; i++)
        printf("%s%d", i == 0 ? ", cutoffs " : "/", cfg->cutoffs[i]);
    printf("; tgt_len %d, mem_len %d; dropout %g, dropatt %g%s%s\n", cfg->tgt_len, cfg->mem_len,
           cfg->dropout, cfg->dropatt, cfg->pre_lnorm ? ", pre-norm" : "",
           cfg->same_length ? ", same length" : "");
}

/* How the run in a folder (or the checkpoint it is) was trained; else as the preset is, and step -1. */
static void find_training(subject *s, const lam_args *args)
{
    static const char *const places[] = {"last/training_state.json", "training_state.json"};
    char path[PATH_MAX];
    lam_train_state state;
    lam_settings_defaults(&s->trained);
    s->trained.batch_size = BARE_BATCH;
    if (!s->o->model)
        lam_settings_preset(&s->trained, s->o->shape.preset);
    s->step = -1;
    for (int i = 0; s->o->model && s->step < 0 && i < 2; i++) {
        if (lam_path_join(path, sizeof path, s->o->model, places[i]) != LAM_OK ||
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
        s->trained.optim = s->o->optim;
    if (lam_option_given(args, "batch-size"))
        s->trained.batch_size = s->o->batch;
}

static void print_training(const lam_settings *s, int64_t step)
{
    char length[LAM_DESCRIPTION_MAX];
    printf("trained for %lld %s%s: recipe %s: %s, lr %.4g, %s, warm-up of %lld, decay %g, clip %g",
           (long long)step, lam_settings_timed(s) ? "steps in " : "of ",
           lam_describe_length(length, s), lam_recipe_names[s->recipe], lam_optim_names[s->optim],
           s->lr, lam_schedule_names[s->scheduler], (long long)s->warmup_step, s->weight_decay,
           s->clip);
    if (s->mem_reset.every > 0)
        printf(", memory emptied every %lld steps", (long long)s->mem_reset.every);
    if (s->mem_reset.document)
        printf(", memory emptied at every document");
    putchar('\n');
}

/* One line of the text, one field of the JSON. */
typedef struct amount {
    const char *text, *key;
    double n;
    bool optional; /* 0: no line */
} amount;

enum { MACS = 7, BYTES = 9 };

static void list_macs(amount out[MACS], const lam_macs *m)
{
    const amount all[MACS] = {{"projections", "project", m->project, true},
                              {"feed-forward", "ffn", m->ffn, true},
                              {"attention", "attention", m->attention, true},
                              {"memory rows", "memory", m->memory, true},
                              {"look-ahead attention", "look_ahead", m->look_ahead, true},
                              {"external memory", "external", m->external, true},
                              {"softmax", "softmax", m->softmax, true}};
    memcpy(out, all, sizeof all);
}

static void list_bytes(amount out[BYTES], const lam_footprint *b, const char *optimiser)
{
    const amount all[BYTES] = {
        {"weights", "weights", (double)b->weights, false},
        {"gradients", "gradients", (double)b->gradients, false},
        {optimiser, "optimizer", (double)b->optimizer, false},
        {"activations, training", "activations", (double)b->train.activations, false},
        {"memory state", "state", (double)b->train.state, false},
        {"scratch", "scratch", (double)b->train.scratch, false},
        {"program and libraries", "program", (double)b->program, true},
        {"training, all together", "train", (double)b->all_train, false},
        {"evaluation, all together", "eval", (double)b->all_eval, false}};
    memcpy(out, all, sizeof all);
}

static void print_text(const subject *s, const group *groups, const lam_footprint *b)
{
    const lam_model *model = &s->model;
    const lam_macs m = lam_macs_token(&model->cfg, model->cfg.memory);
    amount macs[MACS], sizes[BYTES];
    char text[32], optimiser[64];
    list_macs(macs, &m);
    snprintf(optimiser, sizeof optimiser, "optimiser (%s)", lam_optim_names[s->trained.optim]);
    list_bytes(sizes, b, optimiser);
    print_config(&model->cfg);
    if (s->step >= 0)
        print_training(&s->trained, s->step);
    printf("\n%-28s %20s\n", "parameters",
           lam_format_count(text, sizeof text, (int64_t)lam_model_count(model)));
    for (int g = 0; g < GROUPS; g++)
        printf("  %-26s %20s\n", groups[g].name,
               lam_format_count(text, sizeof text, (int64_t)groups[g].count));

    printf("\n%-30s %18.3f M\n", "multiply-accumulates per token", m.total / 1e6);
    for (int i = 0; i < MACS; i++)
        if (macs[i].n > 0.0 || !macs[i].optional)
            printf("  %-26s %20.3f M\n", macs[i].text, macs[i].n / 1e6);
    printf("  %-26s %20.3f G\n", "one training step",
           lam_macs_step(&model->cfg, s->trained.batch_size) / 1e9);

    printf("\n%-28s %s: %s\n", "device", model->dev->ops->name, model->dev->ops->summary);
    printf("\nbytes on %s, batch %d\n", s->o->device.device, s->trained.batch_size);
    for (int i = 0; i < BYTES; i++)
        if (sizes[i].n > 0.0 || !sizes[i].optional)
            printf("  %-26s %20s\n", sizes[i].text, lam_format_size(text, sizeof text, sizes[i].n));
}

static lam_status print_json(const subject *s, const group *groups, const lam_footprint *b)
{
    const lam_model *model = &s->model;
    const lam_macs m = lam_macs_token(&model->cfg, model->cfg.memory);
    amount macs[MACS], sizes[BYTES];
    char *text = NULL;
    json_t *config = NULL;
    LAM_TRY(lam_config_print(&text, &model->cfg));
    const lam_status status = lam_json_parse(&config, "config", text, strlen(text));
    free(text);
    LAM_TRY(status);
    json_t *params = json_object(), *per_token = json_object(), *by_use = json_object();
    for (int g = 0; g < GROUPS; g++)
        json_object_set_new(params, groups[g].name, json_integer((json_int_t)groups[g].count));
    list_macs(macs, &m);
    for (int i = 0; i < MACS; i++)
        json_object_set_new(per_token, macs[i].key, json_real(macs[i].n));
    json_object_set_new(per_token, "total", json_real(m.total));
    list_bytes(sizes, b, "");
    for (int i = 0; i < BYTES; i++)
        json_object_set_new(by_use, sizes[i].key, json_integer((json_int_t)sizes[i].n));

    json_t *root = json_pack(
        "{s:o, s:I, s:o, s:o, s:f, s:o, s:s, s:s, s:i, s:s}", "config", config, "parameters",
        (json_int_t)lam_model_count(model), "parameters_by_group", params, "macs_per_token",
        per_token, "macs_per_step", lam_macs_step(&model->cfg, s->trained.batch_size), "bytes",
        by_use, "device", s->o->device.device, "device_summary", model->dev->ops->summary,
        "batch_size", s->trained.batch_size, "optim", lam_optim_names[s->trained.optim]);
    if (s->step >= 0) {
        json_object_set_new(root, "step", json_integer(s->step));
        json_object_set_new(root, "settings", lam_settings_print(&s->trained));
    }
    return lam_print_json(root, JSON_INDENT(2));
}

static lam_status project(subject *s)
{
    lam_scaling scaling = s->o->scaling;
    if (s->o->data) {
        lam_corpus *corpus = NULL;
        LAM_TRY(lam_corpus_open(&corpus, s->o->data, LAM_CORPUS_TRUST));
        scaling.tokens = corpus->info.tokens[LAM_TRAIN];
        lam_corpus_close(corpus);
    }
    return lam_scaling_print(&scaling, &s->model, &s->trained, s->o->json);
}

static lam_status show(const lam_config *cfg, const lam_args *args)
{
    subject s = {.o = args->options};
    lam_dev *dev = NULL;
    group groups[GROUPS];
    lam_footprint b;
    find_training(&s, args);
    LAM_TRY(lam_device_open(&dev, &s.o->device));
    lam_status status = lam_model_declare(&s.model, cfg, dev);
    if (status == LAM_OK && s.o->scaling.ranks > 0)
        status = project(&s);
    else if (status == LAM_OK)
        status = lam_footprint_measure(&b, &s.model, &s.trained);
    if (status == LAM_OK && s.o->scaling.ranks == 0) {
        count_groups(&s.model, groups);
        if (s.o->json)
            status = print_json(&s, groups, &b);
        else
            print_text(&s, groups, &b);
    }
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
        return lam_fail(LAM_ERR_ARG, "--model has its own shape and memory: without --preset and "
                                     "--memory");
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
        "model "
        "(--n-layer, --d-model, --tgt-len, --mem-len, --cutoffs, ...) are accepted.",
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
