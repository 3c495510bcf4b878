/* cmd_generate.c -- `lamemo generate`: continue a prompt. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/model_option.h"
#include "cli/print_json.h"
#include "cli/prompt.h"
#include "cli/stop.h"
#include "cli/symbol.h"
#include "cli/term.h"
#include "core/clock.h"
#include "core/log.h"
#include "data/json_name.h"
#include "infer/generate.h"
#include "report/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct generate_options {
    const char *model, *prompt;
    lam_device_options device;
    lam_storage_options storage;
    int tokens, samples, refresh, prompt_segment, mem_len;
    double temp, top_p, min_p, repeat_penalty;
    int top_k, repeat_last;
    int64_t seed;
    lam_string_list stop;
    bool echo, logprobs, json;
} generate_options;

static const lam_option options[] = {
    LAM_MODEL_OPTION(generate_options, model),
    {"prompt", 'p', "TEXT", LAM_OPT_STRING, offsetof(generate_options, prompt), "",
     .shown = "a new line",
     .help = "The same as PROMPT: a text to continue; @FILE reads a file, - standard input."},
    {"tokens", 'n', "N", LAM_OPT_INT, offsetof(generate_options, tokens), "256", .max = 1 << 30,
     .aliases = "predict", .help = "Tokens to generate."},
    {"samples", 0, "S", LAM_OPT_INT, offsetof(generate_options, samples), "1", .min = 1,
     .max = 4096, .help = "Continuations, computed side by side."},
    {"stop", 0, "TEXT", LAM_OPT_STRINGS, offsetof(generate_options, stop),
     .help = "End a sample before this text; may be repeated."},
    {.type = LAM_OPT_GROUP, .help = "Sampling"},
    {"temp", 0, "T", LAM_OPT_DOUBLE, offsetof(generate_options, temp), "1", .max = 100,
     .aliases = "temperature", .help = "Temperature; 0 always takes the most likely token."},
    {"top-k", 'k', "K", LAM_OPT_INT, offsetof(generate_options, top_k), "0", .max = 1 << 24,
     .help = "Draw from the K most likely tokens; 0 is off."},
    {"top-p", 0, "P", LAM_OPT_DOUBLE, offsetof(generate_options, top_p), "0.95", .max = 1,
     .help = "Draw from the fewest tokens that together have this probability; 1 is off."},
    {"min-p", 0, "P", LAM_OPT_DOUBLE, offsetof(generate_options, min_p), "0", .max = 1,
     .help = "Leave out tokens less likely than P times the most likely one."},
    {"repeat-penalty", 0, "X", LAM_OPT_DOUBLE, offsetof(generate_options, repeat_penalty), "1",
     .min = 0.01, .max = 100, .help = "Make recent tokens less likely; 1 is off."},
    {"repeat-last", 0, "N", LAM_OPT_INT, offsetof(generate_options, repeat_last), "64",
     .max = 1 << 20, .help = "How many recent tokens the penalty looks at."},
    {"seed", 's', "S", LAM_OPT_INT64, offsetof(generate_options, seed), "42",
     .help = "Seed of the draws; the same seed gives the same text."},
    {.type = LAM_OPT_GROUP, .help = "Memory"},
    {"refresh", 0, "N", LAM_OPT_INT, offsetof(generate_options, refresh), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's tgt_len",
     .help = "Refresh the memory every N new tokens; 1 does it after each, as the authors do."},
    {"prompt-len", 0, "N", LAM_OPT_INT, offsetof(generate_options, prompt_segment), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's tgt_len", .aliases = "tgt-len",
     .help = "Segment length for the prompt."},
    {"mem-len", 0, "M", LAM_OPT_INT, offsetof(generate_options, mem_len), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's", .help = "Memory length."},
    {.type = LAM_OPT_GROUP, .help = "Output"},
    {"echo", 0, NULL, LAM_OPT_FLAG, offsetof(generate_options, echo),
     .help = "Print the prompt too; with --json as \"prompt\"."},
    {"logprobs", 0, NULL, LAM_OPT_FLAG, offsetof(generate_options, logprobs),
     .help = "With --json: the tokens' ids, symbols and log-probabilities."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(generate_options, json),
     .help = "Print one JSON object per sample when all are done."},
    {.type = LAM_OPT_GROUP, .help = "Machine"},
    LAM_STORAGE_OPTIONS(generate_options, storage, "the folder's"),
    LAM_DEVICE_OPTIONS(generate_options, device, "auto"),
    {0},
};

/* What has been generated of one sample; only the first is streamed. */
typedef struct story {
    lam_text text;
    json_t *tokens, *symbols, *logprobs;
    lam_finish finish;
} story;

typedef struct output {
    const generate_options *o;
    const lam_vocab *vocab;
    story *stories;
    int64_t tokens;
    lam_status status;
} output;

static int on_token(void *user, const lam_generated *g)
{
    output *out = user;
    story *s = &out->stories[g->sample];
    const bool stream = !out->o->json && out->o->samples == 1;
    if (g->last)
        s->finish = g->finish;
    if (g->token >= 0) {
        out->tokens++;
        if (s->tokens) {
            json_array_append_new(s->tokens, json_integer(g->token));
            json_array_append_new(s->symbols, lam_symbol_json(out->vocab, g->token));
            json_array_append_new(s->logprobs, json_real(g->logprob));
        }
    }
    if (stream) {
        lam_term_write(stdout, g->text, g->size);
        fflush(stdout);
    } else {
        lam_text_bytes(&s->text, g->text, g->size);
        out->status = lam_text_status(&s->text, "the text of a sample");
    }
    return out->status != LAM_OK || lam_stop_signal() != 0 || ferror(stdout);
}

static int on_prompt(void *user)
{
    (void)user;
    return lam_stop_signal() != 0;
}

static lam_status print_story(const generate_options *o, const story *s, int i, const char *prompt,
                              size_t size)
{
    static const char *const reasons[] = {"length", "stop", "interrupted"};
    if (!o->json) {
        printf("--- sample %d of %d\n", i + 1, o->samples);
        lam_term_write(stdout, prompt, o->echo ? size : 0); /* bytes, with zero among them */
        lam_term_write(stdout, s->text.data ? s->text.data : "", s->text.size);
        putchar('\n');
        return LAM_OK;
    }
    json_t *root =
        json_pack("{s:i, s:s%, s:s}", "index", i, "text", s->text.data ? s->text.data : "",
                  s->text.size, "finish_reason", reasons[s->finish]);
    if (root && o->echo)
        json_object_set_new(root, "prompt", lam_json_bytes(prompt, size));
    if (root && s->tokens) {
        json_object_set(root, "tokens", s->tokens);
        json_object_set(root, "symbols", s->symbols);
        json_object_set(root, "token_logprobs", s->logprobs);
    }
    return lam_print_json(root, JSON_COMPACT);
}

static lam_generate_options request(const generate_options *o, output *out)
{
    return (lam_generate_options){.samples = o->samples,
                                  .tokens = o->tokens,
                                  .prompt_segment = o->prompt_segment,
                                  .refresh = o->refresh,
                                  .mem_len = o->mem_len,
                                  .sampler = {.temperature = o->temp,
                                              .top_k = o->top_k,
                                              .top_p = o->top_p,
                                              .min_p = o->min_p,
                                              .repeat_penalty = o->repeat_penalty,
                                              .repeat_last = o->repeat_last,
                                              .seed = (uint64_t)o->seed},
                                  .stops = o->stop.v,
                                  .n_stops = o->stop.n,
                                  .sink = on_token,
                                  .stop = on_prompt,
                                  .user = out};
}

static lam_status open_stories(output *out)
{
    out->stories = calloc((size_t)out->o->samples, sizeof *out->stories);
    if (!out->stories)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d samples", out->o->samples);
    for (int i = 0; i < out->o->samples && out->o->logprobs; i++) {
        out->stories[i].tokens = json_array();
        out->stories[i].symbols = json_array();
        out->stories[i].logprobs = json_array();
    }
    return LAM_OK;
}

static void close_stories(output *out)
{
    for (int i = 0; out->stories && i < out->o->samples; i++) {
        lam_text_free(&out->stories[i].text);
        json_decref(out->stories[i].tokens);
        json_decref(out->stories[i].symbols);
        json_decref(out->stories[i].logprobs);
    }
    free(out->stories);
}

/* Runs the generation and prints what was not streamed. */
static lam_status tell(const lam_engine *engine, output *out, const char *text, size_t size)
{
    const generate_options *o = out->o;
    const bool stream = !o->json && o->samples == 1;
    const lam_generate_options wanted = request(o, out);
    int32_t *ids = NULL;
    size_t n = 0;
    LAM_TRY(lam_vocab_encode(engine->vocab, &ids, &n, text, size));
    if (stream && o->echo)
        lam_term_write(stdout, text, size);
    const double start = lam_clock();
    lam_status status = lam_generate(engine, ids, n, &wanted);
    free(ids);
    LAM_TRY(status);
    LAM_TRY(out->status);
    lam_log(LAM_LOG_DEBUG, "%lld tokens, %.1f a second", (long long)out->tokens,
            (double)out->tokens / (lam_clock() - start));
    if (stream)
        putchar('\n');
    for (int i = 0; i < o->samples && !stream; i++)
        LAM_TRY(print_story(o, &out->stories[i], i, text, size));
    return lam_stop_signal() == 0 ? LAM_OK : lam_fail(LAM_ERR_INTERRUPTED, "interrupted");
}

static lam_status continue_prompt(const lam_engine *engine, const generate_options *o,
                                  const char *text, size_t size)
{
    output out = {.o = o, .vocab = engine->vocab};
    LAM_TRY(lam_model_remembers(engine->model, o->mem_len));
    lam_status status = open_stories(&out);
    if (status == LAM_OK)
        status = tell(engine, &out, text, size);
    close_stories(&out);
    return status;
}

/* The prompt is an operand or an option. */
static lam_status find_prompt(const char **argument, const lam_args *args)
{
    const generate_options *o = args->options;
    if (args->n_operands > 0 && lam_option_given(args, "prompt"))
        return lam_fail(LAM_ERR_ARG, "two prompts: --prompt %s and '%s'", o->prompt,
                        args->operands[0]);
    *argument = args->n_operands > 0 ? args->operands[0] : o->prompt;
    return LAM_OK;
}

static lam_status run(const lam_args *args)
{
    const generate_options *o = args->options;
    const char *argument = NULL;
    const lam_storage storage = lam_storage_of(&o->storage);
    lam_dev *dev = NULL;
    lam_engine *engine = NULL;
    char *text = NULL;
    size_t size = 0;
    LAM_TRY(lam_model_required(o->model));
    if (o->logprobs && !o->json)
        return lam_fail(LAM_ERR_ARG, "--logprobs are printed with --json only");
    LAM_TRY(find_prompt(&argument, args));
    LAM_TRY(lam_prompt_read(&text, &size, argument));
    lam_status status = lam_device_open(&dev, &o->device);
    if (status == LAM_OK)
        status = lam_engine_open(&engine, o->model, dev, &storage);
    if (status == LAM_OK)
        status = lam_engine_blame(
            engine, lam_prompt_blame(continue_prompt(engine, o, text, size), argument));
    lam_engine_close(engine);
    if (dev)
        dev->ops->close(dev);
    free(text);
    return status;
}

const lam_command lam_command_generate = {
    .name = "generate",
    .summary = "continue a prompt",
    .operands = "[PROMPT]",
    .operands_max = 1,
    .description =
        "Continues a prompt with a trained model and prints the text as it is drawn. The prompt "
        "may "
        "have any length: it runs through the model in whole segments and is remembered by the "
        "model's memory; new tokens are computed one by one with cached keys and values, with the "
        "results of the segment-parallel forward. A model trained without --mem-reset has hardly "
        "met an empty memory: it wants a prompt of a sentence or two. On a terminal, control "
        "characters other than newline and tab are written as \\x1b; pipes and files get them as "
        "they are.",
    .options = options,
    .options_size = sizeof(generate_options),
    .examples = "lamemo generate --model wiki11m --prompt \"The history of Rome\"\n"
                "lamemo generate --model runs/tiny \"In the beginning\" -n 200\n"
                "# from another program, with the prompt's last newline\n"
                "head -n 3 story.txt | lamemo generate -m runs/tiny -\n"
                "# four samples, cooler, from a file\n"
                "lamemo generate -m runs/tiny -p @story.txt --samples 4 --temp 0.8 --json",
    .run = run,
    .reads = true,
};
