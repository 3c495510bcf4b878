/* generate_options.c -- see generate_options.h. */
#include "cli/generate_options.h"

#include "cli/input.h"

#include <stdio.h>
#include <string.h>

const lam_option lam_generate_table[] = {
    LAM_MODEL_OPTION(lam_generate_args, model),
    {"prompt", 'p', "TEXT", LAM_OPT_STRINGS, offsetof(lam_generate_args, prompt),
     .shown = "a newline",
     .help = "Text to continue, the same as PROMPT; @FILE reads a file, - standard input. May be "
             "repeated; each prompt is continued separately."},
    {"prompts", 0, "FILE", LAM_OPT_PATH, offsetof(lam_generate_args, prompts),
     .help = "Continue each line of FILE (- for standard input); in NAME.jsonl each line is a JSON "
             "string or an object with \"prompt\"."},
    {"tokens", 'n', "N", LAM_OPT_INT, offsetof(lam_generate_args, tokens), "256", .max = 1 << 30,
     .aliases = "predict", .help = "Number of tokens to generate."},
    {"interactive", 'i', NULL, LAM_OPT_FLAG, offsetof(lam_generate_args, interactive),
     .help = "Read lines from standard input and continue each with the memory kept; /help lists "
             "the commands for saving, loading and forking it."},
    {"samples", 0, "S", LAM_OPT_INT, offsetof(lam_generate_args, samples), "1", .min = 1,
     .max = 4096, .help = "Number of continuations of each prompt, computed in parallel."},
    {"stop", 0, "TEXT", LAM_OPT_STRINGS, offsetof(lam_generate_args, stop),
     .help = "End a sample before this text; \\n, \\t, \\r, \\xHH and \\\\ are understood. May be "
             "repeated."},
    {.type = LAM_OPT_GROUP, .help = "Sampling"},
    {"temp", 0, "T", LAM_OPT_DOUBLE, offsetof(lam_generate_args, temp), "1", .max = 100,
     .aliases = "temperature",
     .help = "Sampling temperature; 0 always takes the most likely token."},
    {"top-k", 'k', "K", LAM_OPT_INT, offsetof(lam_generate_args, top_k), "0", .max = 1 << 24,
     .help = "Draw from the K most likely tokens; 0 is off."},
    {"top-p", 0, "P", LAM_OPT_DOUBLE, offsetof(lam_generate_args, top_p), "0.95", .max = 1,
     .help = "Draw from the fewest tokens that together have this probability; 1 is off."},
    {"min-p", 0, "P", LAM_OPT_DOUBLE, offsetof(lam_generate_args, min_p), "0", .max = 1,
     .help = "Leave out tokens less likely than P times the most likely one."},
    {"repeat-penalty", 0, "X", LAM_OPT_DOUBLE, offsetof(lam_generate_args, repeat_penalty), "1",
     .min = 0.01, .max = 100, .help = "Make recent tokens less likely; 1 is off."},
    {"repeat-last", 0, "N", LAM_OPT_INT, offsetof(lam_generate_args, repeat_last), "64",
     .max = 1 << 20, .help = "Number of recent tokens that the penalty counts."},
    {"seed", 's', "S", LAM_OPT_SEED, offsetof(lam_generate_args, seed), "42",
     .help = "Seed of the draws, or random; the same seed gives the same text."},
    {"allow-unk", 0, NULL, LAM_OPT_FLAG, offsetof(lam_generate_args, unknown),
     .help = "Let the model write <unk>, which stands for words it does not know."},
    {.type = LAM_OPT_GROUP, .help = "Memory"},
    {"refresh", 0, "N", LAM_OPT_INT, offsetof(lam_generate_args, refresh), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's tgt_len",
     .help =
         "Refresh the memory every N new tokens; 1 refreshes it after each, as the authors do."},
    {"prompt-len", 0, "N", LAM_OPT_INT, offsetof(lam_generate_args, prompt_segment), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's tgt_len", .aliases = "tgt-len",
     .help = "Segment length for the prompt, in tokens."},
    {"mem-len", 0, "M", LAM_OPT_INT, offsetof(lam_generate_args, mem_len), .min = 1,
     .max = LAM_MAX_LEN, .shown = "the model's", .help = "Memory length, in tokens."},
    {.type = LAM_OPT_GROUP, .help = "Output"},
    {"echo", 0, NULL, LAM_OPT_FLAG, offsetof(lam_generate_args, echo),
     .help = "Print the prompt too; with --json as \"prompt\"."},
    {"logprobs", 0, NULL, LAM_OPT_FLAG, offsetof(lam_generate_args, logprobs),
     .help = "With --json: add the ids, texts and log-probabilities of the tokens."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(lam_generate_args, json),
     .help = "Print one JSON object per sample when all are done."},
    {.type = LAM_OPT_GROUP, .help = "Machine"},
    LAM_STORAGE_OPTIONS(lam_generate_args, storage, "the folder's"),
    LAM_NUMERICS_OPTION(lam_generate_args, device),
    LAM_DEVICE_OPTIONS(lam_generate_args, device, "auto"),
    {0},
};

lam_sampler_options lam_generate_sampler(const lam_generate_args *o)
{
    return (lam_sampler_options){.temperature = o->temp,
                                 .top_k = o->top_k,
                                 .top_p = o->top_p,
                                 .min_p = o->min_p,
                                 .repeat_penalty = o->repeat_penalty,
                                 .repeat_last = o->repeat_last,
                                 .seed = (uint64_t)o->seed,
                                 .never = -1};
}

static const char settable[] = "tokens temp top-k top-p min-p repeat-penalty repeat-last seed";

lam_status lam_generate_set(lam_generate_args *o, const char *name, const char *value)
{
    for (const lam_option *row = lam_generate_table; row->help; row++) {
        const bool letter = name[0] != '\0' && name[0] == row->key && name[1] == '\0';
        if ((letter || lam_option_called(row, name)) && lam_word_listed(settable, row->name))
            return lam_option_set(row, o, value);
    }
    return lam_fail(LAM_ERR_ARG, "/set: '%s' is not one of %s", name, settable);
}
