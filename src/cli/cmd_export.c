/* cmd_export.c -- `lamemo export`: weights in another type, or divided into files. */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "convert/export.h"
#include "convert/tokenizer_json.h"
#include "core/own.h"
#include "core/budget.h"
#include "data/json_name.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct export_options {
    const char *model, *out, *hf, *tokenizer;
    int64_t max_shard; /* bytes; 0: one file */
    int dtype;
    bool replace, json;
} export_options;

static const char *const dtype_names[] = {"f32", "bf16", "f16", "int8", NULL};
static const lam_dtype dtypes[] = {LAM_F32, LAM_BF16, LAM_F16, LAM_I8};

static const lam_option options[] = {
    LAM_MODEL_OPTION(export_options, model),
    {"out", 'o', "DIR", LAM_OPT_PATH, offsetof(export_options, out), .help = "Folder to write."},
    {"hf", 0, "DIR", LAM_OPT_PATH, offsetof(export_options, hf), .shown = "none",
     .help = "Write this folder instead of --out, for Hugging Face's transformers as well: with "
             "modeling_lamemo.py, config.json with auto_map, and a tokenizer.json for byte pairs "
             "and bytes. A memory that the module does not compute is refused."},
    {"dtype", 0, "TYPE", LAM_OPT_CHOICE, offsetof(export_options, dtype), "f32",
     .choices = dtype_names,
     .help =
         "Type of the weights; int8 is for matrices and embeddings, with a scale for each row."},
    {"max-shard-size", 0, "SIZE", LAM_OPT_SIZE, offsetof(export_options, max_shard),
     .shown = "one file",
     .help = "Split the weights into files of at most SIZE (500MB, 5GB, 2GiB), with an index."},
    {"tokenizer", 0, "FILE", LAM_OPT_PATH, offsetof(export_options, tokenizer), .shown = "none",
     .help = "Write a vocabulary of byte pairs as a tokenizer.json for Hugging Face's tokenizers. "
             "Without --out, --model may also be a corpus folder or a file that prepare "
             "--tokenizer takes."},
    {"replace", 0, NULL, LAM_OPT_FLAG, offsetof(export_options, replace),
     .help = "Overwrite a model folder or tokenizer.json that exists."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(export_options, json),
     .help = "Print one JSON object."},
    {0},
};

/* What is written, --out or --hf; NULL: a tokenizer alone. */
static const char *folder_of(const export_options *o)
{
    return o->hf ? o->hf : o->out;
}

static void print_text(const export_options *o, const lam_export_result *r)
{
    char count[32], size[32];
    lam_print("%s: %s parameters in %d tensors, %s of %s in %d file%s\n", folder_of(o),
              lam_format_count(count, sizeof count, (int64_t)r->elements), r->tensors,
              lam_format_size(size, sizeof size, (double)r->bytes), dtype_names[o->dtype], r->files,
              r->files == 1 ? "" : "s");
}

static lam_status print_json(const export_options *o, const lam_export_result *r)
{
    json_t *root =
        json_pack("{s:o, s:s, s:I, s:i, s:I, s:i}", "folder", lam_json_name(folder_of(o)), "dtype",
                  dtype_names[o->dtype], "parameters", (json_int_t)r->elements, "tensors",
                  r->tensors, "bytes", (json_int_t)r->bytes, "files", r->files);
    return lam_print_json(root, JSON_COMPACT);
}

/* What is about weights, where none are written. */
static lam_status no_weights(const lam_args *args)
{
    static const char *const names[] = {"dtype", "max-shard-size"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (lam_option_given(args, names[i]))
            return lam_fail(LAM_ERR_ARG, "--%s: no weights are written without --out or --hf",
                            names[i]);
    return LAM_OK;
}

/* Said before the weights are written. */
static lam_status may_write_tokenizer(const export_options *o)
{
    lam_vocab *vocab;
    int there;
    LAM_TRY(lam_path_look(&there, o->tokenizer));
    if (there && !o->replace)
        return lam_fail(LAM_ERR_ARG, "%s exists already; --replace overwrites it", o->tokenizer);
    LAM_TRY(lam_file_may_make(o->tokenizer));
    LAM_TRY(lam_own_file(o->tokenizer, "\"added_tokens\""));
    LAM_TRY(lam_vocab_option(&vocab, o->model, NULL));
    const lam_status status =
        lam_vocab_bpe(vocab) != NULL
            ? LAM_OK
            : lam_fail(LAM_ERR_ARG,
                       "--tokenizer: the vocabulary of %s is one of %s, not of byte pairs",
                       o->model, lam_text_kind_name(lam_vocab_kind(vocab)));
    lam_vocab_free(vocab);
    return status;
}

static lam_status write_tokenizer(const export_options *o, bool quiet)
{
    char count[32];
    lam_vocab *vocab;
    LAM_TRY(lam_vocab_option(&vocab, o->model, NULL));
    lam_status status = lam_tokenizer_json_save(vocab, o->tokenizer);
    if (status == LAM_OK && o->json && !folder_of(o))
        status = lam_print_json(json_pack("{s:o, s:i}", "tokenizer", lam_json_name(o->tokenizer),
                                          "tokens", lam_vocab_size(vocab)),
                                JSON_COMPACT);
    if (status == LAM_OK && !quiet && !o->json)
        lam_print("%s: %s tokens\n", o->tokenizer,
                  lam_format_count(count, sizeof count, lam_vocab_size(vocab)));
    lam_vocab_free(vocab);
    return status;
}

static lam_status run(const lam_args *args)
{
    const export_options *o = args->options;
    lam_export_options wanted = {.model = o->model,
                                 .out = folder_of(o),
                                 .hf = o->hf != NULL,
                                 .dtype = dtypes[o->dtype],
                                 .max_shard = o->max_shard,
                                 .replace = o->replace,
                                 .stop = lam_stop_signal};
    lam_export_result result;
    LAM_TRY(lam_model_required(args, o->model));
    if (o->out && o->hf)
        return lam_fail(LAM_ERR_ARG, "--out and --hf both name a folder; give one of them");
    if (!wanted.out && !o->tokenizer)
        return lam_fail(LAM_ERR_ARG, "--out is missing");
    if (!wanted.out)
        LAM_TRY(no_weights(args));
    if (o->tokenizer)
        LAM_TRY(may_write_tokenizer(o));
    if (wanted.out)
        LAM_TRY(lam_export(&wanted, &result));
    if (o->tokenizer)
        LAM_TRY(write_tokenizer(o, args->quiet));
    if (!wanted.out)
        return LAM_OK;
    if (o->json)
        return print_json(o, &result);
    if (!args->quiet)
        print_text(o, &result);
    return LAM_OK;
}

const lam_command lam_command_export = {
    .name = "export",
    .summary = "write a model's weights in another type or in shards",
    .description =
        "Writes a model as safetensors for other programs, in float32, bfloat16, float16 or int8, "
        "in one file or in several with an index, as Hugging Face's tools do. Names and shapes are "
        "those of the authors' PyTorch modules; tied tensors appear once (load_state_dict with "
        "strict=False). The result is a model folder that lamemo reads, too, and runs in that "
        "type: bf16 and int8 need a half and a quarter of the memory and decode faster on a CPU.",
    .options = options,
    .options_size = sizeof(export_options),
    .examples = "lamemo export --model runs/tiny --out tiny-bf16 --dtype bf16\n"
                "lamemo export -m runs/tiny -o tiny-int8 --dtype int8\n"
                "lamemo export -m runs/wt103 -o wt103-shards --max-shard-size 200MB\n"
                "# for Hugging Face's transformers, with a PyTorch module\n"
                "lamemo export -m runs/tiny --hf tiny-hf\n"
                "# only the tokenizer, for other programs\n"
                "lamemo export -m data/tales --tokenizer tokenizer.json",
    .run = run,
};
