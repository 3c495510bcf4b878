/* train_options.c -- see train_options.h. */
#include "cli/train_options.h"

#include "cli/recipes.h"

#include <stdlib.h>
#include <string.h>

#define OPT(field) offsetof(lam_train_options, field)

const char *const lam_alpha_names[] = {"learned", "zero", "one", NULL};
const char *const lam_window_names[] = {"previous", "current", NULL};
const char *const lam_pooling_names[] = {"conv", "mean", "max", NULL};
const char *const lam_remainder_names[] = {"drop", "pad", "carry", NULL};
const char *const lam_sticky_names[] = {"off", "left", "uniform", NULL};
const char *const lam_init_names[] = {"normal", "uniform", NULL};
const char *const lam_init_out_names[] = {"same", "depth", "zero", NULL};

/* clang-format off */
const lam_option lam_train_table[] = {
    {"data", 0, "DIR", LAM_OPT_PATH, OPT(data), .shown = "on resuming, the run's own",
     .help = "Corpus folder made by lamemo prepare."},
    {"out", 'o', "DIR", LAM_OPT_PATH, OPT(out), .aliases = "work-dir",
     .help = "Run folder: checkpoints last and best, logs."},
    {"preset", 'p', "NAME", LAM_OPT_STRING, OPT(preset), "tiny",
     .help = "tiny, small, enwik8-base, text8-base, wt103-base or wt103-adaptive."},
    {"memory", 'm', "NAME", LAM_OPT_STRING, OPT(memory), "lamemo",
     .help = "none, xl, compressive, infinite or lamemo."},
    {"resume", 'r', NULL, LAM_OPT_FLAG, OPT(resume), .aliases = "restart",
     .help = "Go on from DIR/last, bit for bit; begins a new run where there is none yet."},
    {"overwrite", 0, NULL, LAM_OPT_FLAG, OPT(overwrite),
     .help = "Throw away the run that is in the folder."},
    {"seed", 's', "N", LAM_OPT_INT64, OPT(settings.seed), "1111",
     .help = "Seed of weights, dropout and batches."},
    LAM_DEVICE_OPTIONS(lam_train_options, device, "auto"),

#include "cli/train_rows.inc"
    {0},
};
/* clang-format on */

/* Copies the fields of one part of the options (cfg or settings) that count into `to`. */
typedef enum which { WRITTEN, WRITTEN_OR_DEFAULT } which;

static void copy_fields(void *to, const lam_args *args, size_t part, size_t size, which w)
{
    const char *from = (const char *)args->options + part;
    const lam_option *table = args->command->options;
    for (int i = 0; table[i].help; i++) {
        const size_t bytes = table[i].type == LAM_OPT_DOUBLE  ? sizeof(double)
                             : table[i].type == LAM_OPT_INT64 ? sizeof(int64_t)
                                                              : sizeof(int);
        const int counts = args->given[i] || (w == WRITTEN_OR_DEFAULT && table[i].value);
        if (counts && table[i].offset >= part && table[i].offset < part + size)
            memcpy((char *)to + (table[i].offset - part), from + (table[i].offset - part), bytes);
    }
}

/* wt103's and lm1b's cutoffs as published; others in the proportion of the former. */
static lam_status adaptive_cutoffs(lam_config *cfg)
{
    static const int wt103[] = {20000, 40000, 200000}, lm1b[] = {60000, 100000, 640000};
    const int V = cfg->n_token;
    if (V < 1000)
        return lam_fail(LAM_ERR_ARG, "--adaptive: a vocabulary of %d has no rare types", V);
    cfg->n_cutoffs = 3;
    if (V > 200000)
        memcpy(cfg->cutoffs, V > 700000 ? lm1b : wt103, sizeof wt103);
    else {
        cfg->cutoffs[0] = V * 3 / 40;
        cfg->cutoffs[1] = V * 3 / 20;
        cfg->cutoffs[2] = V / 4 * 3;
    }
    return LAM_OK;
}

static lam_status apply_lists(lam_config *cfg, const lam_args *args)
{
    const lam_train_options *o = args->options;
    if (o->adaptive && o->cutoffs.n == 0 && cfg->n_cutoffs == 0)
        LAM_TRY(adaptive_cutoffs(cfg));
    if (o->cutoffs.n > LAM_MAX_CUTOFFS)
        return lam_fail(LAM_ERR_ARG, "--cutoffs: %d numbers, at most %d", o->cutoffs.n,
                        LAM_MAX_CUTOFFS);
    if (o->cutoffs.n > 0) {
        cfg->n_cutoffs = o->cutoffs.n;
        memset(cfg->cutoffs, 0, sizeof cfg->cutoffs);
        memcpy(cfg->cutoffs, o->cutoffs.v, (size_t)o->cutoffs.n * sizeof *o->cutoffs.v);
    }
    return LAM_OK;
}

/* What the user wrote about the model, on top of what *cfg says. */
static lam_status apply_model(lam_config *cfg, const lam_args *args, which w)
{
    const lam_train_options *o = args->options;
    const int width = cfg->d_model, rows = cfg->mem_len, length = cfg->tgt_len;
    copy_fields(cfg, args, OPT(cfg), sizeof *cfg, w);
    if (cfg->d_model != width && !lam_option_given(args, "d-embed"))
        cfg->d_embed = 0; /* it follows */
    if (cfg->mem_len != rows && !lam_option_given(args, "cmem-len"))
        cfg->cmem_len = 0; /* it follows too */
    if (cfg->mem_len != rows && !lam_option_given(args, "ltm-basis"))
        cfg->ltm_basis = 0;
    if (cfg->tgt_len != length && !lam_option_given(args, "ltm-block"))
        cfg->ltm_block = 0;
    cfg->ltm_share_proj |= o->ltm_share_proj;
    cfg->same_length |= o->same_length;
    cfg->pre_lnorm |= o->pre_lnorm;
    cfg->tie_weight &= !o->not_tied;
    LAM_TRY(apply_lists(cfg, args));
    /* attn_type says which memory it belongs to, unless the user says both. */
    if (lam_option_given(args, "attn-type") && !lam_option_given(args, "memory"))
        cfg->memory[0] = '\0';
    return lam_config_finish(cfg);
}

static lam_status apply_settings(lam_settings *s, const lam_args *args, which w)
{
    const lam_train_options *o = args->options;
    copy_fields(s, args, OPT(settings), sizeof *s, w);
    s->roll |= o->roll;
    s->varlen |= o->varlen;
    s->clip_together |= o->clip_together;
    s->half_loss |= o->half_loss;
    return lam_settings_check(s);
}

/* The options with what the recipe adds to them. */
typedef struct recipe_view {
    lam_train_options options;
    lam_args args;
} recipe_view;

static void view_recipe(recipe_view *v, const lam_args *args, int recipe)
{
    v->args = *args;
    v->options = *(const lam_train_options *)args->options;
    v->args.options = &v->options;
    lam_recipe_apply(&v->args, &v->options, recipe);
}

lam_status lam_train_fresh(lam_config *cfg, lam_settings *s, const lam_args *args, int n_token)
{
    recipe_view v;
    const lam_train_options *o = args->options;
    view_recipe(&v, args, o->settings.recipe);
    LAM_TRY(lam_config_preset(cfg, o->preset, o->memory));
    cfg->n_token = n_token;
    LAM_TRY(apply_model(cfg, &v.args, WRITTEN_OR_DEFAULT));
    lam_settings_defaults(s);
    lam_settings_preset(s, o->preset);
    return apply_settings(s, &v.args, WRITTEN_OR_DEFAULT);
}

lam_status lam_train_resumed(lam_config *cfg, lam_settings *s, const lam_args *args)
{
    const lam_train_options *o = args->options;
    lam_config wanted = *cfg;
    recipe_view v;
    view_recipe(&v, args, s->recipe); /* the run's */
    if (lam_option_given(args, "preset")) {
        LAM_TRY(lam_config_preset(&wanted, o->preset,
                                  lam_option_given(args, "memory") ? o->memory : cfg->memory));
        wanted.n_token = cfg->n_token;
        LAM_TRY(apply_model(&wanted, &v.args, WRITTEN_OR_DEFAULT));
    } else {
        if (lam_option_given(args, "memory") && strcmp(o->memory, cfg->memory) != 0)
            return lam_fail(LAM_ERR_ARG, "--memory %s: the run was begun with %s", o->memory,
                            cfg->memory);
        LAM_TRY(apply_model(&wanted, args, WRITTEN));
    }
    LAM_TRY(lam_config_same(cfg, &wanted, "the run to resume"));
    return apply_settings(s, args, WRITTEN);
}
