/* generate_options.h -- the option table of `lamemo generate`, and the request its values make. */
#ifndef LAM_CLI_GENERATE_OPTIONS_H
#define LAM_CLI_GENERATE_OPTIONS_H

#include "cli/device.h"
#include "cli/options.h"
#include "infer/generate.h"

typedef struct lam_generate_args {
    const char *model, *prompts;
    lam_string_list prompt;
    lam_device_options device;
    lam_storage_options storage;
    int tokens, samples, refresh, prompt_segment, mem_len;
    double temp, top_p, min_p, repeat_penalty;
    int top_k, repeat_last;
    int64_t seed;
    lam_string_list stop;
    bool interactive, unknown, echo, logprobs, json;
} lam_generate_args;

extern const lam_option lam_generate_table[];

/* How a token is drawn; `never` is left to whoever knows the vocabulary. */
lam_sampler_options lam_generate_sampler(const lam_generate_args *o);

/* Changes a setting of a generation that goes on: `name` is that of an option of sampling, or tokens.  LAM_ERR_ARG: there
 * is none, or the value is out of its range; nothing changed. */
lam_status lam_generate_set(lam_generate_args *o, const char *name, const char *value);

#endif
