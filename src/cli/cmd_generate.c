/* cmd_generate.c -- `lamemo generate`: continue a prompt. */
#include "cli/commands.h"
#include "cli/generate_options.h"
#include "cli/input.h"
#include "cli/interactive.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/clock.h"
#include "core/log.h"
#include "data/json_name.h"
#include "draw/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has been generated of one sample; only the first is streamed. */
typedef struct story {
    lam_text text;
    json_t *tokens, *symbols, *logprobs;
    lam_finish finish;
} story;

typedef struct output {
    const lam_generate_args *o;
    const char *const *stops; /* [o->stop.n], unescaped */
    const lam_vocab *vocab;
    const lam_given_text *prompt; /* that is being continued */
    int at, prompts;              /* which of how many that is */
    story *stories;               /* of this prompt */
    int64_t tokens, timed;        /* drawn; and those whose time is in `seconds` */
    double first, seconds;        /* when the prompt's first token was drawn; time between tokens */
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
        out->first = out->first > 0.0 ? out->first : lam_clock();
        if (s->tokens) {
            size_t size = 0;
            const char *const symbol = lam_vocab_symbol(out->vocab, g->token, &size);
            json_array_append_new(s->tokens, json_integer(g->token));
            json_array_append_new(s->symbols, lam_json_bytes(symbol, size));
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

static void print_heading(const output *out, int i)
{
    char label[64] = "";
    if (out->prompts > 1)
        snprintf(label, sizeof label, "prompt %d of %d", out->at + 1, out->prompts);
    if (out->o->samples > 1)
        printf("--- %s%ssample %d of %d\n", label, *label ? ", " : "", i + 1, out->o->samples);
    else if (*label)
        printf("--- %s\n", label);
}

static lam_status print_story(const output *out, int i)
{
    static const char *const reasons[] = {"length", "stop", "interrupted"};
    const lam_generate_args *o = out->o;
    const story *s = &out->stories[i];
    const char *const prompt = out->prompt->text;
    const size_t size = out->prompt->size;
    if (!o->json) {
        print_heading(out, i);
        lam_term_write(stdout, prompt, o->echo ? size : 0); /* bytes, with zero among them */
        lam_term_write(stdout, s->text.data ? s->text.data : "", s->text.size);
        putchar('\n');
        return LAM_OK;
    }
    json_t *root =
        json_pack("{s:i, s:s%, s:s}", "index", i, "text", s->text.data ? s->text.data : "",
                  s->text.size, "finish_reason", reasons[s->finish]);
    if (root && out->prompts > 1)
        json_object_set_new(root, "prompt_index", json_integer(out->at));
    if (root && o->echo)
        json_object_set_new(root, "prompt", lam_json_bytes(prompt, size));
    if (root && s->tokens) {
        json_object_set(root, "tokens", s->tokens);
        json_object_set(root, "symbols", s->symbols);
        json_object_set(root, "token_logprobs", s->logprobs);
    }
    return lam_print_json(root, JSON_COMPACT);
}

static lam_generate_options request(output *out)
{
    const lam_generate_args *o = out->o;
    return (lam_generate_options){.samples = o->samples,
                                  .tokens = o->tokens,
                                  .prompt_segment = o->prompt_segment,
                                  .refresh = o->refresh,
                                  .mem_len = o->mem_len,
                                  .sampler = lam_generate_sampler(o),
                                  .unknown = o->unknown,
                                  .stops = out->stops,
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
static lam_status tell(const lam_engine *engine, output *out)
{
    const lam_generate_args *o = out->o;
    const bool stream = !o->json && o->samples == 1;
    const lam_generate_options wanted = request(out);
    const int64_t before = out->tokens;
    int32_t *ids = NULL;
    size_t n = 0;
    LAM_TRY(lam_vocab_encode(engine->vocab, &ids, &n, out->prompt->text, out->prompt->size));
    if (stream)
        print_heading(out, 0);
    if (stream && o->echo)
        lam_term_write(stdout, out->prompt->text, out->prompt->size);
    out->first = 0.0;
    lam_status status = lam_generate(engine, ids, n, &wanted);
    free(ids);
    LAM_TRY(status);
    LAM_TRY(out->status);
    if (out->tokens - before > o->samples) { /* the first ones waited for the prompt */
        out->timed += out->tokens - before - o->samples;
        out->seconds += lam_clock() - out->first;
    }
    if (stream)
        putchar('\n');
    for (int i = 0; i < o->samples && !stream; i++)
        LAM_TRY(print_story(out, i));
    return lam_stop_signal() == 0 ? LAM_OK : lam_fail(LAM_ERR_INTERRUPTED, "interrupted");
}

static lam_status continue_prompt(const lam_engine *engine, output *out)
{
    lam_status status = open_stories(out);
    if (status == LAM_OK)
        status = tell(engine, out);
    close_stories(out);
    if (status == LAM_ERR_FORMAT && (out->prompt->from_file || out->prompts > 1))
        status = lam_fail(status, "%s: %s", out->prompt->name, lam_error());
    return lam_engine_blame(engine, status);
}

static void tell_speed(const output *out, const lam_args *args)
{
    char seed[48] = "", tokens[32];
    for (int i = 0; args->table.rows[i].help; i++)
        if (args->table.rows[i].type == LAM_OPT_SEED && args->given[i] &&
            strcmp(args->text[i], "random") == 0)
            snprintf(seed, sizeof seed, ", seed %lld", (long long)out->o->seed);
    fflush(stdout);
    lam_format_count(tokens, sizeof tokens, out->tokens);
    if (out->seconds > 0.0)
        lam_log(LAM_LOG_INFO, "%s token%s, %.1f tokens/s%s", tokens, out->tokens == 1 ? "" : "s",
                (double)out->timed / out->seconds, seed);
    else if (*seed)
        lam_log(LAM_LOG_INFO, "%s token%s%s", tokens, out->tokens == 1 ? "" : "s", seed);
}

/* ---- the command ---- */

/* The prompts are an operand, options, or lines of a file. */
static lam_status find_prompts(lam_texts *texts, const lam_args *args)
{
    const lam_generate_args *o = args->options;
    char words[256] = "";
    for (int i = 0; i < args->n_operands && i < 16; i++) {
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? " " : "", args->operands[i]);
    }
    if (args->n_operands > 1)
        return lam_fail(
            LAM_ERR_ARG,
            "a prompt of several words needs quotes: \"%s\"; several prompts are written -p A -p B",
            words);
    if (args->n_operands > 0 && o->prompt.n > 0)
        return lam_fail(LAM_ERR_ARG, "two prompts, --prompt %s and '%s': write -p before each",
                        o->prompt.v[0], args->operands[0]);
    for (int i = 0; i < o->prompt.n; i++)
        LAM_TRY(lam_texts_add(texts, o->prompt.v[i]));
    if (args->n_operands > 0)
        LAM_TRY(lam_texts_add(texts, args->operands[0]));
    if (o->prompts)
        LAM_TRY(lam_texts_add_lines(texts, o->prompts, "prompt"));
    return texts->n > 0 ? LAM_OK : lam_texts_add(texts, "");
}

static lam_status continue_all(const lam_engine *engine, const lam_args *args,
                               const lam_texts *texts, const char *const *stops)
{
    const lam_generate_args *o = args->options;
    output out = {.o = o, .stops = stops, .vocab = engine->vocab, .prompts = texts->n};
    lam_status status = lam_model_remembers(engine->model, o->mem_len);
    for (; out.at < texts->n && status == LAM_OK; out.at++) {
        out.prompt = &texts->v[out.at];
        status = continue_prompt(engine, &out);
    }
    if (status == LAM_OK)
        tell_speed(&out, args);
    return status;
}

/* What an interactive session has no place for. */
static lam_status check_interactive(const lam_args *args)
{
    const lam_generate_args *o = args->options;
    const char *const other = o->json           ? "--json"
                              : o->samples > 1  ? "--samples"
                              : o->prompts      ? "--prompts"
                              : o->prompt.n > 1 ? "a second --prompt"
                                                : NULL;
    if (other)
        return lam_fail(LAM_ERR_ARG, "--interactive continues one text: %s has no use with it",
                        other);
    for (int i = 0; i < o->prompt.n + args->n_operands; i++)
        if (strcmp(i < o->prompt.n ? o->prompt.v[i] : args->operands[0], "-") == 0)
            return lam_fail(
                LAM_ERR_ARG,
                "--interactive reads its lines from standard input; a prompt can be text or @FILE");
    return LAM_OK;
}

static lam_status converse(const lam_engine *engine, const lam_args *args, const lam_texts *texts,
                           const char *const *stops)
{
    const lam_generate_args *o = args->options;
    const bool given = o->prompt.n > 0 || args->n_operands > 0;
    LAM_TRY(lam_model_remembers(engine->model, o->mem_len));
    return lam_interactive(engine, args, stops, given ? &texts->v[0] : NULL);
}

/* Copies of the stops, with escapes as the bytes they mean. */
static lam_status read_stops(char *out[LAM_LIST_MAX], const lam_string_list *stops)
{
    for (int i = 0; i < stops->n; i++) {
        if (stops->v[i][0] == '\0')
            return lam_fail(LAM_ERR_ARG, "--stop: the text is empty");
        out[i] = strdup(stops->v[i]);
        if (!out[i])
            return lam_fail(LAM_ERR_MEMORY, "no memory for --stop");
        LAM_TRY(lam_unescape(out[i], "--stop"));
    }
    return LAM_OK;
}

static lam_status run(const lam_args *args)
{
    const lam_generate_args *o = args->options;
    const lam_storage storage = lam_storage_of(&o->storage);
    lam_dev *dev = NULL;
    lam_engine *engine = NULL;
    lam_texts texts = {0};
    char *stops[LAM_LIST_MAX] = {0};
    LAM_TRY(lam_model_required(args, o->model));
    if (o->logprobs && !o->json)
        return lam_fail(LAM_ERR_ARG, "--logprobs needs --json");
    lam_status status = read_stops(stops, &o->stop);
    if (status == LAM_OK && o->interactive)
        status = check_interactive(args);
    if (status == LAM_OK)
        status = find_prompts(&texts, args);
    if (status == LAM_OK)
        status = lam_device_open(&dev, &o->device);
    if (status == LAM_OK)
        status = lam_engine_open(&engine, o->model, dev, &storage);
    if (status == LAM_OK)
        status = o->interactive ? converse(engine, args, &texts, (const char *const *)stops)
                                : continue_all(engine, args, &texts, (const char *const *)stops);
    lam_engine_close(engine);
    if (dev)
        dev->ops->close(dev);
    lam_texts_free(&texts);
    for (int i = 0; i < LAM_LIST_MAX; i++)
        free(stops[i]);
    return status;
}

const lam_command lam_command_generate = {
    .name = "generate",
    .summary = "continue a prompt",
    .operands = "[PROMPT]",
    .operands_max = -1,
    .description =
        "Continues a prompt with a trained model and prints the text as it is drawn. The prompt "
        "may have any length: the model reads it in whole segments and keeps it in its memory. New "
        "tokens are computed one by one with cached keys and values; the results equal those of "
        "the segment-parallel forward pass. A model trained without --mem-reset has hardly seen an "
        "empty memory: give it a prompt of a sentence or two. On a terminal, control characters "
        "other than newline and tab are written as \\x1b; pipes and files get them unchanged.",
    .options = lam_generate_table,
    .options_size = sizeof(lam_generate_args),
    .examples = "lamemo generate --model wiki11m --prompt \"The history of Rome\"\n"
                "lamemo generate --model runs/tiny \"In the beginning\" -n 200\n"
                "# from another program, with the prompt's last newline\n"
                "head -n 3 story.txt | lamemo generate -m runs/tiny -\n"
                "# one continuation of each line, as JSON lines\n"
                "lamemo generate -m runs/tiny --prompts prompts.txt --json --echo\n"
                "# four samples of a prompt from a file, at a lower temperature\n"
                "lamemo generate -m runs/tiny -p @story.txt --samples 4 --temp 0.8 --json\n"
                "# line by line, with the memory kept; /help lists the commands\n"
                "lamemo generate -m wiki11m -i",
    .run = run,
    .reads = true,
};
