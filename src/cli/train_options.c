/* train_options.c -- see train_options.h. */
#include "cli/train_options.h"

#include "cli/ranks.h"
#include "cli/recipes.h"
#include "core/log.h"
#include "mem/fields.h"
#include "model/boxed.h"
#include "model/configure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OPT(field) offsetof(lam_train_options, field)

/* clang-format off */
const lam_option lam_train_table[] = {
    {.type = LAM_OPT_GROUP, .help = "Model, data and folders"},
    {"data", 0, "DIR", LAM_OPT_PATH, OPT(data), .shown = "the run's, when resuming",
     .help = "Corpus folder made by lamemo prepare."},
    {"out", 'o', "DIR", LAM_OPT_PATH, OPT(out), .aliases = "work-dir",
     .help = "Run folder, with the checkpoints last and best and the logs."},
    LAM_PRESET_OPTION,
    LAM_MEMORY_OPTION('m'),
    {"init-from", 0, "MODEL", LAM_OPT_PATH, OPT(init_from), .shown = "random weights",
     .help = "Fine-tune: begin with the weights of this model or run folder, or of " LAM_BOXED ". Its sizes are kept; "
             "lengths and dropout may change. The corpus must have the model's vocabulary (prepare --vocab-from)."},
    {"resume", 'r', NULL, LAM_OPT_FLAG, OPT(resume), .aliases = "restart",
     .help = "Resume from the checkpoint DIR/last, bit for bit; without one, start a new run."},
    {"overwrite", 0, NULL, LAM_OPT_FLAG, OPT(overwrite),
     .help = "Delete the run that is in the folder, and nothing else, and start a new one."},
    {"config", 0, "FILE", LAM_OPT_PATH, OPT(config),
     .help = "Take options from a JSON file, with the keys of --print-config or any other option's name; options on "
             "the command line win."},

#include "cli/train_rows.inc"

#include "cli/shape_rows.inc"

    {.type = LAM_OPT_GROUP, .arg = "machine", .help = "Seed, machine and output"},
#define SEED(field, kind, use, text, low, high, ...) {"seed", 's', "N", LAM_OPT_SEED, OPT(settings.field), text,
    LAM_SEED_SETTING(SEED) .help = "Seed of initial weights, dropout and batches, or random; the log names it."},
#undef SEED
    LAM_DEVICE_OPTIONS(lam_train_options, device, "auto"),
    {"reduce", 0, "HOW", LAM_OPT_CHOICE, OPT(reduce), "exact", .choices = lam_reduce_names,
     .help = "Under mpirun: sum gradients exact, in a tree, so that the number of processes does not change the "
             "result, or fast, by the all-reduce of MPI or NCCL."},
    {"zero", 0, "N", LAM_OPT_INT, OPT(zero), "0", .max = 1,
     .help = "Under mpirun: 1 divides the optimiser's state between the processes, by whole matrices. The result is "
             "the same."},
    {"no-overlap", 0, NULL, LAM_OPT_FLAG, OPT(no_overlap),
     .help = "Under mpirun: sum gradients after the backward pass, not during it. The result is the same."},
    LAM_TIMEOUT_OPTION(lam_train_options, timeout),
    {"print-config", 0, NULL, LAM_OPT_FLAG, OPT(print_config),
     .help = "Print the model and all settings of this training as JSON, for --config, and exit."},
    {"json", 0, NULL, LAM_OPT_FLAG, OPT(json), .help = "Print the result as one JSON object."},
    {0},
};
/* clang-format on */

/* --epochs in steps: as often as a batch of segments is read before the text has been read so many times. */
static lam_status count_epochs(lam_settings *s, const lam_config *cfg, const lam_args *args,
                               int64_t tokens)
{
    const double epochs = ((const lam_train_options *)args->options)->epochs;
    if (!lam_option_given(args, "epochs"))
        return LAM_OK;
    if (lam_option_given(args, "max-step") || lam_option_given(args, "scheduler-time"))
        return lam_fail(LAM_ERR_ARG,
                        "--epochs and --%s contradict each other: both say how long the run is",
                        lam_option_given(args, "max-step") ? "max-step" : "scheduler-time");
    s->max_step = (int64_t)ceil(epochs * (double)tokens / ((double)s->batch_size * cfg->tgt_len));
    return LAM_OK;
}

/* A new run whose schedule follows the clock takes as many steps as there is time for, unless their number is written. */
static lam_status new_settings(lam_config *cfg, lam_settings *s, const lam_args *args,
                               const char *preset, int64_t tokens)
{
    const lam_train_options *o = args->options;
    lam_settings_defaults(s);
    lam_settings_preset(s, preset);
    if (o->settings.scheduler_time > 0.0)
        s->max_step = (int64_t)LAM_MANY;
    lam_options_copy(s, args, OPT(settings), sizeof *s, LAM_WRITTEN_OR_DEFAULT);
    LAM_TRY(count_epochs(s, cfg, args, tokens));
    lam_recipe_fit(cfg, s, args, tokens);
    return lam_settings_check(s); /* now that all are known */
}

/* The options with what the recipe adds to them. */
typedef struct recipe_view {
    lam_train_options options;
    lam_args args;
} recipe_view;

static void view_recipe(recipe_view *v, const lam_args *args, lam_recipe recipe)
{
    v->args = *args;
    v->options = *(const lam_train_options *)args->options;
    v->args.options = &v->options;
    lam_recipe_apply(&v->args, &v->options, recipe);
}

lam_status lam_train_fresh(lam_config *cfg, lam_settings *s, const lam_args *args, int n_token,
                           int64_t tokens)
{
    recipe_view v;
    const lam_train_options *o = args->options;
    view_recipe(&v, args, lam_recipe_chosen(args));
    LAM_TRY(lam_shape_fresh(cfg, &v.args, n_token));
    return new_settings(cfg, s, &v.args, o->shape.preset, tokens);
}

/* What may be other than in the model that a run begins with: nothing that its weights were made for. */
static void take_free_fields(lam_config *cfg, const lam_config *wanted)
{
    cfg->tgt_len = wanted->tgt_len;
    cfg->mem_len = wanted->mem_len;
    cfg->ext_len = wanted->ext_len;
    cfg->clamp_len = wanted->clamp_len;
    cfg->same_length = wanted->same_length;
    cfg->dropout = wanted->dropout;
    cfg->dropatt = wanted->dropatt;
    lam_fields_take_lengths(cfg, wanted);
}

lam_status lam_train_from(lam_config *cfg, lam_settings *s, const lam_args *args, int64_t tokens)
{
    const lam_train_options *o = args->options;
    lam_config wanted = *cfg;
    recipe_view v;
    if (lam_option_given(args, "preset"))
        return lam_fail(LAM_ERR_ARG,
                        "--preset and --init-from contradict each other: the model's sizes hold");
    if (lam_option_given(args, "memory") && strcmp(o->shape.memory, cfg->memory) != 0)
        return lam_fail(LAM_ERR_ARG, "--memory %s: the model of --init-from has %s",
                        o->shape.memory, cfg->memory);
    view_recipe(&v, args, lam_recipe_chosen(args));
    LAM_TRY(lam_shape_change(&wanted, &v.args));
    take_free_fields(cfg, &wanted);
    LAM_TRY(lam_shape_same(cfg, &wanted, args, "the model of --init-from has"));
    LAM_TRY(lam_config_same(cfg, &wanted, "the model of --init-from"));
    return new_settings(cfg, s, &v.args, o->shape.preset, tokens);
}

lam_status lam_train_resumed(lam_config *cfg, lam_settings *s, const lam_args *args, int64_t tokens)
{
    const lam_train_options *o = args->options;
    lam_config wanted = *cfg;
    recipe_view v;
    if (lam_option_given(args, "memory") && strcmp(o->shape.memory, cfg->memory) != 0)
        return lam_fail(LAM_ERR_ARG, "--memory %s: the run was begun with %s", o->shape.memory,
                        cfg->memory);
    view_recipe(&v, args, (lam_recipe)s->recipe); /* the run's */
    if (lam_option_given(args, "preset")) {
        v.options.shape.memory = cfg->memory;
        LAM_TRY(lam_shape_fresh(&wanted, &v.args, cfg->n_token));
    } else
        LAM_TRY(lam_shape_change(&wanted, args));
    if (!lam_option_given(args, "dropout"))
        wanted.dropout = cfg->dropout; /* a recipe may have fitted it */
    LAM_TRY(lam_shape_same(cfg, &wanted, args, "the run was begun with"));
    LAM_TRY(lam_config_same(cfg, &wanted, "the run to resume"));
    lam_options_copy(s, args, OPT(settings), sizeof *s, LAM_WRITTEN);
    LAM_TRY(count_epochs(s, cfg, args, tokens));
    return lam_settings_check(s);
}

void lam_train_warn(const lam_args *args, const lam_config *cfg, const lam_settings *s)
{
    const lam_option *table = args->table.rows;
    for (int i = 0; table[i].help; i++) {
        if (!args->given[i] || !table[i].with || strcmp(args->text[i], table[i].value) == 0)
            continue; /* a default that was written changes nothing anyway */
        const size_t n = strcspn(table[i].with, " ");
        const lam_option *other = table;
        while (!other->name || strlen(other->name) != n || strncmp(other->name, table[i].with, n))
            other++;
        const bool set = other->offset >= OPT(settings); /* else it says what the model is */
        const char *const from = set ? (const char *)s : (const char *)cfg;
        const size_t at = other->offset - (set ? OPT(settings) : OPT(shape.cfg));
        const char *value = other->choices[*(const int *)(const void *)(from + at)];
        if (!lam_word_listed(table[i].with + n, value))
            lam_log(LAM_LOG_WARN, "--%s has no effect with --%s %s, only with:%s", table[i].name,
                    other->name, value, table[i].with + n);
    }
}
