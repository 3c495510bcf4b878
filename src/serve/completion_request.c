/* completion_request.c -- see completion_request.h. */
#include "serve/completion_request.h"

#include "io/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- members of JSON objects ---- */

/* jansson recurses, and a list may hold a list may hold a list. */
static bool is_deep(const char *text, size_t size)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '[' || text[i] == '{') && ++depth > LAM_JSON_DEPTH)
            return true;
        else if (!quoted && (text[i] == ']' || text[i] == '}'))
            depth--;
    }
    return false;
}

lam_status lam_body_parse(json_t **out, const char *body, size_t size)
{
    *out = NULL;
    if (size == 0) {
        *out = json_object();
        return *out ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "body: no memory");
    }
    if (is_deep(body, size))
        return lam_fail(LAM_ERR_FORMAT, "body: lists and objects are nested deeper than %d",
                        LAM_JSON_DEPTH);
    LAM_TRY(lam_json_parse(out, "body", body, size));
    if (json_is_object(*out))
        return LAM_OK;
    json_decref(*out);
    *out = NULL;
    return lam_fail(LAM_ERR_FORMAT, "body: not a JSON object");
}

/* The member; NULL: it is missing or null. */
static const json_t *member(const json_t *object, const char *name, const char **param)
{
    const json_t *m = json_object_get(object, name);
    if (!m || json_is_null(m))
        return NULL;
    *param = name;
    return m;
}

lam_status lam_member_int(int *out, const json_t *object, const char *name, int min, int max,
                          const char **param)
{
    const json_t *m = member(object, name, param);
    if (!m)
        return LAM_OK;
    const json_int_t value = json_is_integer(m) ? json_integer_value(m) : 0;
    if (!json_is_integer(m) || value < min || value > max)
        return lam_fail(LAM_ERR_ARG, "%s: must be a whole number from %d to %d", name, min, max);
    *out = (int)value;
    *param = NULL;
    return LAM_OK;
}

lam_status lam_member_flag(int *out, const json_t *object, const char *name, const char **param)
{
    const json_t *m = member(object, name, param);
    if (!m)
        return LAM_OK;
    if (!json_is_boolean(m))
        return lam_fail(LAM_ERR_ARG, "%s: must be true or false", name);
    *out = json_is_true(m);
    *param = NULL;
    return LAM_OK;
}

static lam_status member_number(double *out, const json_t *object, const char *name, double min,
                                double max, const char **param)
{
    const json_t *m = member(object, name, param);
    if (!m)
        return LAM_OK;
    const double value = json_number_value(m);
    if (!json_is_number(m) || !(value >= min && value <= max))
        return lam_fail(LAM_ERR_ARG, "%s: must be a number from %g to %g", name, min, max);
    *out = value;
    *param = NULL;
    return LAM_OK;
}

lam_status lam_member_text(char *out, size_t size, const json_t *object, const char *name,
                           const char **param)
{
    const json_t *m = member(object, name, param);
    if (!m)
        return LAM_OK;
    if (!json_is_string(m) || json_string_length(m) >= size)
        return lam_fail(LAM_ERR_ARG, "%s: must be a string of at most %zu bytes", name, size - 1);
    memcpy(out, json_string_value(m), json_string_length(m) + 1);
    *param = NULL;
    return LAM_OK;
}

lam_status lam_member_tokens(int32_t **out, size_t *n, const json_t *list)
{
    const size_t size = json_array_size(list);
    int32_t *const tokens = malloc((size + 1) * sizeof *tokens);
    *out = NULL;
    *n = 0;
    if (!tokens)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu tokens", size);
    for (size_t i = 0; i < size; i++) {
        const json_t *m = json_array_get(list, i);
        const json_int_t value = json_is_integer(m) ? json_integer_value(m) : -1;
        if (value < 0 || value > INT32_MAX) {
            free(tokens);
            return lam_fail(LAM_ERR_ARG, "element %zu is not a token: a whole number from 0 on", i);
        }
        tokens[i] = (int32_t)value;
    }
    *out = tokens;
    *n = size;
    return LAM_OK;
}

/* ---- prompts ---- */

static lam_status one_prompt(lam_prompt *p, const json_t *m)
{
    if (!json_is_string(m))
        return lam_member_tokens(&p->tokens, &p->n, m);
    p->size = json_string_length(m);
    p->text = malloc(p->size + 1);
    if (!p->text)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a prompt of %zu bytes", p->size);
    memcpy(p->text, json_string_value(m), p->size + 1);
    return LAM_OK;
}

/* A string, tokens, or a list whose elements all are the one or the other. */
static lam_status read_prompts(lam_completion_request *r, const json_t *m)
{
    const bool several =
        json_is_array(m) && json_array_size(m) > 0 && !json_is_integer(json_array_get(m, 0));
    const size_t count = several ? json_array_size(m) : 1;
    if (m && !json_is_string(m) && !json_is_array(m))
        return lam_fail(LAM_ERR_ARG, "prompt: must be a string, a list of strings, a list of "
                                     "tokens, or a list of such lists");
    if (count > LAM_MOST_CHOICES)
        return lam_fail(LAM_ERR_ARG, "prompt: %zu prompts, at most %d", count, LAM_MOST_CHOICES);
    r->prompts = calloc(count, sizeof *r->prompts);
    if (!r->prompts)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu prompts", count);
    r->n_prompts = (int)count;
    for (size_t i = 0; m && i < count; i++) {
        const json_t *one = several ? json_array_get(m, i) : m;
        if (!json_is_string(one) && !json_is_array(one))
            return lam_fail(LAM_ERR_ARG, "prompt: element %zu is neither a string nor a list", i);
        const lam_status status = one_prompt(&r->prompts[i], one);
        if (status == LAM_ERR_ARG)
            return lam_fail(status, "prompt: %s", lam_error());
        LAM_TRY(status);
    }
    return LAM_OK;
}

/* ---- stop strings ---- */

static lam_status add_stop(lam_completion_request *r, const json_t *m)
{
    if (!json_is_string(m) || json_string_length(m) > 4096)
        return lam_fail(LAM_ERR_ARG, "stop: must be a string, or a list of strings, of at most "
                                     "4096 bytes");
    if (json_string_length(m) == 0) /* clients mean: none */
        return LAM_OK;
    if (r->n_stops == LAM_MOST_STOPS)
        return lam_fail(LAM_ERR_ARG, "stop: more than %d strings", LAM_MOST_STOPS);
    r->stops[r->n_stops] = strdup(json_string_value(m));
    if (!r->stops[r->n_stops])
        return lam_fail(LAM_ERR_MEMORY, "no memory for a stop string");
    r->n_stops++;
    return LAM_OK;
}

static lam_status read_stops(lam_completion_request *r, const json_t *m)
{
    if (!m)
        return LAM_OK;
    if (!json_is_array(m))
        return add_stop(r, m);
    for (size_t i = 0; i < json_array_size(m); i++)
        LAM_TRY(add_stop(r, json_array_get(m, i)));
    return LAM_OK;
}

/* ---- the request ---- */

static lam_status read_sampling(lam_completion_request *r, const json_t *o, const char **param)
{
    LAM_TRY(member_number(&r->temperature, o, "temperature", 0.0, 100.0, param));
    LAM_TRY(member_number(&r->top_p, o, "top_p", 0.0, 1.0, param));
    LAM_TRY(member_number(&r->min_p, o, "min_p", 0.0, 1.0, param));
    LAM_TRY(member_number(&r->repetition_penalty, o, "repetition_penalty", 0.01, 100.0, param));
    LAM_TRY(lam_member_int(&r->top_k, o, "top_k", -1, INT32_MAX, param));
    r->top_k = r->top_k < 0 ? 0 : r->top_k; /* -1 is "all" elsewhere */
    if (r->top_p == 0.0) /* the most likely token alone, which the sampler calls so: */
        r->top_p = 1e-9;
    const json_t *seed = member(o, "seed", param);
    if (seed && !json_is_integer(seed))
        return lam_fail(LAM_ERR_ARG, "seed: must be a whole number");
    r->seeded = seed != NULL;
    r->seed = seed ? (uint64_t)json_integer_value(seed) : 0;
    *param = NULL;
    return LAM_OK;
}

static lam_status read_logprobs(lam_completion_request *r, const json_t *o, const char **param)
{
    const json_t *m = json_object_get(o, "logprobs");
    if (json_is_boolean(m)) { /* as in chat completions */
        r->logprobs = json_is_true(m) ? 1 : -1;
        return LAM_OK;
    }
    return lam_member_int(&r->logprobs, o, "logprobs", 0, LAM_MOST_TOP, param);
}

static lam_status read_all(lam_completion_request *r, const json_t *o, const char **param)
{
    LAM_TRY(lam_member_text(r->model, sizeof r->model, o, "model", param));
    LAM_TRY(lam_member_text(r->session, sizeof r->session, o, "session", param));
    LAM_TRY(lam_member_int(&r->max_tokens, o, "max_tokens", 0, LAM_MOST_NEW, param));
    LAM_TRY(lam_member_int(&r->n, o, "n", 1, LAM_MOST_CHOICES, param));
    LAM_TRY(lam_member_flag(&r->stream, o, "stream", param));
    LAM_TRY(lam_member_flag(&r->echo, o, "echo", param));
    LAM_TRY(lam_member_flag(&r->keep, o, "keep", param));
    LAM_TRY(read_logprobs(r, o, param));
    LAM_TRY(read_sampling(r, o, param));
    const json_t *options = json_object_get(o, "stream_options");
    if (json_is_object(options))
        LAM_TRY(lam_member_flag(&r->include_usage, options, "include_usage", param));
    *param = "stop";
    LAM_TRY(read_stops(r, member(o, "stop", param)));
    *param = "prompt";
    LAM_TRY(read_prompts(r, member(o, "prompt", param)));
    *param = "n";
    if (r->n_prompts * r->n > LAM_MOST_CHOICES)
        return lam_fail(LAM_ERR_ARG, "n: %d prompts times %d are more than %d choices",
                        r->n_prompts, r->n, LAM_MOST_CHOICES);
    *param = "keep";
    r->keep = r->keep >= 0 ? r->keep : r->session[0] != '\0';
    if (r->keep && r->n_prompts * r->n > 1)
        return lam_fail(LAM_ERR_ARG, "keep: needs one prompt and n 1; false leaves the session as "
                                     "it was");
    *param = NULL;
    return LAM_OK;
}

lam_status lam_completion_read(lam_completion_request *out, const char **param, const char *body,
                               size_t size)
{
    json_t *o;
    *param = NULL;
    *out = (lam_completion_request){.n = 1,
                                    .max_tokens = 16,
                                    .temperature = 1.0,
                                    .top_p = 1.0,
                                    .repetition_penalty = 1.0,
                                    .logprobs = -1,
                                    .keep = -1};
    LAM_TRY(lam_body_parse(&o, body, size));
    const lam_status status = read_all(out, o, param);
    json_decref(o);
    if (status != LAM_OK)
        lam_completion_request_free(out);
    return status;
}

void lam_completion_request_free(lam_completion_request *r)
{
    for (int i = 0; i < r->n_prompts; i++) {
        free(r->prompts[i].text);
        free(r->prompts[i].tokens);
    }
    free(r->prompts);
    for (int i = 0; i < r->n_stops; i++)
        free(r->stops[i]);
    *r = (lam_completion_request){0};
}
