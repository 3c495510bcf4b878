/* cmd_eval.c -- `lamemo eval`: bits per character or perplexity of a model on a text. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/ranks.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/file.h"
#include "core/log.h"
#include "data/batcher.h"
#include "data/corpus.h"
#include "data/json_name.h"
#include "data/instream.h"
#include "data/plaintext.h"
#include "infer/engine.h"
#include "io/json.h"
#include "model/folder.h"
#include "train/evaluate.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct eval_options {
    const char *model, *data;
    int split, batch, tgt_len, ext_len, clamp_len;
    lam_int_list mem_len;
    int64_t max_steps;
    lam_reset mem_reset;
    lam_device_options device;
    lam_storage_options storage;
    const char *encoding;
    bool same_length, json, keep_crlf;
} eval_options;

static const lam_option options[] = {
    LAM_MODEL_OPTION(eval_options, model),
    {"data", 0, "PATH", LAM_OPT_PATH, offsetof(eval_options, data),
     .help = "Corpus folder, or a text file, compressed or not (- for standard input)."},
    {"encoding", 0, "NAME", LAM_OPT_STRING, offsetof(eval_options, encoding), .shown = "UTF-8",
     .help = "Encoding of a text file, as for prepare."},
    {"keep-crlf", 0, NULL, LAM_OPT_FLAG, offsetof(eval_options, keep_crlf),
     .help = "Keep CR LF at the line ends of a text file."},
    {"split", 0, "NAME", LAM_OPT_CHOICE, offsetof(eval_options, split), "test",
     .choices = lam_split_names, .help = "Split of the corpus: train, valid or test."},
    {"batch-size", 'b', "B", LAM_OPT_INT, offsetof(eval_options, batch), "16", .min = 1,
     .max = 1 << 20, .aliases = "batch", .shown = "16; fewer where a text file is short",
     .help = "Number of streams that the text is cut into; the published results use 16."},
    {"tgt-len", 0, "N", LAM_OPT_INT, offsetof(eval_options, tgt_len), .min = 1, .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Segment length, in tokens."},
    {"mem-len", 0, "M,...", LAM_OPT_INTS, offsetof(eval_options, mem_len), .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Memory length, in tokens; several lengths make a table."},
    {"ext-len", 0, "E", LAM_OPT_INT, offsetof(eval_options, ext_len), "0", .max = LAM_MAX_LEN,
     .shown = "the model's",
     .help = "Extended context: tokens of the previous segment that are computed again (memories "
             "none and xl)."},
    {"clamp-len", 0, "N", LAM_OPT_INT, offsetof(eval_options, clamp_len), "0", .min = -1,
     .max = LAM_MAX_LEN, .shown = "the model's",
     .help = "Encode distances beyond N as N; -1: no limit."},
    {"same-length", 0, NULL, LAM_OPT_FLAG, offsetof(eval_options, same_length),
     .help = "Let every token attend to exactly mem-len others."},
    {"max-steps", 0, "K", LAM_OPT_INT64, offsetof(eval_options, max_steps), "0", .max = 1e15,
     .aliases = "max-size", .shown = "all", .help = "Evaluate the first K segments only."},
    {"mem-reset", 0, "K|document", LAM_OPT_RESET, offsetof(eval_options, mem_reset), "0",
     .help = "Empty the memory of all streams every K segments; with document (or document,K), "
             "each document begins at the start of a segment with the memory of its stream empty, "
             "as if it were read alone (prepare --documents). 0: never."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(eval_options, json),
     .help = "Print one JSON object per memory length."},
    LAM_STORAGE_OPTIONS(eval_options, storage, "the folder's"),
    LAM_NUMERICS_OPTION(eval_options, device),
    LAM_DEVICE_OPTIONS(eval_options, device, "auto"),
    {0},
};

static const size_t TEXT_MAX = (size_t)1 << 30;

/* What is measured: a split of a corpus. */
typedef struct text {
    lam_corpus *corpus; /* owned */
    const lam_tokens *tokens;
    lam_metric metric;
    int64_t unknown; /* how many of the text's tokens became <unk> */
    char name[256];
} text;

static void take_split(text *t, lam_split split)
{
    t->tokens = &t->corpus->split[split];
    t->metric = t->corpus->info.metric;
    t->unknown = t->corpus->info.unknown[split];
}

static lam_status open_corpus(text *t, const lam_engine *e, const eval_options *o)
{
    LAM_TRY(lam_corpus_open(&t->corpus, o->data, LAM_CORPUS_VERIFY));
    LAM_TRY(lam_vocab_same(e->vocab, t->corpus->vocab, o->data));
    take_split(t, (lam_split)o->split);
    snprintf(t->name, sizeof t->name, "%s %s", t->corpus->info.name,
             lam_split_name((lam_split)o->split));
    return LAM_OK;
}

static lam_status open_file(text *t, const lam_engine *e, const eval_options *o)
{
    char *bytes = NULL, *plain = NULL;
    size_t size = 0;
    const char *name = strcmp(o->data, "-") == 0 ? "standard input" : o->data;
    LAM_TRY(lam_instream_load(&bytes, &size, o->data, TEXT_MAX));
    lam_status status = lam_plaintext_all(
        &plain, &size, bytes, size,
        &(lam_plaintext_options){.name = name,
                                 .encoding = o->encoding ? o->encoding : LAM_ENCODING_MARKED,
                                 .kind = lam_vocab_kind(e->vocab),
                                 .keep_crlf = o->keep_crlf});
    free(bytes);
    if (status == LAM_OK)
        status = lam_corpus_of_text(&t->corpus, name, e->vocab, plain, size);
    if (status == LAM_ERR_FORMAT && plain && strcmp(lam_encoding_guess(plain, size), "utf-8") != 0)
        status =
            lam_fail(status, "%s: %s; if it is %s, --encoding %s converts it", name, lam_error(),
                     lam_encoding_guess(plain, size), lam_encoding_guess(plain, size));
    else if (status == LAM_ERR_FORMAT && plain)
        status = lam_fail(status, "%s: %s", name, lam_error());
    free(plain);
    LAM_TRY(status);
    take_split(t, LAM_TEST);
    if (t->tokens->count == 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: the text is empty", name);
    if (t->tokens->count == 1)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: the text is one token, nothing follows to be predicted", name);
    snprintf(t->name, sizeof t->name, "%s", name);
    return LAM_OK;
}

static lam_status open_text(text *t, const lam_engine *e, const lam_args *args)
{
    const eval_options *o = args->options;
    if (lam_path_is_folder(o->data)) {
        const char *const of_text = lam_option_given(args, "encoding") ? "encoding"
                                    : o->keep_crlf                     ? "keep-crlf"
                                                                       : NULL;
        if (of_text)
            return lam_fail(LAM_ERR_ARG,
                            "--%s: %s is a corpus folder, whose text lamemo prepare has converted",
                            of_text, o->data);
        return open_corpus(t, e, o);
    }
    if (lam_option_given(args, "split"))
        return lam_fail(LAM_ERR_ARG, "--split %s: %s is a text, not a corpus folder with splits",
                        lam_split_name((lam_split)o->split), o->data);
    return open_file(t, e, o);
}

/* A model, what is asked of it, and who shares the work. */
typedef struct job {
    const lam_engine *engine;
    const lam_args *args;
    lam_comm *comm;
} job;

typedef struct watch {
    lam_progress line;
    lam_metric metric;
} watch;

static int on_segment(void *user, const lam_eval_result *r, int64_t total)
{
    watch *w = user;
    if (lam_progress_due(&w->line) && r->tokens > 0) {
        char left[32];
        const double rate = (double)r->tokens / r->seconds;
        lam_progress_show(
            &w->line, "%3.0f %%  %s %.4f  %.0f tokens/s  %s left",
            100.0 * (double)r->tokens / (double)total, lam_metric_name(w->metric),
            lam_metric_of(w->metric, lam_eval_mean(r)), rate,
            lam_format_time(left, sizeof left, (double)(total - r->tokens) / fmax(rate, 1e-9)));
    }
    return lam_stop_signal() != 0;
}

static lam_status print_json(const text *t, const lam_config *cfg, const lam_eval_options *e,
                             const lam_eval_result *r)
{
    const double value = lam_metric_of(t->metric, lam_eval_mean(r));
    const double spread = lam_metric_error(t->metric, r);
    json_t *root = json_pack(
        "{s:o, s:s, s:s, s:f, s:o, s:f, s:I, s:o, s:o, s:f, s:I, s:i, s:i, s:i, s:i, s:i, s:b, "
        "s:f, s:f}",
        "text", lam_json_name(t->name), "memory", cfg->memory, "metric", lam_metric_name(t->metric),
        "value", value, "error", lam_json_number(spread), "nats", lam_eval_mean(r), "tokens",
        (json_int_t)r->tokens, "bits_per_byte", lam_json_number(lam_eval_bits_per_byte(r)),
        "bits_per_byte_error", lam_json_number(lam_eval_bits_error(r)), "bytes", r->bytes,
        "text_unknown", (json_int_t)t->unknown, "batch", e->batch, "tgt_len", e->tgt_len, "mem_len",
        e->mem_len, "ext_len", e->ext_len, "clamp_len", cfg->clamp_len, "same_length",
        cfg->same_length, "seconds", r->seconds, "tokens_per_second",
        (double)r->tokens / fmax(r->seconds, 1e-9));
    return lam_print_json(root, JSON_COMPACT);
}

static void print_row(const text *t, const lam_eval_options *e, const lam_eval_result *r,
                      bool first)
{
    const double value = lam_metric_of(t->metric, lam_eval_mean(r));
    const double spread = lam_metric_error(t->metric, r);
    char tokens[32], rate[32], bits[32] = "-", error[32] = "-"; /* one segment has no error */
    if (isfinite(spread))
        snprintf(error, sizeof error, "%.4f", spread);
    if (r->bytes > 0)
        snprintf(bits, sizeof bits, "%.4f", lam_eval_bits_per_byte(r));
    if (first)
        lam_print("%-24s %6s %7s %7s %10s %9s %9s %14s %11s\n", "text", "batch", "tgt_len",
                  "mem_len", lam_metric_name(t->metric), "+-", "bits/byte", "tokens", "tokens/s");
    lam_print(
        "%-24s %6d %7d %7d %10.4f %9s %9s %14s %11s\n", t->name, e->batch, e->tgt_len, e->mem_len,
        value, error, bits, lam_format_count(tokens, sizeof tokens, r->tokens),
        lam_format_count(rate, sizeof rate, llround((double)r->tokens / fmax(r->seconds, 1e-9))));
    fflush(stdout);
}

/* Every column begins with an empty memory.  A corpus is cut as published; a text file only so far that each
 * column has 16 segments, or a short one would be measured by its beginnings. */
static int columns(const text *t, const lam_args *args, int tgt_len)
{
    const eval_options *o = args->options;
    const int64_t fit = t->tokens->count / (16 * (int64_t)tgt_len);
    if (t->corpus->text == NULL || lam_option_given(args, "batch-size") || fit >= o->batch)
        return o->batch;
    return fit > 1 ? (int)fit : 1;
}

/* Equal parts of the columns, as many as there are processes, or fewer. */
static int parts_of(const lam_comm *comm, int batch)
{
    int parts = lam_comm_size(comm);
    while (batch % parts != 0)
        parts--;
    return parts;
}

static lam_status measure(const job *j, const text *t, int mem_len, bool first)
{
    const lam_args *const args = j->args;
    const eval_options *o = args->options;
    lam_model *model = j->engine->model;
    const bool speaks = lam_comm_rank(j->comm) == 0;
    const int tgt_len = o->tgt_len > 0 ? o->tgt_len : model->cfg.tgt_len;
    const lam_eval_options e = {.batch = columns(t, args, tgt_len),
                                .tgt_len = tgt_len,
                                .mem_len = mem_len,
                                .ext_len = lam_option_given(args, "ext-len") ? o->ext_len
                                                                             : model->cfg.ext_len,
                                .reset = o->mem_reset,
                                .max_steps = o->max_steps};
    lam_evaluator *evaluator = NULL;
    lam_eval_result result = {0};
    watch w = {.metric = t->metric};
    LAM_TRY(lam_model_remembers(model, mem_len));
    if (!e.reset.document) /* before memory is taken for so many */
        LAM_TRY(lam_batcher_check(t->tokens, e.batch));
    lam_eval_options fit = e;
    lam_eval_fit(&fit, t->tokens);
    fit.comm = j->comm;
    fit.parts = parts_of(j->comm, e.batch);
    LAM_TRY(lam_comm_agree(j->comm, lam_evaluator_create(&evaluator, model, &fit)));
    lam_progress_open(&w.line, args->quiet || !speaks);
    const lam_status status = lam_evaluator_run(evaluator, &result, t->tokens, on_segment, &w);
    lam_progress_close(&w.line);
    lam_evaluator_free(evaluator);
    LAM_TRY(status);
    if (!isfinite(
            lam_metric_of(t->metric, lam_eval_mean(&result)))) /* finite nats; exp of them is not */
        return lam_fail(LAM_ERR_NUMERIC, "%s of %g nats per token is not finite",
                        lam_metric_name(t->metric), lam_eval_mean(&result));
    if (!speaks)
        return LAM_OK;
    if (o->json)
        return print_json(t, &model->cfg, &e, &result);
    print_row(t, &e, &result, first);
    return LAM_OK;
}

static lam_status measure_all(const job *j)
{
    const eval_options *o = j->args->options;
    lam_config *cfg = &j->engine->model->cfg;
    text t = {0};
    if (lam_option_given(j->args, "clamp-len"))
        cfg->clamp_len = o->clamp_len;
    if (o->same_length)
        cfg->same_length = 1;
    lam_status status = lam_comm_agree(j->comm, open_text(&t, j->engine, j->args));
    if (status == LAM_OK && o->mem_len.n == 0)
        status = measure(j, &t, cfg->mem_len, true);
    for (int i = 0; i < o->mem_len.n && status == LAM_OK; i++)
        status = measure(j, &t, o->mem_len.v[i], i == 0);
    if (status == LAM_OK && t.unknown > 0)
        lam_log(LAM_LOG_WARN,
                "%lld of the text's %lld tokens are <unk>, which is easier to predict than the "
                "words it stands for: bits per byte and ppl are too good",
                (long long)t.unknown, (long long)t.tokens->count);
    lam_corpus_close(t.corpus);
    return status;
}

static lam_status run_shared(const void *user, lam_comm *comm)
{
    const lam_args *const args = user;
    const eval_options *o = args->options;
    lam_device_options device = o->device;
    const lam_storage storage = lam_storage_of(&o->storage);
    lam_dev *dev = NULL;
    lam_engine *engine = NULL;
    LAM_TRY(lam_model_required(args, o->model));
    if (!o->data)
        return lam_fail(LAM_ERR_ARG, "--data is missing: a corpus folder or a text file");
    device.threads = lam_ranks_threads(comm, device.threads);
    device.card = lam_comm_local_rank(comm);
    LAM_TRY(lam_device_open(&dev, &device));
    lam_status status = lam_comm_agree(comm, lam_engine_open(&engine, o->model, dev, &storage));
    if (status == LAM_OK)
        status = lam_engine_blame(engine, measure_all(&(job){engine, args, comm}));
    lam_engine_close(engine);
    dev->ops->close(dev);
    return status;
}

/* How long the others take is not for us to limit. */
static lam_status run(const lam_args *args)
{
    const eval_options *o = args->options;
    if (lam_comm_started(&(int){0}) > 1 && o->data && strcmp(o->data, "-") == 0)
        return lam_fail(LAM_ERR_ARG, "--data -: several processes cannot share standard input");
    return lam_ranks_run(args->command, 0.0, run_shared, args);
}

const lam_command lam_command_eval = {
    .name = "eval",
    .summary = "measure a model's bits per character or perplexity",
    .description =
        "Evaluates a model on a split of a corpus, or on any text, starting with an empty memory. "
        "Prints bits per character (perplexity for words and byte pairs) with its standard error "
        "over segments, and bits per byte of text, which compare models with different "
        "vocabularies. The text is cut into --batch-size streams, as for the published results. "
        "With several memory lengths it prints the paper's extrapolation table.",
    .shared = true,
    .options = options,
    .options_size = sizeof(eval_options),
    .examples = "lamemo eval --model runs/tiny --data data/bible --split test\n"
                "# how much does a longer memory help?\n"
                "lamemo eval -m runs/tiny --data data/bible --tgt-len 64 --mem-len 64,128,256,512",
    .run = run,
    .reads = true,
};
