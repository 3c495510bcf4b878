/* train_options.c -- see train_options.h. */
#include "cli/train_options.h"

#include <stdlib.h>
#include <string.h>

#define OPT(field) offsetof(lam_train_options, field)
#define PRESET     "the preset's"

static const char *const alphas[] = {"learned", "zero", "one", NULL};
static const char *const windows[] = {"previous", "current", NULL};
static const char *const poolings[] = {"conv", "mean", "max", NULL};
static const char *const remainders[] = {"drop", "pad", "carry", NULL};
static const char *const stickies[] = {"off", "left", "uniform", NULL};
static const char *const inits[] = {"normal", "uniform", NULL};

static const double MANY = 1e15;

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

    {.type = LAM_OPT_GROUP, .help = "Length of the run and its batches"},
    {"max-step", 0, "N", LAM_OPT_INT64, OPT(settings.max_step), .min = 1, .max = MANY,
     .shown = PRESET, .help = "Updates."},
    {"max-time", 0, "SECONDS", LAM_OPT_DOUBLE, OPT(settings.max_time), "0", .max = 1e9,
     .help = "Stop after so long, with an evaluation and a checkpoint; 0: no limit."},
    {"batch-size", 'b', "B", LAM_OPT_INT, OPT(settings.batch_size), .min = 1, .max = 1 << 20,
     .shown = PRESET, .help = "Columns of text read side by side."},
    {"batch-chunk", 0, "N", LAM_OPT_INT, OPT(settings.batch_chunk), "1", .min = 1, .max = 1 << 20,
     .help = "Compute a batch in N parts, to save memory."},
    {"tgt-len", 0, "N", LAM_OPT_INT, OPT(cfg.tgt_len), .min = 1, .max = LAM_MAX_LEN,
     .shown = PRESET, .help = "Segment length."},
    {"mem-len", 0, "M", LAM_OPT_INT, OPT(cfg.mem_len), .max = LAM_MAX_LEN, .shown = PRESET,
     .help = "Memory length."},
    {"roll", 0, NULL, LAM_OPT_FLAG, OPT(roll),
     .help = "Turn every column by a random shift before each epoch."},
    {"varlen", 0, NULL, LAM_OPT_FLAG, OPT(varlen), .help = "Draw the length of every segment."},

    {.type = LAM_OPT_GROUP, .help = "Optimisation"},
    {"optim", 0, "NAME", LAM_OPT_CHOICE, OPT(settings.optim), "adam", .choices = lam_optim_names,
     .help = "adam, sgd or adagrad."},
    {"lr", 0, "X", LAM_OPT_DOUBLE, OPT(settings.lr), "0.00025", .max = 1e6,
     .help = "Highest learning rate."},
    {"mom", 0, "X", LAM_OPT_DOUBLE, OPT(settings.mom), "0", .max = 1, .help = "Momentum of sgd."},
    {"clip", 0, "X", LAM_OPT_DOUBLE, OPT(settings.clip), "0.25", .max = 1e30,
     .help = "Largest norm of the gradient; 0: as it is."},
    {"clip-together", 0, NULL, LAM_OPT_FLAG, OPT(clip_together),
     .help = "One norm for all, instead of one of its own for what learns from the compressive "
             "memory's loss alone."},
    {"weight-decay", 0, "X", LAM_OPT_DOUBLE, OPT(settings.weight_decay), "0", .max = 1e6,
     .help = "Decoupled decay of matrices."},
    {"loss-scale", 0, "X", LAM_OPT_DOUBLE, OPT(settings.loss_scale), "1", .min = 1e-6, .max = 1e6,
     .help = "Factor of the loss before clipping; 0.5 is what the published runs did."},
    {"scheduler", 0, "NAME", LAM_OPT_CHOICE, OPT(settings.scheduler), "cosine",
     .choices = lam_schedule_names, .help = "cosine, linear, inv_sqrt, constant or dev_perf."},
    {"warmup-step", 0, "N", LAM_OPT_INT64, OPT(settings.warmup_step), "0", .max = MANY,
     .help = "Steps of linear rise at the beginning."},
    {"max-step-scheduler", 0, "N", LAM_OPT_INT64, OPT(settings.max_step_scheduler), "0",
     .max = MANY, .shown = "max-step", .help = "Length of cosine and linear."},
    {"eta-min", 0, "X", LAM_OPT_DOUBLE, OPT(settings.eta_min), "0", .max = 1e6,
     .aliases = "lr-min", .help = "Lowest learning rate of cosine, linear and dev_perf."},
    {"decay-rate", 0, "X", LAM_OPT_DOUBLE, OPT(settings.decay_rate), "0.5", .max = 1,
     .help = "dev_perf: factor of the rate when evaluations do not improve."},
    {"patience", 0, "N", LAM_OPT_INT, OPT(settings.patience), "0", .max = 1 << 30,
     .help = "dev_perf: evaluations to wait before that."},

    {.type = LAM_OPT_GROUP, .help = "Reports and evaluation"},
    {"log-interval", 0, "N", LAM_OPT_INT64, OPT(settings.log_interval), "100", .min = 1,
     .max = MANY, .help = "Steps between two lines of the log."},
    {"eval-interval", 0, "N", LAM_OPT_INT64, OPT(settings.eval_interval), "1000", .max = MANY,
     .help = "Steps between evaluations, each with a checkpoint; 0: only at the end."},
    {"save-interval", 0, "N", LAM_OPT_INT64, OPT(settings.save_interval), "0", .max = MANY,
     .shown = "eval-interval", .help = "Steps between checkpoints besides."},
    {"max-eval-steps", 0, "N", LAM_OPT_INT64, OPT(settings.max_eval_steps), "0",
     .max = MANY, .aliases = "eval-max-steps", .help = "Segments of an evaluation; 0: all."},
    {"eval-batch-size", 0, "B", LAM_OPT_INT, OPT(settings.eval_batch_size), "16", .min = 1,
     .max = 1 << 20, .help = "Columns of an evaluation."},
    {"eval-tgt-len", 0, "N", LAM_OPT_INT, OPT(settings.eval_tgt_len), "0", .max = LAM_MAX_LEN,
     .shown = "tgt-len",
     .help = "Segment length of an evaluation; the memory changes so that the span stays."},
    {"no-test", 0, NULL, LAM_OPT_FLAG, OPT(no_test),
     .help = "Do not evaluate the best model on the test split at the end."},

    {.type = LAM_OPT_GROUP, .help = "Model"},
    {"n-layer", 0, "N", LAM_OPT_INT, OPT(cfg.n_layer), .min = 1, .max = LAM_MAX_LAYERS,
     .shown = PRESET, .help = "Layers."},
    {"n-head", 0, "N", LAM_OPT_INT, OPT(cfg.n_head), .min = 1, .max = LAM_MAX_WIDTH,
     .shown = PRESET, .help = "Heads."},
    {"d-model", 0, "N", LAM_OPT_INT, OPT(cfg.d_model), .min = 2, .max = LAM_MAX_WIDTH,
     .shown = PRESET, .help = "Width of the model."},
    {"d-head", 0, "N", LAM_OPT_INT, OPT(cfg.d_head), .min = 1, .max = LAM_MAX_WIDTH,
     .shown = PRESET, .help = "Width of a head."},
    {"d-inner", 0, "N", LAM_OPT_INT, OPT(cfg.d_inner), .min = 1, .max = LAM_MAX_WIDTH,
     .shown = PRESET, .help = "Inner width of the feed-forward part."},
    {"d-embed", 0, "N", LAM_OPT_INT, OPT(cfg.d_embed), .min = -1, .max = LAM_MAX_WIDTH,
     .shown = "d-model", .help = "Width of the embeddings."},
    {"dropout", 0, "P", LAM_OPT_DOUBLE, OPT(cfg.dropout), "0.1", .max = 0.99, .help = "Dropout."},
    {"dropatt", 0, "P", LAM_OPT_DOUBLE, OPT(cfg.dropatt), "0", .max = 0.99,
     .help = "Dropout of attention probabilities."},
    {"attn-type", 0, "N", LAM_OPT_INT, OPT(cfg.attn_type), .max = 33, .shown = "by memory",
     .help = "0 XL, 1 learned, 2 absolute (memory none), 3 LaMemo, 31 LaMemo with XL's encoding, "
             "32 with two content biases, 33 with the full window."},
    {"alpha", 0, "WORD", LAM_OPT_CHOICE, OPT(cfg.alpha), "learned", .choices = alphas,
     .help = "Interpolation of LaMemo's memory: learned, zero (only what is new) or one (only what "
             "was known)."},
    {"window", 0, "WORD", LAM_OPT_CHOICE, OPT(cfg.window), "previous", .choices = windows,
     .help = "Keys new to LaMemo's memory: as many as the previous segment had, or the current "
             "one (the authors' code)."},
    {"interp-eps", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.interp_eps), "1e-6", .max = 1,
     .help = "Epsilon of the interpolation."},
    {"cmem-len", 0, "N", LAM_OPT_INT, OPT(cfg.cmem_len), .min = 1, .max = LAM_MAX_LEN,
     .shown = "mem-len", .help = "Rows of the compressive memory's second, coarser part."},
    {"rate", 0, "N", LAM_OPT_INT, OPT(cfg.rate), "4", .min = 1, .max = LAM_MAX_RATE,
     .aliases = "compression-rate", .help = "Rows that compression makes one."},
    {"pooling", 0, "WORD", LAM_OPT_CHOICE, OPT(cfg.pooling), "conv", .choices = poolings,
     .help = "How it does so: conv (learned), mean or max."},
    {"remainder", 0, "WORD", LAM_OPT_CHOICE, OPT(cfg.remainder), "drop", .choices = remainders,
     .help = "Rows that fill no whole group: drop them, pad with zeros or carry them on."},
    {"aux-weight", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.aux_weight), "1", .max = 1e6,
     .help = "Weight of the loss that trains the compression."},
    {"ltm-basis", 0, "N", LAM_OPT_INT, OPT(cfg.ltm_basis), .min = 1, .max = LAM_MAX_BASIS,
     .shown = "mem-len", .help = "Basis functions of the infinite memory's long-term part."},
    {"ltm-block", 0, "N", LAM_OPT_INT, OPT(cfg.ltm_block), .min = 2, .max = LAM_MAX_LEN,
     .shown = "tgt-len", .help = "Rows that enter it together."},
    {"ltm-samples", 0, "N", LAM_OPT_INT, OPT(cfg.ltm_samples), "512", .min = 1, .max = LAM_MAX_LEN,
     .help = "Samples of the old signal for the next one."},
    {"ltm-sticky", 0, "WORD", LAM_OPT_CHOICE, OPT(cfg.ltm_sticky), .choices = stickies,
     .shown = "left", .help = "Draw them where attention was: off (evenly), left (at left edges of "
                              "bins) or uniform (within bins)."},
    {"ltm-tau", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.ltm_tau), "0.5", .max = 1,
     .help = "The old signal's share of the next one."},
    {"ltm-ridge", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.ltm_ridge), "0.5", .max = 1e6,
     .help = "Ridge of the regression."},
    {"ltm-sigma0", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.ltm_sigma0), "0.05", .max = 1e3,
     .help = "Deviation that attention to it should have."},
    {"ltm-kl", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.ltm_kl), "1e-6", .max = 1e6,
     .help = "Weight of the divergence from that."},
    {"ltm-var-min", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.ltm_var_min), "1e-6", .max = 1e3,
     .help = "Least variance of attention."},
    {"ltm-reset", 0, "N", LAM_OPT_INT, OPT(cfg.ltm_reset), "0", .max = 1 << 30,
     .help = "Forget it after so many tokens; 0: never."},
    {"ltm-share-proj", 0, NULL, LAM_OPT_FLAG, OPT(ltm_share_proj),
     .help = "Project it by the layer's own weights."},
    {"clamp-len", 0, "N", LAM_OPT_INT, OPT(cfg.clamp_len), "-1", .min = -1, .max = LAM_MAX_LEN,
     .help = "Largest distance of the encoding; 0 or less: none."},
    {"same-length", 0, NULL, LAM_OPT_FLAG, OPT(same_length),
     .help = "Every token sees equally many keys."},
    {"pre-lnorm", 0, NULL, LAM_OPT_FLAG, OPT(pre_lnorm), .help = "LayerNorm before, not after."},
    {"not-tied", 0, NULL, LAM_OPT_FLAG, OPT(not_tied),
     .help = "Output weights of their own instead of the embeddings."},
    {"adaptive", 0, NULL, LAM_OPT_FLAG, OPT(adaptive),
     .help = "Adaptive embeddings and softmax, cut by the size of the vocabulary."},
    {"cutoffs", 0, "N,...", LAM_OPT_INTS, OPT(cutoffs), .min = 1, .max = 1 << 24, .shown = PRESET,
     .help = "Ends of the clusters of the adaptive softmax."},
    {"div-val", 0, "N", LAM_OPT_INT, OPT(cfg.div_val), "1", .min = 1, .max = LAM_MAX_WIDTH,
     .help = "Each cluster's embeddings are so much narrower than the one before."},
    {"init", 0, "WORD", LAM_OPT_CHOICE, OPT(cfg.init_uniform), "normal", .choices = inits,
     .help = "Initial weights: normal or uniform."},
    {"init-range", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.init_range), "0.1", .max = 1e3,
     .help = "Range of uniform ones."},
    {"init-std", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.init_std), "0.02", .max = 1e3,
     .help = "Standard deviation of normal ones."},
    {"proj-init-std", 0, "X", LAM_OPT_DOUBLE, OPT(cfg.proj_init_std), "0.01", .max = 1e3,
     .help = "Standard deviation of projections of embeddings."},
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
    return lam_settings_check(s);
}

lam_status lam_train_fresh(lam_config *cfg, lam_settings *s, const lam_args *args, int n_token)
{
    const lam_train_options *o = args->options;
    LAM_TRY(lam_config_preset(cfg, o->preset, o->memory));
    cfg->n_token = n_token;
    LAM_TRY(apply_model(cfg, args, WRITTEN_OR_DEFAULT));
    lam_settings_defaults(s);
    lam_settings_preset(s, o->preset);
    return apply_settings(s, args, WRITTEN_OR_DEFAULT);
}

lam_status lam_train_resumed(lam_config *cfg, lam_settings *s, const lam_args *args)
{
    const lam_train_options *o = args->options;
    lam_config wanted = *cfg;
    if (lam_option_given(args, "preset")) {
        LAM_TRY(lam_config_preset(&wanted, o->preset,
                                  lam_option_given(args, "memory") ? o->memory : cfg->memory));
        wanted.n_token = cfg->n_token;
    } else if (lam_option_given(args, "memory") && strcmp(o->memory, cfg->memory) != 0)
        return lam_fail(LAM_ERR_ARG, "--memory %s: the run was begun with %s", o->memory,
                        cfg->memory);
    LAM_TRY(apply_model(&wanted, args,
                        lam_option_given(args, "preset") ? WRITTEN_OR_DEFAULT : WRITTEN));
    LAM_TRY(lam_config_same(cfg, &wanted, "the run to resume"));
    return apply_settings(s, args, WRITTEN);
}
