/* cmd_import.c -- `lamemo import`: take a model over from another program. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "convert/import.h"
#include "data/json_name.h"
#include "core/log.h"
#include "nn/config.h"

#include <jansson.h>
#include <stdio.h>

typedef struct import_options {
    const char *out, *config, *vocab;
    int tgt_len, mem_len;
    bool replace, json;
} import_options;

static const lam_option options[] = {
    {"out", 'o', "DIR", LAM_OPT_PATH, offsetof(import_options, out),
     .help = "Model folder to write."},
    {"config", 0, "FILE", LAM_OPT_PATH, offsetof(import_options, config),
     .help = "JSON file whose keys (as in config.json) override those of the source."},
    {"vocab", 0, "FILE", LAM_OPT_PATH, offsetof(import_options, vocab),
     .help =
         "Vocabulary: a vocab.json, a tokenizer.json of Hugging Face (byte-level BPE), ranks of "
         "tiktoken, a PyTorch file with one (cache.pt), or a text file with one token per line.",
     .shown = "the source's own"},
    {"tgt-len", 0, "N", LAM_OPT_INT, offsetof(import_options, tgt_len), "-1", .min = -1,
     .max = LAM_MAX_LEN, .shown = "the source's", .help = "Segment length, in tokens."},
    {"mem-len", 0, "M", LAM_OPT_INT, offsetof(import_options, mem_len), "-1", .min = -1,
     .max = LAM_MAX_LEN, .shown = "the source's", .help = "Memory length, in tokens."},
    {"replace", 0, NULL, LAM_OPT_FLAG, offsetof(import_options, replace),
     .help = "Overwrite a model folder that exists."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(import_options, json),
     .help = "Print one JSON object."},
    {0},
};

static lam_status print_json(const lam_import_result *r, const char *out)
{
    json_t *root =
        json_pack("{s:o, s:s, s:i, s:I, s:i, s:i, s:i}", "folder", lam_json_name(out), "memory",
                  r->memory, "attn_type", r->attn_type, "parameters", (json_int_t)r->elements,
                  "tensors", r->tensors, "left_out", r->left_out, "symbols", r->symbols);
    return lam_print_json(root, JSON_COMPACT);
}

static void print_text(const lam_import_result *r, const char *out)
{
    char count[32];
    lam_print("%s: memory %s, attn_type %d, %s parameters in %d tensors", out, r->memory,
              r->attn_type, lam_format_count(count, sizeof count, (int64_t)r->elements),
              r->tensors);
    if (r->left_out > 0)
        lam_print(" (left out: %d tied copies or buffers)", r->left_out);
    if (r->symbols > 0)
        lam_print(", vocabulary of %s", lam_format_count(count, sizeof count, (int64_t)r->symbols));
    putchar('\n');
}

static lam_status run(const lam_args *args)
{
    const import_options *o = args->options;
    lam_import_result result;
    if (!o->out)
        return lam_fail(LAM_ERR_ARG, "--out is missing");
    LAM_TRY(lam_import(&(lam_import_options){.source = args->operands[0],
                                             .out = o->out,
                                             .config = o->config,
                                             .vocab = o->vocab,
                                             .tgt_len = o->tgt_len,
                                             .mem_len = o->mem_len,
                                             .replace = o->replace,
                                             .stop = lam_stop_signal},
                       &result));
    if (result.symbols == 0)
        lam_log(LAM_LOG_WARN,
                "%s: no vocabulary was found; without one (--vocab) the model cannot read or write "
                "text",
                args->operands[0]);
    if (o->json)
        return print_json(&result, o->out);
    if (!args->quiet)
        print_text(&result, o->out);
    return LAM_OK;
}

const lam_command lam_command_import = {
    .name = "import",
    .summary = "convert a model from PyTorch or safetensors",
    .operands = "SOURCE",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Makes a model folder from a model that another program saved. SOURCE is a checkpoint of "
        "the authors' LaMemo or Transformer-XL code or any other file of torch.save that holds "
        "such a model (state_dict or whole module), a safetensors file, or a folder with "
        "config.json and weights. Code in a pickle is never executed. Configuration and vocabulary "
        "are taken from the source; sizes that it does not name are inferred from its tensors.",
    .options = options,
    .options_size = sizeof(import_options),
    .examples = "lamemo import checkpoint_best.pt --out models/lamemo\n"
                "# a bare state_dict, with the vocabulary of its corpus\n"
                "lamemo import state.pt --tgt-len 150 --mem-len 150 --vocab data/cache.pt -o m",
    .run = run,
};
