/* cmd_bench.c -- `lamemo bench`: speed of this build on this machine. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/output.h"
#include "cli/shape_options.h"
#include "cli/term.h"
#include "core/budget.h"
#include "measure/bench.h"
#include "train/optimizer.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct bench_options {
    lam_shape_options shape; /* first */
    int batch, optim;
    double seconds;
    lam_device_options device;
    lam_storage_options storage;
    bool json;
} bench_options;

static const lam_option options[] = {
    LAM_PRESET_OPTION,
    LAM_MEMORY_OPTION(0),
    LAM_N_TOKEN_OPTION,
    {"batch-size", 'b', "B", LAM_OPT_INT, offsetof(bench_options, batch), "0", .max = 1 << 20,
     .aliases = "batch", .shown = "8; 1 for generate", .help = "Number of streams in parallel."},
    {"optim", 0, "NAME", LAM_OPT_CHOICE, offsetof(bench_options, optim), "adam",
     .choices = lam_optim_names, .help = "Optimiser, for train."},
    {"seconds", 0, "S", LAM_OPT_DOUBLE, offsetof(bench_options, seconds), "10", .max = 3600,
     .former = 's',
     .help = "Length of the measurement after warm-up, in seconds; generate then goes on to the "
             "end of a segment, for up to six times as long."},
    LAM_STORAGE_OPTIONS(bench_options, storage, "float32"),
    LAM_DEVICE_OPTIONS(bench_options, device, "auto"),
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(bench_options, json),
     .help = "Print one JSON object."},
    {.type = LAM_OPT_REST, .help = "see lamemo train"},
#include "cli/shape_rows.inc"
    {0},
};

static lam_status kind_of(const lam_args *args, lam_bench_kind *kind)
{
    static const char *const names[] = {"train", "eval", "generate"};
    const char *word = args->n_operands > 0 ? args->operands[0] : "train";
    for (int i = 0; i < 3; i++)
        if (strcmp(word, names[i]) == 0) {
            *kind = (lam_bench_kind)i;
            return LAM_OK;
        }
    return lam_fail(LAM_ERR_ARG, "unknown benchmark '%s': must be train, eval or generate", word);
}

static void print_text(const lam_config *cfg, const lam_bench_result *r, const char *kind,
                       int batch)
{
    char planned[32], peak[32];
    printf("%s %s, %d layers, d_model %d, N %d, M %d, batch %d\n", kind, cfg->memory, cfg->n_layer,
           cfg->d_model, cfg->tgt_len, cfg->mem_len, batch);
    printf("  %-18s %12.1f\n", "tokens/s", r->tokens_per_second);
    printf("  %-18s %12.2f   best %.2f, %d rounds\n", "ms", 1e3 * r->seconds, 1e3 * r->best_seconds,
           r->rounds);
    if (r->token_bytes > 0 && r->rounds < cfg->tgt_len)
        printf("  %-18s %12s   tokens near the end of a segment cost more: --seconds %.0f\n",
               "too short", "", ceil(r->seconds * cfg->tgt_len));
    if (r->token_bytes > 0)
        printf("  %-18s %12.2f   times the %.2f ms it takes to read its %s, %.1f GB/s\n",
               "a token takes", r->seconds / r->read_seconds, 1e3 * r->read_seconds,
               lam_format_size(peak, sizeof peak, (double)r->token_bytes),
               1e-9 * (double)r->token_bytes / r->read_seconds);
    printf("  %-18s %12.1f   %.0f %% of the best GEMM, %.1f\n", "GFLOP/s", r->gflops,
           100.0 * r->share, r->gemm_gflops);
    printf("  %-18s %12s   planned %s\n", "memory",
           lam_format_size(peak, sizeof peak, (double)r->bytes_peak),
           lam_format_size(planned, sizeof planned, (double)r->bytes_planned));
}

static lam_status print_json(const lam_config *cfg, const lam_bench_result *r, const char *kind,
                             int batch)
{
    json_t *root = json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "kind",
        kind, "memory", cfg->memory, "n_layer", cfg->n_layer, "d_model", cfg->d_model, "batch",
        batch, "tgt_len", cfg->tgt_len, "mem_len", cfg->mem_len, "rounds", r->rounds, "seconds",
        r->seconds, "best_seconds", r->best_seconds, "tokens_per_second", r->tokens_per_second,
        "gflops", r->gflops, "gemm_gflops", r->gemm_gflops, "share_of_gemm", r->share,
        "bytes_planned", (json_int_t)r->bytes_planned, "bytes_peak", (json_int_t)r->bytes_peak);
    if (root && r->token_bytes > 0)
        json_object_update_new(root, json_pack("{s:f, s:I, s:f, s:f, s:f, s:f}", "median_seconds",
                                               r->median_seconds, "token_bytes",
                                               (json_int_t)r->token_bytes, "read_seconds",
                                               r->read_seconds, "read_median_seconds",
                                               r->read_median, "read_best_seconds", r->read_best,
                                               "over_reading", r->seconds / r->read_seconds));
    return lam_print_json(root, JSON_INDENT(2));
}

static lam_status run(const lam_args *args)
{
    const bench_options *o = args->options;
    lam_bench_options b = {
        .seconds = o->seconds, .optim = o->optim, .storage = lam_storage_of(&o->storage)};
    lam_bench_result result;
    lam_config cfg;
    lam_dev *dev = NULL;
    LAM_TRY(kind_of(args, &b.kind));
    LAM_TRY(lam_shape_fresh(&cfg, args, 0));
    b.batch = o->batch > 0 ? o->batch : b.kind == LAM_BENCH_GENERATE ? 1 : 8;
    LAM_TRY(lam_device_open(&dev, &o->device));
    const lam_status status = lam_bench_run(&result, &cfg, dev, &b);
    dev->ops->close(dev);
    LAM_TRY(status);
    const char *kind = args->n_operands > 0 ? args->operands[0] : "train";
    if (o->json)
        return print_json(&cfg, &result, kind, b.batch);
    print_text(&cfg, &result, kind, b.batch);
    return LAM_OK;
}

const lam_command lam_command_bench = {
    .name = "bench",
    .summary = "measure the throughput of training, evaluation and generation",
    .operands = "[train|eval|generate]",
    .operands_max = 1,
    .description =
        "Runs a preset with random weights on random tokens and reports throughput (tokens/s), "
        "GFLOP/s, their share of the fastest GEMM of the same shapes measured in the same run, and "
        "memory. For generate it also reports the lower bound: the time to read once what a token "
        "needs (weights, cached keys, values and positions), measured in turns with the tokens. "
        "The options of lamemo train that define a model (--n-layer, --mem-len, ...) are accepted.",
    .options = options,
    .options_size = sizeof(bench_options),
    .examples = "lamemo bench train --preset small\n"
                "lamemo bench generate --preset enwik8-base --json\n"
                "lamemo bench generate --preset enwik8-base --weights int8",
    .run = run,
    .killable = true,
};
