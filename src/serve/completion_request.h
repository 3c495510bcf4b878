/* completion_request.h -- parses the body of POST /v1/completions, untrusted JSON, into a struct.
 *
 * Unknown fields are ignored and null means that a field was not given, as OpenAI's clients expect.  This parser does
 * not know the model: tokens are only numbers, and text prompts stay text. */
#ifndef LAM_SERVE_COMPLETION_REQUEST_H
#define LAM_SERVE_COMPLETION_REQUEST_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LAM_MOST_CHOICES = 128, /* prompts times n */
    LAM_MOST_STOPS = 16,    /* stop strings */
    LAM_MOST_TOP = 20,      /* logprobs */
    LAM_MOST_NEW = 1000000, /* max_tokens */
    LAM_JSON_DEPTH = 32,    /* nesting of objects and lists */
    LAM_NAME_BYTES = 256    /* of a model's name */
};

/* Either a text or tokens. */
typedef struct lam_prompt {
    char *text; /* NULL: tokens */
    size_t size;
    int32_t *tokens;
    size_t n;
} lam_prompt;

typedef struct lam_completion_request {
    char model[LAM_NAME_BYTES]; /* "": not given */
    lam_prompt *prompts;        /* at least one */
    int n_prompts, n;           /* choices of each */
    int max_tokens;
    double temperature, top_p, min_p, repetition_penalty;
    int top_k;
    int seeded;
    uint64_t seed;
    char *stops[LAM_MOST_STOPS];
    int n_stops;
    int stream, include_usage, echo;
    int logprobs; /* -1: not wanted */
    char session[33];
    int keep; /* 1: a session, there is only one choice */
} lam_completion_request;

/* Reads the body.  On failure *param is the field that is wrong, or NULL, and *out is empty. */
lam_status lam_completion_read(lam_completion_request *out, const char **param, const char *body,
                               size_t size);
void lam_completion_request_free(lam_completion_request *r);

/* The body of other requests, as an object; an empty body is {}. */
struct json_t;
lam_status lam_body_parse(struct json_t **out, const char *body, size_t size);
/* Members of objects.  A missing one and null leave *out as it is.  A wrong one is LAM_ERR_ARG, and *param its name. */
lam_status lam_member_int(int *out, const struct json_t *object, const char *name, int min, int max,
                          const char **param);
lam_status lam_member_flag(int *out, const struct json_t *object, const char *name,
                           const char **param);
/* Copies a string that fits. */
lam_status lam_member_text(char *out, size_t size, const struct json_t *object, const char *name,
                           const char **param);
/* A list of tokens; *out is the caller's (free). */
lam_status lam_member_tokens(int32_t **out, size_t *n, const struct json_t *list);

#endif
